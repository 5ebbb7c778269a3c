"""States from which the skip ring once never healed, found by trying to prove that it always does.

F6: false shortcuts that introduce each other for ever. F7, F8: two supervisors, one of them maybe
dead. F1-F3: counters and labels out of range. F4: databases of the dead alone.
"""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.node import LinkDown
from planaria.core.state import decode_state, encode_state
from planaria.protocols.skipring import topic_supervisor
from planaria.protocols.skipring.inquiry import PATIENCE
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    IntroduceShortcut,
    Moved,
    SetData,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC, RingOverlay
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import SILENCE_MAX, Subscriber, SubscriberState
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import UNHEARD_MAX
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SlowNodes
from planaria.simulator.trial import Spec, must_heal
from ring_lab import RingLab

Fact = tuple[NodeId, int, NodeId]  # a member, one of its slots, and who it believes is there
NO_SUMS = (None, None)


# Counters and labels out of range


@pytest.mark.parametrize("waiting", [-1, -(10**9), 1 << 100])
def test_f1_joiner_with_a_corrupt_patience_asks(waiting: int) -> None:
    one = Subscriber(TOPIC, 1, (SUPERVISOR_BASE,), Random(1))
    one.inquiry.waiting = waiting
    asked = [send.message for _ in range(40) for send in one.on_timeout()]
    assert any(isinstance(message, GetConfiguration) for message in asked)


@pytest.mark.parametrize("label", [1 << 64, 1 << 62, (1 << 100) + 7, -1])
@pytest.mark.parametrize("stored", [True, False])
def test_f2_neighbour_with_a_label_that_is_none_is_dropped(label: int, stored: bool) -> None:
    one = Subscriber(TOPIC, 1, (SUPERVISOR_BASE,), Random(1))
    if stored:
        state = one.state()
        state.label, state.pred, state.succ = 2, (label, 5), (label, 6)  # type: ignore[attr-defined]
        state.shortcuts[label] = 7  # type: ignore[attr-defined]
        one.load(decode_state(SubscriberState, encode_state(state)))
    else:
        one.label, one.pred, one.succ = 2, (label, 5), (label, 6)
        one.shortcuts = {label: 7}
    one.on_timeout()
    assert one.neighbours() == []
    assert one.alarmed


def test_f2_neighbour_that_is_no_id_is_dropped() -> None:
    one = Subscriber(TOPIC, 1, (SUPERVISOR_BASE,), Random(1))
    one.label, one.pred, one.succ = 2, (0, -1), (1, NODE_ID_MAX + 1)
    one.on_timeout()
    assert one.neighbours() == []


def test_f3_negative_silence_does_not_hide_a_dead_neighbour() -> None:
    lab = RingLab.legitimate(8)
    lab.simulator.detects_failed_sends = False
    for one in lab.members:
        one.silence = (-(10**9), -(10**15))
    lab.simulator.remove(5)
    assert lab.heal(40) > SILENCE_MAX
    assert 5 not in lab.recorded


# Databases of the dead


def of_the_dead(dead: int, living: int) -> RingLab:
    """A database of the dead alone; nobody ever tells that a send failed."""
    lab = RingLab.unrecorded(living)
    lab.simulator.detects_failed_sends = False
    lab.served.database.entries = list(range(100, 100 + dead))
    return lab


@pytest.mark.parametrize("dead", [1, 2, 8, 100])
def test_f4_dead_alone_are_forgotten(dead: int) -> None:
    """Whoever is beside the dead misses them; nobody is beside these."""
    lab = of_the_dead(dead, 0)
    for _ in range(UNHEARD_MAX):
        lab.run()
        assert len(lab.recorded) == dead
    lab.run(11 * (dead.bit_length() + 2))
    assert not lab.supervisor(SUPERVISOR_BASE).topics


