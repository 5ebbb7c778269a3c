"""What the paper proves of BuildSR, one lemma at a time, of our skip ring."""

from collections.abc import Callable
from math import ceil, log2, sqrt

import pytest

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Unsubscribe
from planaria.protocols.skipring.labels import CIRCLE, index_at, length, position
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, RingOverlay
from planaria.protocols.skipring.place import Place
from planaria.protocols.skipring.reference import skip_ring
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, must_heal
from ring_lab import LONG_LABEL, RingLab

SIZES = [1, 2, 3, 5, 8, 9, 16, 17]
PERIODIC = ("check", "introduce_shortcut")  # what members send at every timeout
PATIENCE = 60


def references(lab: RingLab, id: NodeId) -> list[NodeId]:
    """Who points at `id`."""
    return [one.id for one in lab.members if id in [ref[1] for ref in one.neighbours()]]


# Section 2: the topology


@pytest.mark.parametrize("n", SIZES[1:])
def test_lemma_3_degrees_are_logarithmic_at_most_and_constant_on_average(n: int) -> None:
    """Lemma 3 (Node Degree), of a ring that grew by itself."""
    lab = RingLab.unrecorded(n)
    lab.heal(PATIENCE)
    degrees = [len(one.neighbours()) for one in lab.members]
    assert sum(degrees) == 2 * (2 * n - 3)
    assert max(degrees) <= max(1, 2 * ceil(log2(n)) - 1)


# Section 3: supervisor and subscribers


def test_theorem_5_less_than_one_request_is_expected_for_every_size() -> None:
    """Theorem 5, exactly, from the probability that each member itself computes (E14)."""
    expected = 0.0
    for label in range(4096):
        place = Place(label)
        place.label = label
        expected += place.probability
        assert expected < 0.92
    assert expected > 0.85


@pytest.mark.parametrize(("n", "intervals"), [(1, 300), (16, 200), (64, 60), (256, 20)])
def test_theorem_5_less_than_one_request_per_interval_is_measured(n: int, intervals: int) -> None:
    """Theorem 5, and: all other traffic per interval and process is constant, whatever n is."""
    expected = 0.0
    for label in range(n):
        place = Place(label)
        place.label = label
        expected += place.probability
    traffic = RingLab.legitimate(n).count(intervals)
    assert traffic.to_supervisors == traffic.by_tag["get_configuration"]
    requests = traffic.to_supervisors / intervals
    assert abs(requests - expected) < 4 * sqrt(expected / intervals)
    answers = traffic.from_supervisors - traffic.to_supervisors
    assert abs(answers - intervals) <= 2, "not one configuration per interval, and one per request"
    assert traffic.between_peers <= 4 * n * intervals
    assert n < 16 or traffic.between_peers > 3.5 * n * intervals
    assert traffic.between_peers == sum(traffic.by_tag[tag] for tag in PERIODIC)


