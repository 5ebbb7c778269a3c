"""Lamport diagrams are well-formed, show every message once, and stay within their bounds."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from planaria.core.errors import UsageError
from planaria.core.trace import Row
from planaria.simulator.pictures import lamport
from planaria.simulator.pictures.lamport import EVENTS_MAX, draw, window
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trace import Recorder, Trace
from planaria.simulator.trial import Spec, Trial
from toys import ProbeOverlay

SVG = "{http://www.w3.org/2000/svg}"
FAULTS = "at 0 for 4 loss rate=0.3\nat 1 crash count=1\nat 1 forge count=2\nat 2 publish count=1"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    file: Path = tmp_path_factory.mktemp("lamport") / "a.parquet"
    spec = Spec(5, 4, start="legitimate", faults=parse_schedule(FAULTS))
    with Recorder(file, "everything", {"seed": "4"}) as recorder:
        Trial(ProbeOverlay(), spec, [recorder]).run()
    return list(Trace(file).rows())


def drawn(rows: list[Row], first: int = 0, last: int | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(draw(window(rows, first, last), "a <title> & more"))


def test_diagram_is_well_formed_and_has_a_lane_per_node_and_a_legend(rows: list[Row]) -> None:
    texts = [text.text for text in drawn(rows, 0, 300).iter(f"{SVG}text")]
    assert {"outside", *(f"node {id}" for id in range(5))} <= set(texts)
    assert {"a <title> & more", "toys.note", "timeout", "lost", "tick"} <= set(texts)
    assert {"at 1 crash count=1", "at 1 forge count=2"} <= set(texts)


def test_every_delivery_is_an_arrow_and_every_loss_a_cross(rows: list[Row]) -> None:
    root = drawn(rows, 0, 300)
    arrows = [path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]
    dashed = [path for path in root.iter(f"{SVG}path") if "stroke-dasharray" in path.attrib]
    shown = [row for row in rows if row.tick <= 300]
    assert len(arrows) == sum(row.kind == "deliver" for row in shown) > 0
    assert len(dashed) == sum(row.kind == "drop" for row in shown) > 0


def test_nothing_is_drawn_outside_the_picture(rows: list[Row]) -> None:
    root = drawn(rows, 120, 260)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 <= float(text.attrib["y"]) <= height


def test_long_names_and_many_types_have_room() -> None:
    far, tags = 10**15, [f"a.rather.long.name.{number}" for number in range(30)]
    root = drawn([Row(t, far, "send", far, 1, tag, t, 0, 9) for t, tag in enumerate(tags)])
    keys = [group for group in root.iter(f"{SVG}g") if "transform" in group.attrib]
    spots = [tuple(map(float, key.attrib["transform"][10:-1].split())) for key in keys]
    assert len(set(spots)) == len(spots) == 30 + 5
    for key, (x, _) in zip(keys, spots, strict=True):
        letters = "".join(key.itertext())
        assert x + 7 * len(letters) < float(root.attrib["width"])
    (name,) = [it for it in root.iter(f"{SVG}text") if it.text == f"node {far}"]
    assert float(name.attrib["x"]) > 7 * len(f"node {far}")


def test_too_many_events_are_cut_at_a_whole_tick_and_it_says_where(
    rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lamport, "EVENTS_MAX", 40)
    shown = window(rows, 0, None)
    assert shown.cut is not None
    assert len(shown.rows) <= 40
    assert shown.rows == [row for row in rows if row.tick < shown.cut]
    assert window(rows, shown.cut, None).first == shown.cut


def test_all_of_a_small_trace_is_shown(rows: list[Row]) -> None:
    assert len(rows) < EVENTS_MAX
    assert window(rows, 0, None).cut is None


def test_one_tick_with_too_many_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lamport, "EVENTS_MAX", 3)
    crowd = [Row(7, id, "timeout", None, None, None, None, 0, None) for id in range(5)]
    with pytest.raises(UsageError, match="tick 7 alone has more than 3 events"):
        window(crowd, 0, None)


def test_too_many_lanes_and_empty_windows_are_usage_errors(rows: list[Row]) -> None:
    crowd = [Row(0, id, "timeout", None, None, None, None, 0, None) for id in range(200)]
    with pytest.raises(UsageError, match="200 nodes are active there"):
        draw(window(crowd, 0, None), "")
    with pytest.raises(UsageError, match="nothing to draw"):
        window(rows, 10**9, None)
