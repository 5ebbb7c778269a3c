"""Asks in a simulation: each at its time, of whom it names, and what happens to a refusal."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Command, Effects, Node, Publish
from planaria.core.workload import Ask
from planaria.simulator.applications import Applications, put
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator, WrongHandler
from planaria.simulator.worlds.registry import find_kind

Asked = list[tuple[int, int, bytes]]  # tick, node, payload


class Listener(Node):
    """Writes down what it is asked for, and answers as it is told to."""

    def __init__(self, id: int, simulator: Simulator, asked: Asked) -> None:
        super().__init__(id)
        self.simulator, self.asked = simulator, asked
        self.answer: Callable[[], Effects] = list

    def on_command(self, command: Command) -> Effects:
        assert isinstance(command, Publish)
        self.asked.append((self.simulator.tick, self.id, command.payload))
        return self.answer()


def stage(n: int) -> tuple[Simulator, list[Listener], Asked]:
    simulator, asked = Simulator(1), Asked()
    nodes = [Listener(id, simulator, asked) for id in range(n)]
    for node in nodes:
        simulator.add(node)
    return simulator, nodes, asked


def ask(at: float, payload: bytes, node: int | None = None, count: int = 1) -> Ask:
    return Ask(at, Publish("t", payload), node, count)


def refuse() -> Effects:
    raise UsageError("not me")


def full() -> Effects:
    raise CapacityExceeded("not now")


def test_asks_come_each_at_its_time_however_they_are_planned() -> None:
    simulator, _, asked = stage(3)
    applications = Applications(simulator, find_kind("ring").make())
    applications.plan([ask(2.5, b"late", 2), ask(0.5, b"early", 1)])
    applications.run(INTERVAL)
    applications.plan([ask(1.25, b"between", 0, count=2), ask(0, b"past", 1)])
    applications.run(3 * INTERVAL)
    assert asked == [
        (50, 1, b"early"),
        (100, 1, b"past"),
        (125, 0, b"between"),
        (125, 0, b"between"),
        (250, 2, b"late"),
    ]
    assert (applications.refused, simulator.tick) == (0, 4 * INTERVAL)


def test_who_refuses_is_passed_over_and_who_is_full_is_not() -> None:
    simulator, nodes, asked = stage(3)
    nodes[0].answer = nodes[1].answer = refuse
    assert put(simulator, ask(0, b"x"), None, Random(0)) is True
    assert asked[-1][1] == 2
    nodes[2].answer = refuse
    asked.clear()
    assert put(simulator, ask(0, b"x"), None, Random(0)) is False
    assert sorted(id for _, id, _ in asked) == [0, 1, 2]
    for node in nodes:
        node.answer = full
    asked.clear()
    assert put(simulator, ask(0, b"x"), None, Random(0)) is False
    assert len(asked) == 1
    assert put(simulator, ask(0, b"x", node=7), None, Random(0)) is None


def test_asks_that_nobody_accepts_are_counted() -> None:
    simulator, nodes, _ = stage(2)
    nodes[0].answer = refuse
    applications = Applications(simulator, find_kind("ring").make())
    applications.plan([ask(0, b"x", 0), ask(0, b"x", 1), ask(0, b"x", 7)])
    applications.run(INTERVAL)
    assert applications.refused == 2


def test_mistake_of_a_protocol_is_no_refusal() -> None:
    simulator, nodes, _ = stage(1)
    nodes[0].answer = lambda: None  # type: ignore[assignment,return-value]
    applications = Applications(simulator, find_kind("ring").make())
    applications.plan([ask(0, b"x")])
    with pytest.raises(WrongHandler):
        applications.run(INTERVAL)
