"""What an application says to the gossip overlay and hears of it; who may speak for whom."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Deliver,
    Joined,
    Leave,
    Publish,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.protocols.gossip.group import ALONE_AFTER
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.links import LACKING_MAX, WIDEN_PERIOD
from planaria.protocols.gossip.messages import (
    ContactCheck,
    Event,
    Gone,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
    speaker,
)
from planaria.protocols.gossip.node import GROUPS_MAX, Configuration, GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.simulator.trial import Spec, Trial


def process(*patterns: str) -> GossipNode:
    node = GossipNode(1, Configuration(Hierarchy()), Random(1))
    for pattern in patterns:
        node.on_command(Subscribe(pattern))
    return node


def joined(node: GossipNode) -> list[str]:
    return [it.pattern for it in node.on_timeout() if isinstance(it, Joined)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Subscribe("a", where="x > 1"), "use content"),
        (Unsubscribe("a", where="x > 1"), "use content"),
        (Subscribe("a", ordered=True), "use ring"),
        (Subscribe("a", client=3), "one client, 0"),
        (Subscribe("a/+/b"), "a topic and all below"),
        (Publish("a", attributes={"x": 1}), "put them in the payload, or use content"),
        (Publish("a", key=b""), "put them in the payload"),
        (Publish("a", headers={"x": "y"}), "put them in the payload"),
        (Publish("a", timestamp=0), "put them in the payload"),
        (Publish("a/#"), "has a wildcard"),
    ],
)
def test_what_gossip_cannot_do_is_refused_in_one_line_and_changes_nothing(
    command: Command, words: str
) -> None:
    node = process("b")
    before = node.snapshot()
    with pytest.raises(UsageError, match=words) as refused:
        node.on_command(command)
    assert "\n" not in str(refused.value)
    assert node.snapshot() == before


@pytest.mark.parametrize("view", [{}, {2: 0}])
def test_publication_is_answered_with_its_id_first(view: dict[NodeId, int]) -> None:
    """Also if it has to wait; the id is the one that is delivered."""
    node = process("a")
    node.groups["a"].membership.view = view
    effects = [*node.on_command(Publish("a", b"x"))]
    said = effects[0]
    assert isinstance(said, Published)
    assert (said.topic, said.publisher, said.sequence) == ("a", 1, 0)
    node.groups["a"].membership.view = {2: 0}
    effects += node.on_timeout()
    assert [one.id for it in effects if isinstance(it, Deliver) for one in it.publications] == [
        said.id
    ]
    assert [it for it in effects if isinstance(it, Published)] == [said]


def test_application_is_told_once_when_its_process_is_linked() -> None:
    node = process("a/b")
    group = node.groups["a/b"]
    assert joined(node) == []
    group.membership.view = {2: 0}
    assert joined(node) == []  # the supertopics are still searched for
    group.links.contacts = {3: ("a", 0)}
    assert joined(node) == ["a/b"]
    assert joined(node) == []


def test_supertopics_that_nobody_wants_are_not_waited_for_for_ever() -> None:
    node = process("a/b")
    joins = []
    for interval in range(LACKING_MAX):
        joins += [(interval, pattern) for pattern in joined(node)]
    [(interval, pattern)] = joins
    assert pattern == "a/b"
    assert ALONE_AFTER <= interval <= 3 * WIDEN_PERIOD


def test_subscription_below_another_one_and_a_second_one_are_joined_at_once() -> None:
    node = process("#")
    node.groups[""].membership.view = {2: 0}
    assert joined(node) == ["#"]
    for pattern in ("a/b", "#"):
        assert list(node.on_command(Subscribe(pattern))) == [Joined(pattern)]


def test_nobody_is_told_of_a_subscription_that_was_taken_back_or_never_made() -> None:
    node = process("a")
    node.on_command(Unsubscribe("a/#"))
    node.joining += ["a", "+", "", *(f"b{number}" for number in range(2 * GROUPS_MAX))]
    assert [joined(node) for _ in range(20)] == [[]] * 20
    assert node.joining == []


def test_a_process_has_so_many_topics_each_of_which_counts_once() -> None:
    node = process("#")
    for number in range(GROUPS_MAX - 1):
        node.on_command(Subscribe(f"t{number}"))
    node.on_command(Publish("t0", b""))
    assert node.publishing == ["t0"], "who reads what is above is in no group below"
    for command in Publish("more", b""), Subscribe("more"):
        with pytest.raises(CapacityExceeded, match="64 topics"):
            node.on_command(command)
    assert "more" not in [*node.subscribed, *node.publishing]
    node.on_command(Unsubscribe("t0/#"))
    node.on_command(Publish("more", b""))
    assert list(node.groups) == ["", "more"]


def test_all_members_of_a_fresh_network_are_told() -> None:
    trial = Trial(GossipOverlay("2,5"), Spec(7, 2, "fresh"))
    nodes = [it for it in trial.simulator.nodes.values() if isinstance(it, GossipNode)]
    assert all(node.joining for node in nodes)
    assert trial.run().failure is None
    assert [node.joining for node in nodes] == [[]] * 7


def test_leaver_is_in_no_group_and_says_so() -> None:
    node = process("a", "b")
    node.groups["a"].membership.view = {2: 0}
    node.on_command(Publish("c", b"x"))
    effects = node.on_command(Leave())
    assert [it.target for it in effects if isinstance(it, Send)] == [2]
    assert (node.subscribed, node.publishing, node.groups) == ([], [], {})


@pytest.mark.parametrize(
    "message",
    [
        Shuffle("a", 5, ((7, 0),), ((9, 0),), (), None),
        Subscription("a", 5, 0),
        Unsubscription("a", 5, ()),
        Gone("a", 5),
        ContactCheck("a", 5, 1),
        Superprocesses("", 5, ((6, 0),)),
    ],
)
@pytest.mark.parametrize("sender", [None, 3])
def test_nobody_speaks_for_another_process(message: Message, sender: NodeId | None) -> None:
    node = process("a")
    node.groups["a"].membership.view = {5: 2, 2: 0}
    node.groups["a"].links.contacts = {5: ("", 9)}
    before = node.snapshot()
    assert list(node.on_message(message, sender)) == []
    assert node.snapshot() == before
    assert node.on_message(message, speaker(message)) or node.snapshot() != before


def test_forwarded_subscription_is_taken_from_anybody() -> None:
    node = process("a")
    node.on_message(Subscription("a", 5, 1), 3)
    assert 5 in node.groups["a"].membership.view


def test_parasite_is_answered_to_whom_it_came_from_alone() -> None:
    """A forged copy that names another as its sender would have cost that one its links."""
    event = Event("a", "a/b", b"id", b"payload", 5, 0, 9, 1)
    assert list(process("x").on_message(event, None)) == []
    assert list(process("x").on_message(event, 4)) == [Send(4, Gone("a", 1))]
