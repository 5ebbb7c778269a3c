"""The contract's own behaviour: a node that reacts to nothing, snapshots, effects as values."""

from typing import ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.message import Message
from planaria.core.node import NOTHING, Deliver, LinkUp, Node, Publish, Send, Subscribe


class Keeper(Node):
    """A node with state of every plain kind, and one attribute that is configuration."""

    __slots__ = ("left", "peers", "period", "seen")

    variables: ClassVar[tuple[str, ...]] = ("left", "peers", "seen")

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.left: int | None = None
        self.peers: dict[int, list[int]] = {}
        self.seen: set[int] = set()
        self.period = 10


states = st.fixed_dictionaries(
    {
        "left": st.none() | st.integers(),
        "peers": st.dictionaries(st.integers(), st.lists(st.integers(), max_size=3), max_size=3),
        "seen": st.sets(st.integers(), max_size=3),
    }
)


def test_a_plain_node_reacts_to_nothing() -> None:
    node = Node(3)
    assert node.on_message(Message()) == NOTHING
    assert node.on_timeout() == NOTHING
    assert node.on_command(Subscribe("a")) == NOTHING
    assert node.snapshot() == {}
    assert NOTHING == ()


@given(states, states)
def test_a_node_comes_back_to_its_snapshot_from_any_other_state(
    then: dict[str, object], now: dict[str, object]
) -> None:
    node = Keeper(1)
    node.restore(then)
    stored = node.snapshot()
    node.restore(now)
    node.period = 99
    node.restore(stored)
    assert node.snapshot() == stored == then
    assert (node.id, node.period) == (1, 99)


def test_a_snapshot_shares_nothing_with_the_node() -> None:
    node = Keeper(1)
    node.peers[2] = [3]
    stored = node.snapshot()
    node.peers[2].append(4)
    node.seen.add(5)
    assert stored == {"left": None, "peers": {2: [3]}, "seen": set()}
    node.restore(stored)
    node.peers[2].append(6)
    assert stored["peers"] == {2: [3]}


def test_restore_ignores_unknown_names_and_keeps_what_an_old_snapshot_lacks() -> None:
    node = Keeper(1)
    node.left = 7
    node.restore({"peers": {1: []}, "period": 5, "id": 9, "no_such_variable": 1})
    assert (node.id, node.period, node.left, node.peers) == (1, 10, 7, {1: []})


def test_effects_and_commands_are_values() -> None:
    message = Message()
    assert Send(1, message) == Send(1, message) != Send(2, message)
    assert Publish("a", b"x") == Publish("a", b"x")
    assert LinkUp(1) != LinkUp(2)
    anonymous = Deliver("a", b"id", b"x")
    assert (anonymous.publisher, anonymous.sequence) == (None, None)
    with pytest.raises(AttributeError):
        anonymous.topic = "b"  # type: ignore[misc]
    assert msgspec.structs.replace(anonymous, publisher=3).publisher == 3
