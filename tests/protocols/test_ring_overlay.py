"""The `ring` overlay as a driver sees it: its arbitrary states."""

from collections.abc import Sequence

import pytest

from planaria.cli.main import main
from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.overlay import Overlay, Start
from planaria.protocols.skipring.overlay import RingOverlay


def plain(start: Start) -> list[object]:
    return [*(node.snapshot() for node in start.nodes), *start.channel]


@pytest.mark.parametrize("supervisors", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_arbitrary_states_are_those_that_every_overlay_would_draw(n: int, supervisors: int) -> None:
    """The ring's own builder finds out once who is a peer, which is all that it does better."""
    for seed in range(5):
        overlay = RingOverlay(supervisors)
        drawn = [
            plain(make(overlay, "corrupt", n, stream(seed, "state"), stream(seed, "protocol")))
            for make in (RingOverlay.start, Overlay.start)
        ]
        assert drawn[0] == drawn[1]


def test_arbitrary_state_looks_at_the_ids_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100,000 members took half an hour."""
    overlay, looks = RingOverlay(), list[int]()

    def look(ids: Sequence[NodeId]) -> list[NodeId]:
        looks.append(len(ids))
        return list(ids)[:-1]

    monkeypatch.setattr(overlay, "_peers", look)
    overlay.start("corrupt", 50, stream(1, "state"), stream(1, "protocol"))
    assert looks == [51]


def test_publications_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    held = {}
    for switch in ("--histories", "--no-histories"):
        given = ["sim", "ring", "--n", "6", "--seed", "2", "--start", "corrupt", switch]
        assert main(given) == 0
        lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
        held[switch] = int(lines["publications"])
    assert held["--no-histories"] == 0 < held["--histories"]
