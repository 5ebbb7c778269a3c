"""The simulator's bookkeeper: ticks as intervals, lives of nodes, and what the trial adds to it."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from planaria.core.book import Book
from planaria.core.errors import InvariantViolation
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Deliver,
    Effects,
    Node,
    Publish,
    Published,
    Send,
    Subscribe,
)
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

N = 5


class News(Message, frozen=True, tag="bookkeeper.news"):
    id: bytes


class TellerState(State):
    count: int
    had: list[bytes]


class Teller(Node):
    """Tells everybody, once; `deaf` ones are sent nothing."""

    state_type = TellerState
    deaf: tuple[NodeId, ...] = ()
    repeats = False

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.count = 0
        self.had: list[bytes] = []

    def on_command(self, command: Command) -> Effects:
        if not isinstance(command, Publish):
            return ()
        self.count += 1
        id = b"%d.%d" % (self.id, self.count)
        others = [it for it in range(N) if it != self.id and it not in self.deaf]
        return [Published(command.topic, id), *(Send(it, News(id)) for it in others)]

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert isinstance(message, News)
        if message.id in self.had and not self.repeats:
            return ()
        self.had.append(message.id)
        return [Deliver.one("news", message.id, b"")]


class Deaf(Teller):
    deaf = (2,)


class Repeating(Teller):
    repeats = True


class Tellers(Overlay):
    name = "tellers"
    delivers_once = False
    calm = 2

    def __init__(self, kind: type[Teller] = Teller) -> None:
        self.kind = kind

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return self.kind(id)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [self.kind(id) for id in range(n)]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        assert isinstance(node, Teller)
        node.had = []
        node.count += 1000  # not a number of the past

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        return rng.choice(ids), News(rng.randbytes(4))

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return []

    def publication(self, id: NodeId, number: int) -> Command | None:
        return Publish("news")

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        return [Subscribe("news")]

    def book(self) -> Book:
        return Book(lambda one, other: one.pattern == other.topic, within=2, own=False)


def spec(faults: str, start: str = "legitimate") -> Spec:
    return Spec(N, 3, start, parse_schedule(faults), closure=6)


def test_a_run_without_faults_has_a_book_without_gaps() -> None:
    trial = Trial(Tellers(), spec("at 1 publish count=3\nat 2.5 publish topic=news node=4"))
    assert trial.run().legitimate
    assert trial.book is not None
    found = trial.book.summary(trial.time)
    assert (found.published, found.due, found.once) == (4, 16, 16)
    assert {it.time for it in trial.book.published.values()} == {1.0, 2.5}


def test_a_wrong_delivery_counts_once() -> None:
    trial = Trial(Tellers(Repeating), spec("at 1 publish count=6 node=1"))
    trial.suffer()
    trial.simulator.run_interval()
    assert trial.judged() == []
    trial.simulator.inject(3, News(next(iter(trial.book.published))))  # type: ignore[union-attr]
    trial.simulator.run_interval()
    assert [str(it).partition(":")[0] for it in trial.violations()] == ["delivery at 3"]
    assert len(trial.judged()) == 1
    assert trial.judged() == []


def test_what_is_missed_counts_until_it_is_delivered() -> None:
    trial = Trial(Tellers(Deaf), spec("at 1 publish node=1"))
    trial.suffer()
    trial.simulator.run_interval()
    assert trial.judged() == []
    for _ in range(3):
        trial.simulator.run_interval()
        assert [str(it).partition(":")[0] for it in trial.judged()] == ["missed at 2"]
    trial.simulator.inject(2, News(b"1.1"))
    trial.simulator.run_interval()
    assert trial.judged() == []


def test_the_trial_fails_on_what_the_book_says() -> None:
    with pytest.raises(InvariantViolation, match="client 0 was not given"):
        must_heal(Tellers(Deaf), spec("at 1 publish count=6 node=1"))


@pytest.mark.parametrize(
    "faults",
    [
        "at 1 publish count=4\nat 1 for 3 partition groups=2",
        "at 1 publish count=4\nat 2 restart share=1 state=none\nat 3 replay count=30",
        "at 1 publish count=4\nat 2 corrupt share=1\nat 3 replay count=30",
        "at 1 publish count=4\nat 1.1 crash count=2",
        "at 1 publish count=4\nat 2 forge count=10",
    ],
)
def test_faults_excuse_what_they_can_cause(faults: str) -> None:
    trial = Trial(Tellers(), spec(faults))
    outcome = trial.run()
    assert outcome.failure is None
    assert trial.book is not None
    assert trial.book.summary(trial.time).published == 4


class Remembering(Tellers):
    """Who owes everything that memory did not lose."""

    def book(self) -> Book:
        wants = super().book().wants
        return Book(wants, within=2, history=True, own=False)


def test_a_history_is_owed_unless_memory_was_overwritten() -> None:
    for faults, missed in (("", 1), ("\nat 2 for 1 loss rate=0", 1), ("\nat 2 corrupt count=1", 0)):
        trial = Trial(Remembering(Deaf), spec("at 1 publish node=1" + faults))
        trial.suffer()
        trial.simulator.run(900)
        assert len(trial.violations()) == missed, faults


def outcome(*, asks: bool) -> tuple[object, ...]:
    faults = "at 1 publish count=4\nat 2 corrupt share=1\nat 3 replay count=30"
    trial = Trial(Tellers(Repeating), spec(faults, "corrupt"))
    run = trial.simulator.run

    def asking(ticks: int) -> None:
        for _ in range(ticks):
            run(1)
            trial.violations()

    if asks:
        trial.simulator.run = asking  # type: ignore[method-assign]
    found = trial.run()
    assert trial.book is not None
    return found, trial.book.summary(trial.time)


def test_asking_at_any_moment_changes_nothing() -> None:
    assert outcome(asks=True) == outcome(asks=False)
