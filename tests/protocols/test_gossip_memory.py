"""Events end: remembered for as long as a copy travels, refused when full, a limited way."""

from collections import Counter
from random import Random

import pytest

from gossip_world import World
from planaria.core.errors import CapacityExceeded
from planaria.core.forgetting import Forgetful
from planaria.core.node import Deliver, Notice, Publish, Send, Subscribe
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.memory import MEMORY, SEEN_MAX, event_memory
from planaria.protocols.gossip.messages import EVENT_HOPS_MAX, SEQUENCE_MAX, SLOWEST, Event
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.state import Waiting
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.gossip import MeasuredGossip


def member() -> GossipNode:
    """A process in the group `a`, which knows another."""
    node = GossipNode(1, Configuration(Hierarchy()), Random(1))
    node.on_command(Subscribe("a"))
    node.groups["a"].membership.view = {2: 0}
    return node


def event(number: int, hops: int = 1) -> Event:
    return Event("a", "a", number.to_bytes(16, "big"), b"", 2, number, 2, hops)


def fill(node: GossipNode) -> None:
    node.memory.generations[0] = {number.to_bytes(16, "big"): None for number in range(SEEN_MAX)}


def test_burst_above_the_old_memory_is_delivered_once_and_ends() -> None:
    """Two processes, 4,200 events: with a memory of the last 4,096 they circulated for ever."""
    faults = parse_schedule("at 1 publish count=4200")
    spec = Spec(2, 1, "legitimate", faults=faults, delay="fixed:23")
    trial = Trial(MeasuredGossip("2"), spec)
    assert trial.run().failure is None
    assert not [message for _, message in trial.simulator.channel() if isinstance(message, Event)]


def test_nothing_younger_than_the_longest_way_of_a_copy_is_forgotten() -> None:
    assert MEMORY >= EVENT_HOPS_MAX * SLOWEST
    for turn in range(0, MEMORY, 7):
        memory = event_memory()
        memory.age = turn
        assert memory.put(b"x", None)
        for _ in range(MEMORY):
            assert b"x" in memory
            memory.on_timeout()
        for _ in range(MEMORY + 1):
            memory.on_timeout()
        assert b"x" not in memory


@pytest.mark.parametrize("turn", [-(10**9), -1, 0, MEMORY, MEMORY + 1, 2**70])
def test_invented_events_are_forgotten_whatever_the_count_of_intervals(turn: int) -> None:
    node = member()
    memory = node.memory
    memory.generations, memory.age = [{b"young": None}, {b"old": None}, {b"more": None}], turn
    node.refused = -5
    for _ in range(2 * MEMORY + 1):
        assert not [it for it in node.on_timeout() if isinstance(it, Notice)]
    assert len(memory) == 0


def test_publisher_is_refused_when_as_much_is_remembered_as_there_is_room_for() -> None:
    node = member()
    fill(node)
    before = node.snapshot()
    with pytest.raises(CapacityExceeded, match="publish later"):
        node.on_command(Publish("a/b", b"one too many"))
    assert node.snapshot() == before
    for _ in range(2 * MEMORY):
        node.on_timeout()
    node.groups["a"].membership.view = {2: 0}
    assert any(isinstance(effect, Send) for effect in node.on_command(Publish("a", b"later")))


def test_copy_that_cannot_be_remembered_is_refused_and_the_application_told() -> None:
    node = member()
    fill(node)
    for number in (SEEN_MAX + 1, SEEN_MAX + 2):
        assert list(node.on_message(event(number))) == []
    assert len(node.memory) == SEEN_MAX
    notices = [effect for effect in node.on_timeout() if isinstance(effect, Notice)]
    assert notices == [Notice("#", "refused", {"copies": 2, "remembered": SEEN_MAX})]
    assert not [effect for effect in node.on_timeout() if isinstance(effect, Notice)]


