"""States of the skip ring that have a name: each once broke a ring, and must heal in ours."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import LinkDown, Subscribe, Unsubscribe
from planaria.protocols.skipring.messages import GetConfiguration, SetData
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, RingOverlay
from planaria.simulator.engine import Entry
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, must_heal
from ring_lab import LONG_LABEL, RingLab

SEEDS = range(2)
PATIENCE = 60  # intervals that any of these small states may take
NO_SUMS = (None, None)
GONE: NodeId = 77  # somebody who crashed before the story begins


@pytest.mark.parametrize("n", [9, 13, 17])
@pytest.mark.parametrize("seed", SEEDS)
def test_shortcuts_come_back_when_all_references_are_erased(n: int, seed: int) -> None:
    """E4: sizes at which a member has one level neighbour on the ring and one in a shortcut."""
    lab = RingLab.legitimate(n, seed)
    for one in lab.members:
        one.shortcuts = {}
    assert lab.broken() == {"shortcuts"}
    assert 0 < lab.heal(PATIENCE) < 10


@pytest.mark.parametrize("seed", SEEDS)
def test_two_nodes_with_the_same_long_label_part(seed: int) -> None:
    """E3: nobody is minimal, and action (ii) never comes."""
    lab = RingLab.unrecorded(2, seed)
    for id, other in ((0, 1), (1, 0)):
        lab.place(id, LONG_LABEL, (LONG_LABEL, other), (LONG_LABEL, other))
    assert not any(one.alarmed for one in lab.members)
    lab.heal(PATIENCE)
    assert sorted(one.label for one in lab.members if one.label is not None) == [0, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_single_node_that_points_at_itself_is_recorded(seed: int) -> None:
    """E2, E15: it has no neighbour who could notice."""
    lab = RingLab.unrecorded(1, seed)
    lab.place(0, LONG_LABEL, (LONG_LABEL, 0), (LONG_LABEL, 0))
    lab.heal(PATIENCE)
    assert lab.recorded == [0]
    assert lab.member(0).ring == []


@pytest.mark.parametrize("detected", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_unrecorded_node_is_found_when_its_only_neighbour_crashed(
    seed: int, detected: bool
) -> None:
    """E21: with gaps as in a true ring, so that silence alone tells."""
    lab = RingLab.unrecorded(1, seed)
    lab.simulator.detects_failed_sends = detected
    lab.place(0, 1, (0, GONE), (0, GONE))
    assert not lab.member(0).alarmed
    assert lab.member(0).around.plausible
    lab.heal(PATIENCE)
    assert lab.recorded == [0]


class Burials:
    """Watches that nobody comes back who has been removed from the database."""

    kinds = ("timeout",)

    def __init__(self, lab: RingLab, dead: list[NodeId]) -> None:
        self.lab, self.dead, self.buried = lab, dead, set[NodeId]()
        lab.simulator.watch(self)

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        recorded = self.lab.recorded
        assert not self.buried & set(recorded), "a dead node came back"
        self.buried |= set(self.dead) - set(recorded)


@pytest.mark.parametrize("seed", SEEDS)
def test_slow_failure_detector_does_not_resurrect_the_dead(seed: int) -> None:
    """E6: no send ever fails, silence alone tells; the neighbours name the dead all the while."""
    lab = RingLab.legitimate(8, seed)
    lab.simulator.detects_failed_sends = False
    dead = stream(seed, "dead").sample(range(8), 2)
    for id in dead:
        lab.simulator.remove(id)
    watch = Burials(lab, dead)
    lab.heal(PATIENCE)
    assert lab.simulator.undeliverable
    assert watch.buried == set(dead)


@pytest.mark.parametrize("seed", SEEDS)
def test_false_suspicions_cost_no_living_member_its_place(seed: int) -> None:
    """3.3: everybody accuses both neighbours; all answer when the supervisor asks."""
    lab = RingLab.legitimate(12, seed)
    before = lab.recorded
    suspected: set[NodeId] = set()
    for _ in range(5):
        for one in lab.members:
            accused = [ref[1] for ref in one.ring]
            for id in accused:
                lab.simulator.command(one.id, LinkDown(id))
            lab.send(SUPERVISOR_BASE, GetConfiguration("news", one.id, one.label, NO_SUMS, accused))
        lab.simulator.run(2)
        suspected |= set(lab.served.suspects)
        lab.run(3)
    assert len(suspected) >= 6
    lab.heal(PATIENCE)
    assert lab.recorded == before


@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_the_supervisor_gave_up_wrongly_comes_back(seed: int) -> None:
    """The detector is wrong twice about the same one before it can answer: it is removed."""
    lab = RingLab.legitimate(8, seed)
    for _ in range(2):
        lab.simulator.command(SUPERVISOR_BASE, LinkDown(3))
    lab.simulator.pause(3)
    lab.run(5)
    assert 3 not in lab.recorded
    lab.simulator.resume(3)
    lab.heal(PATIENCE)
    assert 3 in lab.recorded


@pytest.mark.parametrize("detected", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_late_request_of_a_dead_node_does_not_keep_it_recorded(seed: int, detected: bool) -> None:
    """E6: the asker itself asks, but it died after asking."""
    lab = RingLab.legitimate(7, seed)
    lab.simulator.detects_failed_sends = detected
    lab.send(SUPERVISOR_BASE, GetConfiguration("news", GONE, None, NO_SUMS, []))
    lab.run()
    assert GONE in lab.recorded
    lab.heal(PATIENCE)
    assert GONE not in lab.recorded


@pytest.mark.parametrize("seed", SEEDS)
def test_unsubscribe_that_overtakes_subscribe_ends_outside(seed: int) -> None:
    """E7: the request to be recorded arrives when the application has long gone."""
    lab = RingLab.legitimate(5, seed)
    lab.simulator.command(2, Unsubscribe("news"))
    lab.run(4)
    assert 2 not in lab.recorded
    lab.send(SUPERVISOR_BASE, GetConfiguration("news", 2, None, NO_SUMS, []))
    lab.simulator.run(2)
    assert 2 in lab.recorded
    lab.heal(PATIENCE)
    assert 2 not in lab.recorded


@pytest.mark.parametrize("seed", SEEDS)
def test_late_configuration_after_leaving_recruits_nobody(seed: int) -> None:
    """E7: the configuration is newer than the permission to go, and late."""
    lab = RingLab.legitimate(5, seed)
    late = lab.served.configuration(2)
    lab.simulator.command(2, Unsubscribe("news"))
    lab.run(4)
    lab.send(2, SetData("news", SUPERVISOR_BASE, 10**6, late.label, late.pred, late.succ, 1, False))
    assert "channel" in lab.broken()
    lab.heal(PATIENCE)
    assert lab.overlay.leave(lab.simulator.nodes[2]) is None
    assert 2 not in lab.recorded


@pytest.mark.parametrize("seed", SEEDS)
def test_node_that_leaves_and_returns_at_once_is_a_member(seed: int) -> None:
    """I3: the permission to go arrives when the application wants to stay."""
    lab = RingLab.legitimate(6, seed)
    lab.simulator.command(4, Unsubscribe("news"))
    lab.simulator.run(5)
    lab.simulator.command(4, Subscribe("news"))
    lab.heal(PATIENCE)
    assert 4 in lab.recorded


@pytest.mark.parametrize("n", [2, 3, 9, 64])
@pytest.mark.parametrize("seed", SEEDS)
def test_sorted_ring_of_long_labels_is_recorded(n: int, seed: int) -> None:
    """E19 and `line40`: every ring neighbour agrees, the database is empty."""
    lab = RingLab.unrecorded(n, seed)
    lab.place_ring([LONG_LABEL + stream(seed, "label", id).randrange(1 << 38) for id in range(n)])
    assert not any(one.alarmed for one in lab.members)
    lab.heal(PATIENCE)


@pytest.mark.parametrize("state", ["kept", "stale", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_process_that_restarts_under_its_own_id_is_taken_back(seed: int, state: str) -> None:
    """I1 of the users' incidents: it is back before anybody noticed that it was away."""
    faults = parse_schedule(f"at 1 join count=5\nat 6 restart share=0.5 state={state}")
    must_heal(RingOverlay(), Spec(10, seed, "legitimate", faults))


def test_restart_without_state_is_noticed_at_once() -> None:
    lab = RingLab.legitimate(9)
    lab.simulator.remove(4)
    lab.simulator.add(lab.overlay.spawn(4, lab.simulator.rng))
    assert "label" in lab.broken()
    assert lab.heal(PATIENCE) < 10
    assert lab.recorded[4] == 4, "it got another label than its own"


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("length", [0.5, 5, 40])
@pytest.mark.parametrize("n", [9, 30])
def test_partition_heals_however_long_it_was(groups: int, length: float, n: int) -> None:
    """I4 and I6: a blip shorter than any detector, and an equal split in which all are removed."""
    faults = parse_schedule(f"at 1 for {length} partition groups={groups}")
    for seed in SEEDS if n == 9 else SEEDS[:1]:
        outcome = must_heal(RingOverlay(), Spec(n, seed, "legitimate", faults))
        assert outcome.faults[0].affected
        assert outcome.intervals > 0 or length < 40


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(("n", "few"), [(16, 1), (40, 0)])
def test_named_nemesis_does_not_last(
    name: str, n: int, few: int, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(few, 20)):
        must_heal(RingOverlay(), Spec(n, seed, "legitimate", load_schedule(name)))
