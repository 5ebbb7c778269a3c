"""The examples for operators: they name options and metrics that there are."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from http_lab import get
from live_lab import config, running
from planaria.network.client.client import connect
from planaria.network.client.overlays import RING
from planaria.network.config import OPTIONS
from planaria.network.metrics import METRICS
from planaria.network.overlays.registry import PARTS

DEPLOY = Path(__file__).parents[1] / "examples" / "deploy"
OTHERS = {"format", "no", "prefix", "system", "uid", "userns"}  # of other commands
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


def asked() -> set[str]:
    """The metrics that the board asks for."""
    board = json.loads((DEPLOY / "grafana.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = [(it["gridPos"]["x"], it["gridPos"]["y"]) for it in board["panels"]]
    assert len(set(places)) == len(places)
    exprs = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return {
        SUFFIXES.sub("", name)
        for expr in exprs
        for name in re.findall(r"(?:planaria|process)_\w+", expr)
    }


def test_the_board_shows_all_that_a_node_measures_and_nothing_else(tmp_path: Path) -> None:
    async def measured() -> set[str]:
        settings = config(tmp_path / "a", name="a", http="127.0.0.1:0")
        async with running(settings) as node, connect([node.listen], insecure=True) as client:
            for overlay in (RING, *PARTS):
                async with client.subscribe(f"t/{overlay}", overlay=overlay) as events:
                    await events.ready()
            assert node.http is not None
            body = (await get(node.http, "/metrics"))[2].decode()
            assert set(re.findall(r'overlay="(\w+)"', body)) == {*PARTS}
            return set(re.findall(r"^# TYPE (\w+)", body, re.MULTILINE))

    found = asyncio.run(measured())
    assert found == set(METRICS)
    assert asked() == found


@pytest.mark.parametrize("name", ["planaria.service", "Containerfile"])
def test_options_exist(name: str) -> None:
    text = (DEPLOY / name).read_text()
    options = set(re.findall(r"(?<=[ \"])--(\w+)(?=[ \"])", text)) - OTHERS
    assert {"dir", "listen", "http"} <= options
    assert options <= {*OPTIONS, "dir"}
    variables = {it.lower() for it in re.findall(r"PLANARIA_(\w+)=", text)}
    assert variables <= set(OPTIONS)


@pytest.mark.parametrize("name", ["planaria.service", "Containerfile"])
def test_only_the_port_for_links_is_open_to_other_machines(name: str) -> None:
    text = re.sub(r"^#.*$", "", (DEPLOY / name).read_text(), flags=re.MULTILINE).replace(
        '", "', " "
    )
    assert re.findall(r"--listen (\S+):(\d+)", text) == [("0.0.0.0", "7400")]
    assert re.findall(r"--http ([\d.]+):(\d+)", text) == [("127.0.0.1", "7500")]
    assert re.findall(r"^EXPOSE (.*)$", text, re.MULTILINE) in ([], ["7400"])
    assert set(re.findall(r"http://([\w.:]+)", text)) <= {"127.0.0.1:7500"}


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if which("systemd-analyze") is None:
        pytest.skip("skipped: no systemd-analyze here")
    unit = tmp_path / "planaria.service"
    text = (DEPLOY / "planaria.service").read_text()
    unit.write_text(text.replace("/opt/planaria/bin/planaria", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert "planaria.service" not in done.stderr, done.stderr
