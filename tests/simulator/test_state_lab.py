"""The laboratory for states sees what is missing in one."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Deliver, Effects, Node, Notice, Send
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec
from state_lab import goes_on_identically, starts_fresh
from toys import Note

N = 5


class CountState(State):
    count: int
    heard: dict[NodeId, int]


class Count(Node):
    """Counts what it heard and tells the next one, now and then; `hidden` is in no state."""

    state_type = CountState

    def __init__(self, id: NodeId, rng: Random) -> None:
        super().__init__(id)
        self.rng = rng
        self.count, self.hidden = 0, 0
        self.heard: dict[NodeId, int] = {}

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert isinstance(message, Note)
        self.heard[self.id if sender is None else sender] = message.number
        return [Deliver.one("n", b"%d" % self.count, b"")] if self.rng.random() < 0.1 else []

    def on_timeout(self) -> Effects:
        self.count += 1
        self.hidden += 1
        return [Send((self.id + 1) % N, Note(self.count))]


class Forgetful(Count):
    """Behaves by what is in no state."""

    def on_timeout(self) -> Effects:
        super().on_timeout()
        return [Send(0, Note(self.hidden))]


class Repairing(Count):
    """Says something as it comes back."""

    def restore(self, data: bytes) -> Effects:
        return [*super().restore(data), Notice("", "back", {})]


class Counts(Overlay):
    name = "counts"

    def __init__(self, kind: Callable[[NodeId, Random], Node]) -> None:
        self.kind = kind

    def spawn(self, id: NodeId, rng: Random) -> Node:
        rng.random()  # whatever a fresh node draws must not move the run's stream
        return self.kind(id, rng)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [self.spawn(id, rng) for id in range(n)]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        assert isinstance(node, Count)
        node.count = rng.choice((0, -1, 1 << 100))
        node.heard = {rng.choice(ids): rng.randrange(-9, 9)}

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        return rng.choice(ids), Note(7)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return []


SPEC = Spec(N, 1, faults=parse_schedule("at 2 restart count=2 state=none\nat 3 corrupt count=2"))


def test_a_whole_state_goes_on_identically() -> None:
    goes_on_identically(Counts(Count), SPEC, at=(0, 2, 4))
    starts_fresh(Counts(Count), SPEC)


@pytest.mark.parametrize("kind", [Forgetful, Repairing])
def test_what_is_missing_in_a_state_is_seen(kind: type[Count]) -> None:
    with pytest.raises(AssertionError):
        goes_on_identically(Counts(kind), SPEC, at=(3,))


def test_bytes_that_are_taken_for_a_state_are_seen() -> None:
    class Trusting(Count):
        def restore(self, data: bytes) -> Effects:
            return []

    with pytest.raises((AssertionError, ValueError)):
        starts_fresh(Counts(Trusting), SPEC)
