"""Events: who gets them, how often, from which tables; subscriptions and publishers."""

from collections import Counter
from math import exp
from random import Random

import pytest

from gossip_world import World, chain_wishes
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Deliver, Publish, Published, Send, Subscribe, Unsubscribe
from planaria.protocols.gossip.dissemination import disseminate
from planaria.protocols.gossip.hierarchy import Hierarchy, filter_of, group_of
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import Event, Gone
from planaria.protocols.gossip.node import (
    OUTBOX_MAX,
    Configuration,
    GossipNode,
)
from planaria.protocols.gossip.parameters import Parameters

EVENT = Event("a/b", "a/b", b"id", b"payload", 1, 0, 1, 0)


def process(*topics: str) -> GossipNode:
    node = GossipNode(1, Configuration(Hierarchy()), Random(1))
    for topic in topics:
        node.on_command(Subscribe(filter_of(topic)))
    return node


def sends(tables: tuple[Membership, Links], dials: Parameters, rng: Random) -> list[Send]:
    effects = disseminate(EVENT, *tables, dials, rng, publisher=False)
    return [effect for effect in effects if isinstance(effect, Send)]


def test_event_goes_to_ln_s_plus_c_different_members_rounded_up() -> None:
    view = dict.fromkeys(range(100, 140), 0)
    tables = Membership(1, "a/b", view=view, size=1000), Links(1, "a/b")
    targets = [send.target for send in sends(tables, Parameters(), Random(1))]
    assert len(targets) == len(set(targets)) == 12  # ln 1000 + 5 = 11.9
    assert set(targets) <= set(view)


def test_whole_number_of_targets_is_not_rounded_up_once_more() -> None:
    """Erratum 2."""
    assert Parameters().fanout(exp(3) * (1 + 1e-12)) == 8
    assert Parameters().fanout(exp(3) * 1.01) == 9


def test_event_is_passed_on_in_the_group_of_the_forwarder() -> None:
    """Erratum 18: under the event's own topic members above it would seem to be members below."""
    tables = Membership(1, "a", view=dict.fromkeys([2, 3], 0), size=3), Links(1, "a")
    words = [it.message for it in sends(tables, Parameters(), Random(1))]
    assert [(it.group, it.topic) for it in words if isinstance(it, Event)] == [("a", "a/b")] * 2


def test_publisher_takes_no_copy_of_its_own_event() -> None:
    """Erratum 19."""
    node = process("a")
    node.groups["a"].membership.view = {2: 0}
    node.on_timeout()
    effects = node.on_command(Publish("a", b"mine"))
    [copy] = [it.message for it in effects if isinstance(it, Send) and it.target == 2][-1:]
    assert isinstance(copy, Event)
    assert list(node.on_message(copy, 2)) == []


def test_small_group_is_sent_to_whole_however_large_c_is() -> None:
    tables = Membership(1, "a/b", view=dict.fromkeys([2, 3, 4], 0), size=4), Links(1, "a/b")
    targets = [send.target for send in sends(tables, Parameters(), Random(1))]
    assert sorted(targets) == [2, 3, 4]
    assert sends((Membership(1, "a/b"), Links(1, "a/b")), Parameters(), Random(1)) == []


def test_relays_elect_themselves_with_probability_g_over_s_and_send_to_a_of_z() -> None:
    contacts = dict.fromkeys([7, 8, 9], ("a", 0))
    tables = Membership(1, "a/b", size=100), Links(1, "a/b", contacts)
    rng, tries = Random(3), 20_000
    counts = Counter(len(sends(tables, Parameters(g=5, a=2), rng)) for _ in range(tries))
    assert set(counts) == {0, 2}
    assert abs(counts[2] / tries - 0.05) < 0.006


def test_publisher_always_relays() -> None:
    tables = Membership(1, "a/b", size=10**6), Links(1, "a/b", {7: ("a", 0)})
    effects = disseminate(EVENT, *tables, Parameters(), Random(1), publisher=True)
    assert [effect.target for effect in effects if isinstance(effect, Send)] == [7]


@pytest.mark.parametrize(
    ("pattern", "group"),
    [("a/b/#", "a/b"), ("a/b", "a/b"), ("#", ""), ("a/**", "a"), ("a/b/>", "a/b")],
)
def test_subscription_is_to_a_topic_and_all_below(pattern: str, group: str) -> None:
    assert group_of(pattern) == group


