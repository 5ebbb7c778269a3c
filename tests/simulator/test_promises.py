"""What the driver owes: persistence before what depends on it, links up, down, busy, ready."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Busy,
    Clock,
    Command,
    Deliver,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Persist,
    Publish,
    Published,
    Ready,
    Send,
)
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.simulator.delays import INTERVAL, fixed
from planaria.simulator.engine import Simulator
from planaria.simulator.nemesis import Nemesis
from planaria.simulator.schedule import parse_schedule
from toys import Log, Note


class ClerkState(State):
    entries: list[int]


class Clerk(Node):
    """Writes each number down, then answers and delivers; clerk 0 asks the others."""

    state_type = ClerkState
    reads_clock = False

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.entries: list[int] = []
        self.commands: list[Command] = []
        self.senders: list[NodeId | None] = []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert isinstance(message, Note)
        self.senders.append(sender)
        self.entries.append(message.number)
        if self.id == 0:
            return ()
        number = message.number
        return [
            Send(0, Note(-number)),
            Persist(),
            Deliver.one("n", b"%d" % number, b""),
            Send(0, Note(number)),
        ]

    def on_command(self, command: Command) -> Effects:
        self.commands.append(command)
        if isinstance(command, Clock):
            self.entries.append(command.seconds)
            return [Persist(), Send(0, Note(command.seconds))]
        return [Published("n", b"p")] if isinstance(command, Publish) else ()

    def on_timeout(self) -> Effects:
        return [] if self.id else [Send(1, Note(7))]


class Clerks(Overlay):
    name = "clerks"
    kind: type[Clerk] = Clerk

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return self.kind(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [self.kind(id) for id in range(n)]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None: ...

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        return rng.choice(ids), Note(99)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return []


class Office:
    """Two clerks under a schedule; what is sent takes ten ticks."""

    def __init__(self, schedule: str, overlay: Overlay | None = None, *, silent: bool = False):
        self.overlay = overlay or Clerks()
        self.simulator, self.log = Simulator(1, delay=fixed(10)), Log()
        self.simulator.phases = (100,)
        self.simulator.detects_failed_sends = not silent
        self.simulator.watch(self.log)
        for node in self.overlay.legitimate(2, Random(0)):
            self.simulator.add(node)
        self.nemesis = Nemesis(self.simulator, self.overlay, parse_schedule(schedule))

    def clerk(self, id: NodeId) -> Clerk:
        node = self.simulator.nodes[id]
        assert isinstance(node, Clerk)
        return node

    def until(self, interval: float) -> None:
        end = round(interval * INTERVAL)
        while (due := self.nemesis.next_tick) is not None and due <= end:
            self.simulator.run(due - self.simulator.tick)
            self.nemesis.advance()
        self.simulator.run(end - self.simulator.tick)

    def ask(self, *numbers: int) -> None:
        """Numbers for clerk 1, from clerk 0, one after the other."""
        for number in numbers:
            self.simulator.inject(1, Note(number), sender=0)
            self.simulator.run(1)

    def delivered(self) -> list[bytes]:
        found = [row[4] for row in self.log.rows if isinstance(row[4], Deliver)]
        return [it.id for effect in found for it in effect.publications]


@pytest.mark.parametrize(("moment", "kept"), [("before", [1]), ("after", [1, 2])])
def test_a_power_cut_loses_exactly_what_it_must(moment: str, kept: list[int]) -> None:
    office = Office(f"at 0.02 for 5 powercut count=2 moment={moment}")
    office.ask(1)
    office.until(0.03)
    victim = office.clerk(1)
    office.ask(2)
    assert office.clerk(1) is not victim
    assert office.clerk(1).entries == kept
    assert office.delivered() == [b"1"]
    office.simulator.run(20)
    assert office.clerk(0).entries == [-1, 1, -2]  # sent before the Persist: it is out
    down = [it for it in office.clerk(0).commands if isinstance(it, LinkDown)]
    assert down == [LinkDown(1, (Note(2),))]  # nobody acknowledged it
    office.ask(3)
    assert office.delivered() == [b"1", b"3"]
    assert office.clerk(1).entries == [*kept, 3]
    (injection,) = office.nemesis.report
    assert (injection.injected, injection.affected) == (2, 1)
    assert [row[4] for row in office.log.rows if row[1] == "restart"] == ["persisted"]


def test_a_clerk_that_never_persisted_begins_with_nothing() -> None:
    office = Office("at 0 for 5 powercut count=2 moment=before")
    office.until(0)
    office.ask(4)
    assert office.clerk(1).entries == []


def test_a_power_cut_that_finds_nobody_persisting_is_over_and_has_no_effect() -> None:
    office = Office("at 0 for 0.5 powercut count=2")
    office.until(0.6)
    office.ask(4)
    assert office.delivered() == [b"4"]
    assert office.nemesis.ineffective() == ["at 0 for 0.5 powercut count=2"]


def test_a_node_that_was_cut_off_as_it_read_the_clock_has_no_timeout_of_its_old_life() -> None:
    class Punctual(Clerk):
        reads_clock = True

        def on_timeout(self) -> Effects:
            return [Send(0, Note(1000 + len(self.entries)))] if self.id else []

    class Punctuals(Clerks):
        kind = Punctual

    office = Office("at 0.5 for 2 powercut count=2", Punctuals())
    office.until(1.2)
    heard = [it for it in office.clerk(0).entries if it >= 1000]
    assert heard == []
    office.until(2.2)  # a new life has a new phase
    assert [it for it in office.clerk(0).entries if it >= 1000] == [1001]


@pytest.mark.parametrize("silent", [False, True])
def test_who_lost_a_link_hears_when_it_is_up_again(silent: bool) -> None:
    office = Office("", silent=silent)
    office.simulator.remove(1)
    office.until(2.5)
    office.simulator.add(Clerk(1))
    office.until(4)
    expected = [] if silent else [LinkDown(1, (Note(7),))] * 2 + [LinkUp(1)]
    assert office.clerk(0).commands == expected


def test_a_full_link_drops_and_says_so_until_it_is_ready() -> None:
    office = Office("at 0.5 for 3 busy count=2")
    office.until(6.2)
    # Timeouts of clerk 0 at 1, 2, 3, ...: the first message fills the link, two are dropped.
    assert office.clerk(0).commands == [Busy(1), Ready(1)]
    assert office.clerk(1).entries == [7] * 4
    (injection,) = office.nemesis.report
    assert injection.affected == len(office.log.ticks("drop")) == 3  # one answer of clerk 1 too
    assert office.clerk(1).commands == [Busy(0), Ready(0)]


class Forgers(Clerks):
    """All garbage comes from nobody."""

    def link_of(self, message: Message, ids: Sequence[NodeId], rng: Random) -> NodeId | None:
        return None


def test_what_nobody_sent_has_no_sender() -> None:
    office = Office("at 2 forge count=5\nat 3 replay count=5", Forgers())
    office.until(5)
    senders = office.clerk(1).senders + office.clerk(0).senders
    assert senders.count(None) == 10
    scrambled = Office("at 1.05 scramble share=1", Forgers())
    for _ in range(20):
        scrambled.simulator.inject(1, Note(1), delay=150, sender=0)
    scrambled.until(2)
    assert {None, 0} == set(scrambled.clerk(1).senders)


def test_garbage_may_lie_on_any_link() -> None:
    office = Office("at 2 forge count=30\nat 3 replay count=30")
    office.until(5)
    assert {None, 0, 1} == {*office.clerk(1).senders, *office.clerk(0).senders}
