"""The examples for operators: they name options and metrics that there are."""

import json
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from planaria.network.config import OPTIONS
from planaria.network.metrics import METRICS

DEPLOY = Path(__file__).parents[1] / "examples" / "deploy"
OTHERS = {"no", "prefix", "system", "uid", "userns"}  # of other commands
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


def test_the_board_asks_for_metrics_that_nodes_have() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {SUFFIXES.sub("", name) for expr in asked for name in re.findall(r"planaria_\w+", expr)}
    assert named <= set(METRICS)
    assert len(named) >= 15
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


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
