"""Whatever memory holds, no handler raises, and what is sent is valid on the wire."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded
from planaria.core.node import (
    Effects,
    LinkDown,
    LinkUp,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.protocols.gossip.arbitrary import corrupt_process, forge_message
from planaria.protocols.gossip.group import ALONE_AFTER
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import AGE_MAX, SKETCH_SIZE, Shuffle
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.overlay import TOPICS, GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.gossip.sketch import estimate, grow_old, merge, repair
from raw_memory import claimed_sender

Seeds = Callable[[int, int], int]

IDS = range(8)
DIALS = Parameters()


def inputs(node: GossipNode, rng: Random) -> list[Callable[[], Effects]]:
    """Everything that can happen to a process."""
    topic = rng.choice([topic for topic in TOPICS if topic])
    forged = [forge_message(IDS, TOPICS, rng) for _ in range(120)]
    commands = [
        Subscribe(topic),
        Publish(topic, b"x"),
        Unsubscribe(topic),
        LinkDown(rng.choice(IDS)),
        LinkUp(rng.choice(IDS)),
    ]
    return [
        node.on_timeout,
        *(lambda it=message: node.on_message(it, claimed_sender(it)) for message in forged),
        *(lambda it=command: node.on_command(it) for command in commands),
    ]


def test_no_handler_raises_and_all_that_is_sent_decodes_whatever_memory_holds(
    seeds: Seeds,
) -> None:
    """Tables drawn by the overlay anew before every single input, so that none is repaired."""
    codec, overlay = Codec(GossipOverlay.messages), GossipOverlay()
    for seed in range(seeds(8, 300)):
        rng = stream(seed, "totality")
        node = GossipNode(rng.choice(IDS), overlay.configuration, rng)
        for topic in overlay.interests(node.id):
            node.on_command(Subscribe(topic or "#"))
        for each in inputs(node, rng):
            corrupt_process(node, IDS, TOPICS, rng)
            try:
                effects = each()
            except CapacityExceeded:
                continue
            for effect in effects:
                if isinstance(effect, Send):
                    assert codec.decode(codec.encode(effect.message)) == effect.message


def test_generator_draws_negative_huge_and_oversized_values_for_every_variable() -> None:
    """A fault that is never injected tests nothing."""
    drawn: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    overlay = GossipOverlay()
    for seed in range(200):
        node = overlay.spawn(0, Random(seed))
        corrupt_process(node, IDS, TOPICS, Random(seed))
        drawn.setdefault("published", []).append(node.published)
        drawn.setdefault("age", []).append(node.memory.age)
        drawn.setdefault("refused", []).append(node.refused)
        drawn.setdefault("sequence", []).extend(it.sequence for it in node.outbox)
        sizes["joining"] = max(sizes.get("joining", 0), len(node.joining))
        sizes["outbox"] = max(sizes.get("outbox", 0), len(node.outbox))
        for group in node.groups.values():
            drawn.setdefault("intervals", []).append(group.intervals)
            drawn.setdefault("lacking", []).append(group.links.lacking)
            drawn.setdefault("size", []).append(group.membership.size)
            drawn.setdefault("hash", []).extend(group.membership.sketch)
            tables = ("view", "asked", "sketch", "remembered", "denied")
            held = {name: getattr(group.membership, name) for name in tables}
            for name, table in held.items():
                drawn.setdefault(name, []).extend(table.values())
                drawn.setdefault(f"{name} id", []).extend(table)
                sizes[name] = max(sizes.get(name, 0), len(table))
            for name in ("contacts", "denied"):
                ages = [age for _, age in getattr(group.links, name).values()]
                drawn.setdefault(f"links {name}", []).extend(ages)
    for name, values in drawn.items():
        assert min(values) < 0, name
        assert max(values) >= 2**62, name
    assert sizes["outbox"] > 64
    assert sizes["joining"] > 64
    assert sizes["sketch"] > 50


@pytest.mark.parametrize("intervals", [-(2**64), -1, 0, ALONE_AFTER, 2**64])
def test_group_is_found_or_given_up_whatever_its_count_of_intervals(intervals: int) -> None:
    node = GossipNode(1, Configuration(GossipOverlay().configuration.hierarchy), Random(1))
    node.on_command(Subscribe("a"))
    node.groups["a"].intervals = intervals
    for _ in range(ALONE_AFTER):
        node.on_timeout()
    assert node.groups["a"].is_found
    assert node.groups["a"].intervals == ALONE_AFTER


@pytest.mark.parametrize("key", [-1, -(2**63), 2**63, 2**100])
def test_impossible_hash_is_dropped_from_a_sketch_and_not_merged_into_one(key: int) -> None:
    """A full sketch whose largest hash was -1 divided by zero."""
    full = {key: 0, **{-2 - number: 0 for number in range(SKETCH_SIZE)}}
    assert estimate(repair(full)) == 1
    assert estimate(grow_old(full, 5)) == 1
    held: dict[int, int] = {}
    merge(held, [(key, 0)])
    assert held == {}


@pytest.mark.parametrize("age", [-1, -(2**63), AGE_MAX + 1, 2**100])
def test_ghost_of_an_impossible_age_is_not_told_of_and_dies(age: int) -> None:
    """With a negative age it was handed to and fro for ever, younger than all that is true."""
    members = [Membership(1, "a", view={2: 0, 9: age}), Membership(2, "a", view={1: 0, 9: age})]
    rng = Random(1)
    for _ in range(2 * AGE_MAX):
        for me, other in (members, members[::-1]):
            for send in me.on_timeout(DIALS, rng, ()):
                if send.target == other.me and isinstance(send.message, Shuffle):
                    assert all(0 <= stated <= AGE_MAX for _, stated in send.message.entries)
                    for answer in other.on_shuffle(send.message, DIALS, rng, ()):
                        assert isinstance(answer.message, Shuffle)
                        me.on_shuffle(answer.message, DIALS, rng, ())
    assert [list(it.view) for it in members] == [[2], [1]]