def test_event_waits_for_room_as_for_its_group() -> None:
    node = member()
    node.groups["a"].membership.view = {}
    node.on_command(Publish("a", b"early"))
    fill(node)
    node.groups["a"].membership.view = {2: 0}
    node.on_timeout()
    assert [it.payload for it in node.outbox] == [b"early"]
    node.memory = event_memory()
    delivered = [effect for effect in node.on_timeout() if isinstance(effect, Deliver)]
    assert [one.payload for effect in delivered for one in effect.publications] == [b"early"]


@pytest.mark.parametrize(("hops", "onward"), [(0, 1), (EVENT_HOPS_MAX - 1, 1), (EVENT_HOPS_MAX, 0)])
def test_event_that_came_far_enough_is_delivered_and_goes_no_further(
    hops: int, onward: int
) -> None:
    effects = member().on_message(event(1, hops))
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    assert len([effect for effect in effects if isinstance(effect, Deliver)]) == 1
    assert [it.hops for it in sent if isinstance(it, Event)] == [hops + 1] * onward


class NoMemory(Forgetful[bytes, None]):
    """Remembers nothing."""

    def put(self, name: bytes, value: None) -> bool:
        return True


def test_event_among_processes_that_forget_everything_is_seen_going_in_circles_and_ends() -> None:
    world = World({0: ["a"], 1: ["a"]})
    world.simulator._observers["effect"].clear()  # it is delivered again and again
    for node in world.processes:
        node.memory = NoMemory(SEEN_MAX, MEMORY)
    world.simulator.command(0, Publish("a", b"round"))
    seen: Counter[str] = Counter()
    for _ in range(EVENT_HOPS_MAX):
        world.run(1)
        seen.update(
            {it.detail.split(" ", 1)[1] for it in world.wrong() if it.invariant == "events"}
        )
    assert any("in circles" in detail for detail in seen)
    assert not [it for _, it in world.simulator.channel() if isinstance(it, Event)]


def test_event_whose_sender_does_not_remember_it_is_not_legitimate() -> None:
    """It can come back and be delivered again."""
    world = World({0: ["a"], 1: ["a"]})
    world.simulator.command(0, Publish("a", b"x"))
    assert world.wrong() == []
    world[0].memory = event_memory()
    assert [(it.invariant, it.node) for it in world.wrong()] == [("events", 1)]


@pytest.mark.parametrize("number", [-1, -(2**63), SEQUENCE_MAX, SEQUENCE_MAX + 1, 2**100])
def test_impossible_number_of_publications_is_counted_anew(number: int) -> None:
    node = member()
    node.published = number
    effects = node.on_command(Publish("a", b"x"))
    delivered = [effect for effect in effects if isinstance(effect, Deliver)]
    assert [one.sequence for effect in delivered for one in effect.publications] == [0]


def test_impossible_events_that_wait_are_not_sent_and_others_are() -> None:
    node = member()
    node.outbox = [
        Waiting("a", bytes(16), b"number", -1),
        Waiting("a", bytes(16), b"number", SEQUENCE_MAX + 1),
        Waiting("a", bytes(40), b"long id", 0),
        Waiting("+", bytes(16), b"no topic", 0),
        Waiting("a", bytes(16), b"mine", 3),
    ]
    delivered = [effect for effect in node.on_timeout() if isinstance(effect, Deliver)]
    assert [one.payload for effect in delivered for one in effect.publications] == [b"mine"]


@pytest.mark.parametrize("delay", ["fixed:1200", "fixed:3000"])
def test_delays_beyond_every_patience_deliver_nothing_twice(delay: str) -> None:
    """Tables may not heal where each answer comes too late, but events still end."""
    faults = parse_schedule("at 1 publish count=20\nat 60 publish count=20")
    spec = Spec(6, 2, faults=faults, delay=delay, intervals=100)
    _, violation = Trial(MeasuredGossip(), spec).judge()
    assert violation is None or violation.checker == "convergence"
