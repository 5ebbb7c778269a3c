"""Frames that are made of a trace, and the page that replays them."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planaria.cli.main import main
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.trace import Row
from planaria.web.frames import BROKEN, DOUBTS, GOOD, SILENT, Recording
from planaria.web.page import ASSETS, asset, whole
from planaria.web.pictures.picture import RING, SHORTCUT
from planaria.web.recorded import NODES_MAX, recording
from planaria.web.snapshots import developed

DELIVERING = ("ring", "gossip", "content", "mobile")


def row(tick: int, node: int, kind: str, word: str | None = None, src: int | None = None) -> Row:
    dst = None if src is None else node
    return Row(tick, node, kind, src, dst, word, None if src is None else 1, 0, None)


def made(*rows: Row) -> Recording:
    return recording(rows, "a run", per_frame=100, unit="interval")


STARTED = [row(0, 0, "start"), row(0, 1, "start"), row(0, 2, "start")]


def test_one_frame_for_each_interval() -> None:
    found = made(*STARTED, row(100, 0, "timeout"), row(101, 0, "timeout"), row(300, 1, "timeout"))
    assert [frame.time for frame in found.frames] == [1, 2, 3]
    assert [node.name for node in found.nodes] == ["0", "1", "2"]


def test_lines_are_who_spoke_in_that_interval_alone() -> None:
    found = made(
        *STARTED,
        row(10, 1, "deliver", "skipring.introduce_shortcut", 0),
        row(20, 0, "deliver", "skipring.check", 1),
        row(30, 2, "deliver", "skipring.introduce_shortcut", 0),
        row(130, 2, "deliver", "publications.flood", 1),
        row(140, 0, "drop", "skipring.check", 2),
    )
    assert found.frames[0].edges == [(0, 1, RING), (0, 2, SHORTCUT)]
    assert found.frames[0].pulses == []
    assert found.frames[1].edges == []
    assert found.frames[1].pulses == [(1, 2)]


def test_who_stopped_is_silent_until_it_starts_again() -> None:
    found = made(*STARTED, row(150, 1, "stop"), row(350, 1, "restart"), row(450, 0, "timeout"))
    assert [frame.states for frame in found.frames] == [{}, {1: SILENT}, {1: SILENT}, {}, {}]
    assert found.frames[1].events == ["1 stopped"]


def test_lamps_tell_what_was_judged_and_nothing_before() -> None:
    found = made(
        *STARTED, row(200, -1, "verdict", "label, ring"), row(300, -1, "verdict", "legitimate")
    )
    assert [frame.legitimate for frame in found.frames] == [None, False, True]
    lamps = [{lamp.name: lamp.state for lamp in frame.lamps} for frame in found.frames]
    assert lamps[1] == {"label": BROKEN, "ring": BROKEN}
    assert lamps[2] == {"label": GOOD, "ring": GOOD}


def test_nodes_that_only_forged_messages_name_are_not_drawn() -> None:
    found = made(*STARTED, row(5, 7, "drop", "skipring.check", 6), row(6, 0, "deliver", "x", 9))
    assert [node.id for node in found.nodes] == ["0", "1", "2"]
    assert found.frames[0].edges == []


def test_a_trace_that_is_no_picture_is_refused() -> None:
    with pytest.raises(UsageError, match="no rows"):
        made()
    with pytest.raises(CapacityExceeded, match="at most"):
        made(*(row(0, id, "start") for id in range(NODES_MAX + 1)))
    with pytest.raises(CapacityExceeded, match="shorter run"):
        made(row(0, 0, "start"), row(10**9, 0, "timeout"))


@pytest.mark.parametrize("overlay", ["ring", "gossip", "content", "mobile", "tree", "dht"])
def test_a_simulation_is_replayed_as_it_stood(tmp_path: Path, overlay: str) -> None:
    file, out = tmp_path / "run.parquet", tmp_path / "run.html"
    words = ["sim", overlay, "--n", "6", "--seed", "1", "--start", "legitimate"]
    faults = ["--fault", "at 1 publish count=2"] * (overlay in DELIVERING)
    faults += ["--fault", "at 3 corrupt count=1"]
    assert main([*words, *faults, "--closure", "1", "--trace", str(file)]) == 0
    assert main(["trace", "html", str(file)]) == 0
    run = json.loads(shown(out.read_text()))
    frames = run["frames"]
    assert frames[0]["time"] == 0, "the start"
    assert frames[0]["legitimate"] is True
    assert frames[-1]["legitimate"] is True
    assert len(frames[0]["moved"]) >= 6
    if overlay in ("ring", "dht"):
        sides = [edge for edge in frames[-1]["edges"] if edge[2] == RING]
        assert len(sides) == 6, "a ring of six has six sides"
        ends = {at for edge in sides for at in edge[:2]}
        places = [frames[0]["moved"][str(at)] for at in ends]
        assert all(x * x + y * y == pytest.approx(1, abs=1e-3) for x, y in places)
    kinds = {edge[2] for edge in frames[-1]["edges"]}
    assert kinds & {"ring", "tree", "down", "super", "view"}, kinds
    wrong = [frame for frame in frames if DOUBTS in frame.get("states", {}).values()]
    assert wrong, "whose memory was made arbitrary is out of place"
    assert all(frame["doubts"] for frame in wrong)
    assert any(frame.get("arrived") for frame in frames) == (overlay in DELIVERING)


def test_pictures_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        developed('[{"at": "yesterday"}]')


def shown(page: str) -> str:
    found = re.search(
        r'<script type="application/json" id="recording">(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    return found[1]


@given(st.text())
@example("</script><script>alert(1)</script>")
def test_no_title_can_leave_its_place(title: str) -> None:
    page = whole(recording(STARTED, title, per_frame=100, unit="interval"))
    assert json.loads(shown(page))["title"] == title
    assert page.count("<script") == len([n for n in ASSETS if n.endswith(".js")]) + 1


def test_the_page_may_run_its_own_scripts_only() -> None:
    page = whole(made(*STARTED))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == len([name for name in ASSETS if name.endswith(".js")])
    for code in scripts:
        assert b64encode(sha256(code.encode()).digest()).decode() in policy[1]
    assert "unsafe-inline" not in policy[1].split("script-src")[1].split(";")[0]


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name in ASSETS:
        if not name.startswith("vendor/"):
            assert b"http://" not in asset(name), name
            assert b"https://" not in asset(name), name
    with pytest.raises(KeyError):
        asset("../app.py")