@pytest.mark.parametrize("pattern", ["a/+/#", "+", "/#", "a/#/b", "", "$SYS/x"])
def test_subscription_that_is_no_subtree_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        group_of(pattern)


def test_topic_cannot_be_its_own_supertopic() -> None:
    with pytest.raises(UsageError, match="its own supertopic"):
        Hierarchy({"a": ["a/b"]})


def test_more_branches_of_supertopics_than_tables_hold_are_refused() -> None:
    declared = {f"a{one}": [f"b{one}{two}" for two in range(7)] for one in range(4)}
    Hierarchy(declared | {"x": ["a0", "a1", "a2"]})  # 1, 3 and 3 * 7 of them
    with pytest.raises(UsageError, match="'x': more than 32 branches"):
        Hierarchy(declared | {"x": ["a0", "a1", "a2", "a3"]})


def test_subscription_below_another_one_needs_no_second_group() -> None:
    node = process("a/b", "a", "c")
    assert list(node.groups) == ["a", "c"]
    node.on_command(Unsubscribe("a/#"))
    assert list(node.groups) == ["a/b", "c"]


def test_event_is_delivered_once_and_forwarded_once() -> None:
    node = process("a")
    node.groups["a"].membership.view = {2: 0, 3: 0}
    first = node.on_message(EVENT)
    delivered = [effect.publications for effect in first if isinstance(effect, Deliver)]
    assert [one.payload for (one,) in delivered] == [b"payload"]
    assert [effect.target for effect in first if isinstance(effect, Send)][-2:] != []
    assert list(node.on_message(EVENT)) == []


def test_parasite_is_counted_dropped_and_its_sender_told() -> None:
    node = process("x")
    effects = node.on_message(Event("a", "a/b", b"id", b"payload", 5, 0, 9, 1), 9)
    assert list(effects) == [Send(9, Gone("a", 1))]
    assert node.parasites == 1


def test_publisher_waits_until_its_group_is_found_and_is_told_when_too_much_waits() -> None:
    node = process()
    for _ in range(OUTBOX_MAX):
        [said] = node.on_command(Publish("a/b", b"early"))
        assert isinstance(said, Published)
    with pytest.raises(CapacityExceeded):
        node.on_command(Publish("a/b", b"one too many"))


def test_publisher_who_did_not_subscribe_reaches_the_group_and_gets_nothing() -> None:
    world = World({**chain_wishes(3, 6), 9: []}, seed=1)
    assert world.publish(9, "a/b", b"from outside", intervals=20) == [*range(9)]
    assert world.publish(4, "a/b", b"from inside") == [*range(9)]
    assert world.parasites() == 0


def test_publisher_above_a_topic_reaches_the_members_below() -> None:
    """A subscriber of a/# publishes on a/b: who subscribed to a/b/# must hear of it."""
    world = World(chain_wishes(3, 6), seed=1)
    assert world.publish(0, "a/b", b"down", intervals=20) == [*range(9)]


def test_process_with_unrelated_topics_gets_both_and_each_event_once() -> None:
    wishes = {0: ["a", "x"], 1: ["a"], 2: ["x"], 3: ["a/b", "x/y"], 4: ["a/b"], 5: ["x/y"]}
    world = World(wishes, seed=1, tables=False)
    world.heal(60)
    assert world.publish(4, "a/b", b"1") == [0, 1, 3, 4]
    assert world.publish(5, "x/y", b"2") == [0, 2, 3, 5]
    assert world.publish(1, "a", b"3") == [0, 1]
    assert world.parasites() == 0


def test_dials_are_per_topic() -> None:
    quiet = Parameters(c=-3.0)
    world = World({id: ["a" if id < 60 else "b"] for id in range(120)}, parameters={"a": quiet})
    before = world.simulator.sent
    world.simulator.command(5, Publish("a", b"q"))
    quiet_sends = world.simulator.sent - before
    world.simulator.command(65, Publish("b", b"l"))
    assert quiet_sends < (world.simulator.sent - before - quiet_sends) / 2


@pytest.mark.parametrize("dials", [{"g": 0}, {"a": 4}, {"tau": 4}, {"b": 1.4}, {"c": 99}])
def test_impossible_dials_are_refused(dials: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Parameters(**dials)  # type: ignore[arg-type]
