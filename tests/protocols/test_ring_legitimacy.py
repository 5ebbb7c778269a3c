"""The judge of the skip ring names whatever is wrong, each thing alone, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from planaria.core.message import Message
from planaria.core.node import Unsubscribe as Leave
from planaria.protocols.ring.messages import Introduce
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Moved,
    Probe,
    ProbeReply,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.topic_supervisor import PATIENCE
from ring_lab import RingLab

N = 9
Fault = Callable[[RingLab], None]


def put(name: str, value: object) -> Fault:
    """A fault in one variable of member 4."""
    return lambda lab: setattr(lab.member(4), name, value)


def lose_a_supervisor(lab: RingLab) -> None:
    lab.simulator.remove(SUPERVISOR_BASE)


def record_twice(lab: RingLab) -> None:
    lab.served.database._entries[3] = 2


def record_a_stranger(lab: RingLab) -> None:
    lab.served.database.insert(77)


def forget_a_member(lab: RingLab) -> None:
    lab.served.database.remove(8)


def let_one_leave(lab: RingLab) -> None:
    lab.simulator.command(4, Leave("news"))


def suspect(patience: int) -> Fault:
    """A living member about to be removed unasked."""
    return lambda lab: lab.served.suspects.update({3: patience})


def wait(timeouts: int, due: int | None = None) -> Fault:
    """A member that is about to give up its supervisor, or all of them, before it asks again."""

    def waits(lab: RingLab) -> None:
        lab.member(4).inquiry.waiting, lab.member(4).inquiry.due = timeouts, due

    return waits


def ask_nobody(contact: int) -> Fault:
    """Counted round, it would be the right one; repaired, it need not be."""
    return lambda lab: setattr(lab.member(4).inquiry, "contact", contact)


def believe_in_a_closer_one(lab: RingLab) -> None:
    lab.supervisor(SUPERVISOR_BASE).moved = {"news": (SUPERVISOR_BASE + 1, 2)}


def remember_other_labels(lab: RingLab) -> None:
    lab.served.database._labels[3] = 5


FAULTS: list[tuple[Fault, str]] = [
    (put("label", None), "label"),
    (put("label", 5), "label"),
    (put("pred", None), "ring"),
    (put("succ", (0, 0)), "ring"),
    (put("shortcuts", {}), "shortcuts"),
    (put("shortcuts", {0: 1, 2: 2}), "shortcuts"),
    (lose_a_supervisor, "supervisor"),
    (record_twice, "database"),
    (record_a_stranger, "database"),
    (forget_a_member, "database"),
    (let_one_leave, "database"),
    (suspect(0), "suspects"),
    (suspect(-(10**9)), "suspects"),
    (suspect(PATIENCE // 2), "suspects"),
    (wait(48), "patience"),
    (wait(10**9), "patience"),
    (wait(12), "patience"),
    (wait(12, 0), "patience"),
    (wait(12, 1), "patience"),
    (wait(1, 12), "patience"),
    (ask_nobody(1), "supervisor"),
    (ask_nobody(-1), "supervisor"),
    (believe_in_a_closer_one, "supervisor"),
    (remember_other_labels, "database"),
]


@pytest.mark.parametrize(("fault", "invariant"), FAULTS)
def test_judge_names_the_invariant_that_a_fault_breaks(fault: Fault, invariant: str) -> None:
    lab = RingLab.legitimate(N)
    assert lab.violations() == []
    fault(lab)
    assert invariant in lab.broken()
    assert invariant == "database" or lab.broken() == {invariant}


def test_judge_names_the_node_that_is_wrong() -> None:
    lab = RingLab.legitimate(N)
    lab.member(4).pred = None
    (violation,) = lab.violations()
    assert violation.node == 4
    assert "should be" in violation.detail


HARMLESS: list[tuple[int, Message]] = [
    (4, Greeting("news", (8, 8), 4, None)),
    (4, Wake("news", 3)),
    (4, IntroduceShortcut("news", (2, 2), (0, 0), None, None)),
    (SUPERVISOR_BASE, GetConfiguration("news", 4, 4, (None, None), [])),
    (4, Greeting("sports", (99, 99), 7, None)),
]
STALE: list[tuple[int, Message]] = [
    (4, Greeting("news", (7, 8), 4, None)),
    (4, Greeting("news", (8, 8), 5, None)),
    (4, IntroduceShortcut("news", (2, 2), (0, 5), None, None)),
    (4, SetData("news", SUPERVISOR_BASE, 1, 5, (2, 2), (1, 1), 1, False)),
    (4, SetData("news", SUPERVISOR_BASE, 1, None, None, None, 1, False)),
    (4, RemoveConnections("news", 8)),
    (4, Moved("news", SUPERVISOR_BASE, SUPERVISOR_BASE + 1)),
    (4, Introduce("news", (8, 8), False, 0)),
    (SUPERVISOR_BASE, Unsubscribe("news", 4)),
    (SUPERVISOR_BASE, GetConfiguration("news", 77, None, (None, None), [])),
]


@pytest.mark.parametrize(("target", "message"), HARMLESS)
def test_true_message_in_flight_is_no_violation(target: int, message: Message) -> None:
    lab = RingLab.legitimate(N)
    lab.send(target, message)
    assert lab.violations() == []


@pytest.mark.parametrize(("target", "message"), STALE)
def test_false_message_in_flight_is_a_violation(target: int, message: Message) -> None:
    """Else convergence would be announced too early: it can break the ring again."""
    lab = RingLab.legitimate(N)
    lab.send(target, message)
    assert lab.broken() == {"channel"}


def ask(lab: RingLab, id: int = 4, topic: str = TOPIC) -> None:
    lab.send(SUPERVISOR_BASE, GetConfiguration(topic, id, id, (None, None), []))


def answer(lab: RingLab) -> None:
    one = lab.member(4)
    lab.send(4, SetData(TOPIC, SUPERVISOR_BASE, 1, one.label, one.pred, one.succ, 1, False))


def queue(name: str) -> Fault:
    return lambda lab: getattr(lab.served, name).update({4: False})


@pytest.mark.parametrize("coming", [ask, answer, *map(queue, ("answers", "outbox", "probes"))])
def test_who_will_be_answered_need_not_ask_again_in_time(coming: Fault) -> None:
    lab = RingLab.legitimate(N)
    wait(1, 12)(lab)
    coming(lab)
    assert lab.broken() == set()
    wait(13, None)(lab)
    assert lab.broken() == {"patience"}


@pytest.mark.parametrize("other", [{"id": 3}, {"topic": "sports"}])
def test_the_answer_of_another_is_no_answer(other: dict[str, Any]) -> None:
    lab = RingLab.legitimate(N)
    wait(1, 12)(lab)
    ask(lab, **other)
    assert lab.broken() == {"patience"}


def test_word_of_a_supervisor_that_does_not_serve_is_a_violation() -> None:
    """However right it is: it would be obeyed, and its sender asked from then on."""
    lab = RingLab.legitimate(N, supervisors=2)
    serving, other = preference(TOPIC, lab.overlay.supervisors)
    one = lab.member(4)
    for supervisor, broken in ((serving, set[str]()), (other, {"channel"})):
        right = SetData("news", supervisor, 1, one.label, one.pred, one.succ, 1, False)
        lab.send(4, right)
        assert lab.broken() == broken


def test_answer_of_a_dead_closer_supervisor_in_flight_is_a_violation() -> None:
    """The serving one would hand its members over to the dead."""
    lab = RingLab.legitimate(N, supervisors=2)
    dead, serving = preference(TOPIC, lab.overlay.supervisors)
    entries = lab.recorded
    lab.simulator.remove(dead)
    served = lab.supervisor(serving).serve(TOPIC)
    assert served is not None
    served.database.entries = entries
    for one in lab.members:
        one.inquiry.contact = 1
    lab.send(serving, Probe("news", dead))
    assert lab.violations() == []
    lab.send(serving, ProbeReply("news", dead))
    assert lab.broken() == {"channel"}


def test_shortcut_to_a_ring_neighbour_must_be_right_too() -> None:
    """In SR(3) two slots lead to ring neighbours: they may be empty, not wrong."""
    for id, slot in ((0, 1), (1, 0)):
        lab = RingLab.legitimate(3)
        assert slot in lab.member(id).around.left + lab.member(id).around.right
        lab.member(id).shortcuts = {slot: slot}
        assert lab.violations() == []
        lab.member(id).shortcuts = {slot: 2}
        assert lab.broken() == {"shortcuts"}
