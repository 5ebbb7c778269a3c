"""What an application says to a mobile node and is told: ids, Joined, and what is refused."""

from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.node import (
    Command,
    Deliver,
    Joined,
    Leave,
    LinkUp,
    Publish,
    Published,
    Subscribe,
    Unsubscribe,
)
from planaria.protocols.mobile.node import REFUSED, MobileNode

T = "news"


def member(id: int = 1) -> MobileNode:
    node = MobileNode(id, Random(id))
    node.on_command(Subscribe(T))
    return node


def test_publishing_is_answered_with_an_id_that_names_nobody_and_delivered_here_too() -> None:
    """Two nodes with the same random stream draw the same id: nothing else is in it."""
    published, delivered = member().on_command(Publish(T, b"x"))
    assert isinstance(published, Published)
    assert delivered == Deliver.one(T, published.id, b"x")
    assert (published.topic, published.publisher, published.sequence) == (T, None, None)
    same, other = (MobileNode(id, Random(1)) for id in (7, 8))
    for node in (same, other):
        node.on_command(Subscribe(T))
    ids = [
        node.on_command(Publish(T, payload))[0] for node, payload in ((same, b"a"), (other, b"b"))
    ]
    assert ids[0] == ids[1] == Published(T, published.id)


def test_subscription_is_in_force_at_once() -> None:
    node = MobileNode(1, Random(1))
    for _ in range(2):
        assert list(node.on_command(Subscribe(T))) == [Joined(T)]
    assert list(node.layers) == [T]


def test_leaver_leaves_all_layers() -> None:
    node = member()
    node.on_command(Subscribe("other"))
    node.on_command(Leave())
    node.on_timeout()
    assert node.layers == {}
    with pytest.raises(UsageError, match="subscribe to 'news' first"):
        node.on_command(Publish(T, b""))


REFUSALS: list[tuple[Command, str]] = [
    (Subscribe("a/+"), "wildcards"),
    (Subscribe("a/#"), "wildcards"),
    (Subscribe(), "wildcards"),
    (Unsubscribe("*"), "wildcards"),
    (Subscribe("a", where="delay > 60"), "where"),
    (Unsubscribe("a", where="delay > 60"), "where"),
    (Subscribe("a", ordered=True), "ordered"),
    (Subscribe("a", client=2), "client"),
    (Publish(T, attributes={"delay": 1}), "attributes"),
    (Publish(T, b"x", key=b"k"), "key"),
    (Publish(T, b"x", key=b""), "key"),
    (Publish(T, b"x", headers={"a": "b"}), "headers"),
    (Publish(T, b"x", timestamp=1), "timestamp"),
    (Publish(T, b"x", timestamp=0), "timestamp"),
]


@pytest.mark.parametrize(("command", "word"), REFUSALS)
def test_what_mobile_cannot_do_is_refused_in_one_line_and_changes_nothing(
    command: Command, word: str
) -> None:
    node = member()
    node.on_command(LinkUp(2))
    before = node.snapshot()
    with pytest.raises(UsageError, match=word) as refused:
        node.on_command(command)
    assert "\n" not in str(refused.value)
    assert any(hint in str(refused.value) for hint in (":", "use "))
    assert node.snapshot() == before


def test_every_refusal_is_tested() -> None:
    assert set(REFUSED) == {word for _, word in REFUSALS} - {"wildcards"}


def test_a_node_that_takes_itself_for_a_neighbour_gets_over_it() -> None:
    """Found by `planaria chaos`: no driver reports it as gone, and no judge was ever content."""
    node = MobileNode(1, Random(1))
    node.on_command(Subscribe("news"))
    node.reach = {1: None, 2: None}
    node.on_timeout()
    assert node.reach == {2: None}