def test_lemma_6_unsubscribed_node_is_left_by_everybody() -> None:
    """Lemma 6: no edge leads to it, and it keeps none."""
    for n in SIZES:
        for leaver in sorted({0, n // 2, n - 1}):
            lab = RingLab.legitimate(n)
            assert n < 2 or references(lab, leaver)
            lab.simulator.command(leaver, Unsubscribe(lab.overlay.topic))
            lab.run(6)
            node = lab.simulator.remove(leaver)
            assert lab.overlay.leave(node) is None, "it is still in the ring"
            assert references(lab, leaver) == []
            assert leaver not in lab.recorded


@pytest.mark.parametrize("n", [16, 63, 256])
@pytest.mark.parametrize("operation", ["subscribe", "unsubscribe"])
def test_theorem_7_subscribe_and_unsubscribe_cost_a_constant_at_the_supervisor(
    operation: str, n: int
) -> None:
    """Theorem 7, with S1 and pacing: at most two dozen messages at the supervisor whatever n is.

    Peers need O(log n) beyond what they send anyway: the one that moves wakes all its neighbours.
    """
    intervals, everyday = 8, 2 * 8 + 6  # requests and round robin, and some bad luck
    lab = RingLab.legitimate(n)
    if operation == "subscribe":
        lab.simulator.add(lab.overlay.spawn(n, lab.simulator.rng))
    else:
        lab.simulator.command(n // 3, Unsubscribe(lab.overlay.topic))
    assert lab.violations()
    traffic = lab.count(intervals)
    assert not lab.violations(), "not done yet"
    assert traffic.to_supervisors + traffic.from_supervisors - everyday <= 24
    extra = traffic.between_peers - sum(traffic.by_tag[tag] for tag in PERIODIC)
    assert extra <= 4 * log2(n)
    assert sum(traffic.by_tag[tag] for tag in PERIODIC) <= 4 * (n + 1) * (intervals + 1)


# Section 5: convergence


@pytest.mark.parametrize("n", SIZES)
def test_theorem_8_arbitrary_state_becomes_the_skip_ring(n: int) -> None:
    """Theorem 8 (Network Convergence): the edges are those of SR(n) over the recorded labels."""
    must_heal(RingOverlay(), Spec(n, seed=n, start="corrupt", intervals=100))


def test_lemma_9_database_is_not_corrupt_after_one_timeout() -> None:
    """Lemma 9 (Supervisor Validity): no label without owner, no owner with two labels."""
    for seed in range(200):
        rng = stream(seed, "database")
        lab = RingLab.legitimate(6, seed)
        lab.served.database.entries[:] = [
            rng.choice([None, *range(8)]) for _ in range(rng.randrange(14))
        ]
        lab.served.on_timeout()
        recorded = lab.recorded
        assert None not in recorded
        assert len(set(recorded)) == len(recorded)


@pytest.mark.parametrize("n", SIZES)
def test_lemma_10_all_subscribers_become_recorded(n: int) -> None:
    """Lemma 10 (Supervisor Convergence): even those in a closed ring of their own that agree."""
    for seed in range(5):
        lab = RingLab.legitimate(n, seed)
        kept = stream(seed, "kept").sample(range(n), n // 2)
        lab.served.database.entries = kept
        lab.run(PATIENCE)
        assert sorted(id for id in lab.recorded if id is not None) == list(range(n))


def all_become_recorded(lab: RingLab) -> None:
    """Of members that know of nothing wrong; and nobody is recorded yet."""
    assert not any(one.alarmed for one in lab.members)
    assert lab.recorded == []
    lab.run(PATIENCE)
    assert sorted(id for id in lab.recorded if id is not None) == lab.peers


@pytest.mark.parametrize("n", [2, 3, 8])
def test_lemma_10_closed_ring_without_label_0_is_recorded(n: int) -> None:
    """E19: nobody is minimal, and all agree; gaps alone tell (A3)."""
    lab = RingLab.unrecorded(n)
    lab.place_ring([LONG_LABEL + 977 * id for id in range(n)])
    all_become_recorded(lab)


def test_lemma_10_two_that_hear_each_other_and_agree_on_nothing_are_recorded() -> None:
    """Each is plausible by what it believes of the other, which is false: a CHECK tells (A1)."""
    lab = RingLab.unrecorded(2)
    gap = CIRCLE >> length(LONG_LABEL)
    before, after = (index_at(position(LONG_LABEL) + side * gap) for side in (-1, 1))
    assert before is not None
    assert after is not None
    for id, other in ((0, 1), (1, 0)):
        lab.place(id, LONG_LABEL, (before, other), (after, other))
        assert lab.member(id).around.plausible
    all_become_recorded(lab)


@pytest.mark.parametrize("n", SIZES)
def test_lemma_11_ring_is_right_when_everybody_has_its_configuration(n: int) -> None:
    """Lemma 11 (Ring Convergence): whatever was there before."""
    lab = RingLab.legitimate(n)
    for one in lab.members:
        one.label, one.pred, one.succ = LONG_LABEL, (3, 5), (5, 3)
        one.on_set_data(lab.served.configuration(one.id))
    for label, place in enumerate(skip_ring(n)):
        one = lab.member(label)
        right = [
            None if beside is None else (beside, beside) for beside in (place.pred, place.succ)
        ]
        assert [one.label, one.pred, one.succ] == [label, *right]


@pytest.mark.parametrize("n", [5, 9, 13, 17, 64, 100])
def test_lemma_12_shortcuts_grow_level_by_level(n: int) -> None:
    """Lemma 12 (Shortcut Convergence): one level per interval, from the ring up."""
    lab = RingLab.legitimate(n)
    for one in lab.members:
        one.shortcuts = {}
    assert lab.broken() == {"shortcuts"}
    assert lab.heal(PATIENCE) <= 2 * ceil(log2(n))


# Section 5: closure


def stays(n: int, state: Callable[[RingLab], object]) -> None:
    """Nothing of `state` changes for many intervals, looked at ten times in each."""
    lab = RingLab.legitimate(n)
    before = state(lab)
    for _ in range(300):
        lab.simulator.run(INTERVAL // 10)
        assert state(lab) == before
    assert lab.simulator.delivered >= 30 * n


@pytest.mark.parametrize("n", SIZES)
def test_lemma_14_database_is_not_modified_in_a_legitimate_state(n: int) -> None:
    """Lemma 14 (Supervisor Closure)."""
    stays(n, lambda lab: lab.recorded)


@pytest.mark.parametrize("n", SIZES)
def test_lemma_15_ring_is_not_modified_in_a_legitimate_state(n: int) -> None:
    """Lemma 15 (Ring Closure)."""
    stays(n, lambda lab: [(one.label, one.pred, one.succ) for one in lab.members])


@pytest.mark.parametrize("n", SIZES)
def test_lemma_16_shortcuts_are_not_modified_in_a_legitimate_state(n: int) -> None:
    """Lemma 16 (Shortcut Closure); at n = 3 a ring edge of label 0 is a shortcut as well."""
    stays(n, lambda lab: [sorted(one.neighbours()) for one in lab.members])


@pytest.mark.parametrize("n", SIZES)
def test_theorem_13_legitimate_state_is_kept(n: int) -> None:
    """Theorem 13 (Network Closure), messages in flight included."""
    stays(n, lambda lab: lab.violations())


def test_supervisor_is_nobody_s_neighbour() -> None:
    """Section 1.3: the supervisor is not part of any ring, so its load does not grow with it."""
    lab = RingLab.legitimate(33)
    lab.run(10)
    assert references(lab, SUPERVISOR_BASE) == []
