"""The `ring` overlay as a driver sees it: its arbitrary states."""

import json
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
    """The ring's own builder finds out once who is a peer; then it lets supervisors die."""
    living = set()
    for seed in range(20):
        overlay = RingOverlay(supervisors)
        ours, all_alive = (
            make(overlay, "corrupt", n, stream(seed, "state"), stream(seed, "protocol"))
            for make in (RingOverlay.start, Overlay.start)
        )
        alive = [node.id for node in ours.nodes]
        all_alive.nodes = [node for node in all_alive.nodes if node.id in alive]
        assert plain(ours) == plain(all_alive)
        living.add(len(alive) - n)
    assert living == set(range(1, supervisors + 1))


def test_arbitrary_state_looks_at_the_ids_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100,000 members took half an hour."""
    overlay, looks = RingOverlay(), list[int]()

    def look(ids: Sequence[NodeId]) -> list[NodeId]:
        looks.append(len(ids))
        return list(ids)[:-1]

    monkeypatch.setattr(overlay, "_named", look)
    overlay.start("corrupt", 50, stream(1, "state"), stream(1, "protocol"))
    assert looks == [51]


def test_publications_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    held = {}
    for switch in ("--histories", "--no-histories"):
        given = ["sim", "ring", "--n", "6", "--seed", "2", "--start", "corrupt", switch]
        assert main([*given, "--json"]) == 0
        held[switch] = json.loads(capsys.readouterr().out)["publications"]
    assert held["--no-histories"] == 0 < held["--histories"]
