"""The judge of the skip ring names whatever is wrong, each thing alone, and nothing else."""

from collections.abc import Callable

import pytest

from planaria.core.message import Message
from planaria.core.node import Unsubscribe as Leave
from planaria.protocols.ring.messages import Introduce
from planaria.protocols.skipring.messages import (
    Check,
    GetConfiguration,
    IntroduceShortcut,
    Moved,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE
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
    (4, Check("news", (8, 8), 4, None)),
    (4, Wake("news", 3)),
    (4, IntroduceShortcut("news", (2, 2), (0, 0), None, None)),
    (SUPERVISOR_BASE, GetConfiguration("news", 4, 4, (None, None), [])),
    (4, Check("sports", (99, 99), 7, None)),
]
STALE: list[tuple[int, Message]] = [
    (4, Check("news", (7, 8), 4, None)),
    (4, Check("news", (8, 8), 5, None)),
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