@pytest.mark.parametrize("dead", [8, 20])
def test_f4_full_database_of_the_dead_makes_room(
    dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The living ask in vain, which must not count as a sign of life of those recorded.

    Once one of them has label 0, the dead beside the living go, one after the other.
    """
    monkeypatch.setattr(topic_supervisor, "MEMBERS_MAX", dead)
    lab = of_the_dead(dead, 3)
    lab.run(5)
    assert not set(lab.recorded) & {0, 1, 2}
    lab.heal(UNHEARD_MAX + 11 * dead.bit_length() + 20 * dead)


def test_f4_supervisor_recorded_as_its_own_member_is_forgotten() -> None:
    """It can be sent to, so no send fails; and it never asks."""
    lab = RingLab.unrecorded(0)
    lab.served.database.entries = [SUPERVISOR_BASE]
    lab.run(UNHEARD_MAX + 20)
    assert not lab.supervisor(SUPERVISOR_BASE).topics


def test_f4_dead_topics_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planaria.protocols.skipring.supervisor.TOPICS_MAX", 4)
    supervisor = Supervisor(SUPERVISOR_BASE, (SUPERVISOR_BASE,))
    for topic in range(4):
        served = supervisor.serve(f"dead/{topic}")
        assert served is not None
        served.database.entries = [100 + topic]
    assert supervisor.serve(TOPIC) is None
    for _ in range(UNHEARD_MAX + 20):
        supervisor.on_timeout()
    assert supervisor.serve(TOPIC) is not None


def test_living_owner_of_label_0_is_never_doubted() -> None:
    lab = RingLab.legitimate(5)
    for _ in range(3 * UNHEARD_MAX):
        lab.run()
        assert not lab.served.suspects


# False shortcuts


@pytest.mark.parametrize(
    "spec",
    [
        Spec(24, 102685, "permuted", delay="fixed:23"),
        Spec(24, 34, "permuted", scheduler="constant"),
        Spec(12, 1401, "permuted", scheduler="constant"),
        Spec(24, 169, "permuted", scheduler="constant"),
    ],
    ids=lambda spec: f"{spec.n}-{spec.seed}",
)
def test_f6_permuted_ring_heals_under_constant_delays(spec: Spec) -> None:
    """Found by search: old pairs (label, id) kept each other alive in the shortcuts."""
    assert must_heal(RingOverlay(histories=False), spec).intervals < 30


def believing(lab: RingLab) -> dict[NodeId, Subscriber]:
    """The members of a legitimate ring, none of them with any shortcut."""
    for one in lab.members:
        one.shortcuts = {}
    return {one.id: one for one in lab.members}


def accepts(one: Subscriber, sender: int, slot: int, claimant: NodeId) -> bool:
    """Does the handler itself fill the slot when the member of label and id `sender` says so?"""
    one.shortcuts = {}
    message = IntroduceShortcut(TOPIC, (sender, sender), (slot, claimant), None, None)
    one.on_introduce_shortcut(message)
    return one.shortcuts.get(slot) == claimant


def introductions(n: int) -> tuple[set[Fact], list[tuple[Fact, Fact, Fact]]]:
    """All false facts, and (seen, shown, told): who believes both tells the third.

    Label and id of a member are the same number, n is one who died. Member m shows the end of its
    chain on one side to the end on the other side, wherever it believes that one to be.
    """
    members = believing(RingLab.legitimate(n))
    slots = {m: sorted({*one.around.left, *one.around.right}) for m, one in members.items()}
    false = {
        (m, slot, id)
        for m in members
        for slot in slots[m]
        for id in range(n + 1)
        if id not in (m, slot)
    }
    passed_on = []
    for m, one in members.items():
        left = one.around.left[-1] if one.around.left else one.pred and one.pred[0]
        right = one.around.right[-1] if one.around.right else one.succ and one.succ[0]
        if left is None or right is None or left == right:
            continue
        for near, far in ((left, right), (right, left)):
            if far not in slots[m]:
                continue  # a ring neighbour is what the supervisor said
            for u in members:
                if u != near and (m, near, u) not in false:
                    continue  # m never writes to u
                passed_on += [
                    ((m, near, u), (m, far, x), (u, far, x))
                    for x in range(n + 1)
                    if (m, far, x) in false
                    and (u, far, x) in false
                    and accepts(members[u], m, far, x)
                ]
    return false, passed_on


@pytest.mark.parametrize("n", [*range(1, 18), 24, 32, 33])
def test_f6_no_set_of_false_shortcuts_confirms_itself(n: int) -> None:
    """The greatest set of false facts each of which others of the set can tell again is empty.

    Whatever the schedule then, a false shortcut that is overwritten has one fewer to come from.
    """
    false, passed_on = introductions(n)
    assert n < 5 or false
    while True:
        sustained = {
            fact
            for (m, near, u), shown, fact in passed_on
            if shown in false and (near == u or (m, near, u) in false)
        }
        if sustained == false:
            break
        false &= sustained
    assert not false


# Several supervisors


def test_f7_configuration_overtaken_by_moved_is_not_heeded() -> None:
    """Two live supervisors passed a single member to and fro for ever."""
    first, second = preference(TOPIC, (SUPERVISOR_BASE, SUPERVISOR_BASE + 1))
    one = Subscriber(TOPIC, 1, (first, second), Random(1))
    one.inquiry.contact = 1
    assert [send.target for send in one.on_timeout()] == [second]
    one.on_moved(Moved(TOPIC, second, first))
    asked = [send.target for _ in range(8) for send in one.on_timeout()]
    assert asked
    assert set(asked) == {first}
    one.on_set_data(SetData(TOPIC, second, 1, 0, None, None, 1, False))
    assert one.inquiry.supervisor == first
    assert one.label is None


@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("n", [16, 32])
def test_f8_member_that_clings_to_a_dead_supervisor_lets_go(
    n: int, noticed: bool, seeds: Callable[[int, int], int]
) -> None:
    """It refused the serving one until its own coin said to ask: 2^k intervals."""
    for seed in range(seeds(1, 3)):
        overlay, simulator = RingOverlay(supervisors=2), Simulator(seed)
        simulator.detects_failed_sends = noticed
        lab = RingLab(overlay, overlay.legitimate(n, simulator.rng), simulator)
        first, second = preference(TOPIC, overlay.supervisors)
        serving = lab.supervisor(second).serve(TOPIC)
        assert serving is not None
        serving.database.entries = list(lab.recorded)
        lab.simulator.remove(first)
        for one in lab.members:
            one.inquiry.contact = int(one.id != n - 1)
        assert lab.broken() == {"supervisor"}
        assert lab.heal(n + 2 * PATIENCE) > 0


def test_supervisors_with_different_databases_agree_by_preference_alone() -> None:
    """Each believes that it owns the topic, and neither knows of the other: the order of preference
    of the members alone settles it, and no member ever changes its label."""
    overlay = RingOverlay(supervisors=2)
    first, second = preference(TOPIC, overlay.supervisors)
    lab = RingLab(overlay, overlay.legitimate(8, Random(1)), Simulator(1))
    for id in (first, second):
        lab.supervisor(id).supervisors = (id,)
    rival = lab.supervisor(second).serve(TOPIC)
    assert rival is not None
    rival.database.entries = [7, 6, 5, 4, 3, 2, 1, 0]
    changes = 0
    for _ in range(300):
        before = [one.label for one in lab.members]
        lab.run()
        changes += before != [one.label for one in lab.members]
    assert changes == 0
    assert [one.label for one in lab.members] == list(range(8))


@pytest.mark.parametrize(("seed", "supervisors"), [(0, 3), (1, 3), (2, 3), (3, 4), (4, 7)])
def test_supervisors_that_know_each_other_leave_one_database(seed: int, supervisors: int) -> None:
    """Of more than three the second and the third live no more."""
    overlay, simulator = RingOverlay(supervisors), Simulator(seed)
    lab = RingLab(overlay, overlay.legitimate(9, simulator.rng), simulator)
    for rank, id in enumerate(preference(TOPIC, overlay.supervisors)):
        served = lab.supervisor(id).serve(TOPIC)
        assert served is not None
        served.database.entries = [(rank + 4 * place) % 9 for place in range(9)]
        for one in lab.members[rank::supervisors]:
            one.inquiry.contact = rank
        if supervisors > 3 and rank in (1, 2):
            simulator.remove(id)
    assert "supervisor" in lab.broken()
    lab.heal(60)


def test_false_word_of_a_lost_supervisor_moves_nobody_for_good() -> None:
    lab = RingLab.legitimate(6, supervisors=2)
    for one in lab.members:
        asked = one.inquiry.supervisor
        assert asked is not None
        lab.simulator.command(one.id, LinkDown(asked))
    assert lab.broken() == {"supervisor", "patience"}
    lab.heal(60)


# What no protocol can do


def test_c6_living_member_whose_messages_are_too_slow_is_removed_and_taken_back() -> None:
    """Who tells the dead from the slow by waiting needs a bound, and the paper has none."""
    lab = RingLab.legitimate(8)
    slow = SlowNodes([3], 20 * INTERVAL / 25)
    lab.simulator.rules.append(slow)
    recorded = []
    for _ in range(60):
        lab.run()
        recorded.append(3 in lab.recorded)
    assert slow.affected
    assert not all(recorded)
    lab.simulator.rules.clear()
    lab.heal(90)
