"""The contract's own behaviour: a node that reacts to nothing, effects as values."""

import msgspec
import pytest

from planaria.core.message import Message
from planaria.core.node import NOTHING, Deliver, LinkUp, Node, Publish, Send, Subscribe


def test_a_plain_node_reacts_to_nothing() -> None:
    node = Node(3)
    assert node.on_message(Message()) == NOTHING
    assert node.on_timeout() == NOTHING
    assert node.on_command(Subscribe("a")) == NOTHING
    assert NOTHING == ()


def test_effects_and_commands_are_values() -> None:
    message = Message()
    assert Send(1, message) == Send(1, message) != Send(2, message)
    assert Publish("a", b"x") == Publish("a", b"x")
    assert LinkUp(1) != LinkUp(2)
    anonymous = Deliver.one("a", b"id", b"x")
    (given,) = anonymous.publications
    assert (given.id, given.publisher, given.sequence) == (b"id", None, None)
    with pytest.raises(AttributeError):
        anonymous.topic = "b"  # type: ignore[misc]
    assert msgspec.structs.replace(anonymous, client=3).client == 3
