"""Any state can be the first one: arbitrary tables and messages in flight, from a seed."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.gossip.links import LACKING_MAX, LINK_AGE_MAX
from planaria.protocols.gossip.membership import PATIENCE, Membership
from planaria.protocols.gossip.messages import (
    AGE_MAX,
    NEIGHBOURHOOD,
    Check,
    Contact,
    Event,
    Found,
    Gone,
    Search,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
)
from planaria.protocols.gossip.node import SETTLE, GossipNode, Group

GHOSTS = (900_001, 900_002, 900_003)  # ids of processes that never lived
OVERSIZED = 60  # entries of a table that is too long


def corrupt_process(
    node: GossipNode, ids: Sequence[NodeId], topics: Sequence[str], rng: Random
) -> None:
    """Arbitrary tables: the dead, ghosts, other groups' members, itself, too many, none at all."""
    if rng.random() < 0.3:  # groups that the application never asked for, or none
        wrong = rng.sample(list(topics), min(2, len(topics)))
        node.groups = {topic: node.groups.get(topic) or node._new(topic) for topic in wrong}
    if rng.random() < 0.2:
        node.groups = {}
    corrupt_membership(node.neighbours, ids, rng)
    for group in node.groups.values():
        corrupt_group(group, ids, topics, rng)
    # What was delivered is the application's memory: to lose it is a restart without state.
    node.seen.update(dict.fromkeys(rng.randbytes(16) for _ in range(rng.randrange(4))))


def corrupt_group(group: Group, ids: Sequence[NodeId], topics: Sequence[str], rng: Random) -> None:
    """Arbitrary tables of one group."""

    def contacts(count: int) -> dict[NodeId, tuple[str, int]]:
        return {
            id: (rng.choice(topics), rng.randrange(-2, LINK_AGE_MAX + 9))
            for id in _some(ids, rng, count)
        }

    corrupt_membership(group.membership, ids, rng)
    group.links.contacts = contacts(rng.choice([0, 2, 5, OVERSIZED]))
    group.links.denied = contacts(rng.choice([0, 2, OVERSIZED]))
    group.links.lacking = rng.randrange(-3, 2 * LACKING_MAX)
    group.intervals = rng.randrange(SETTLE + 1)


def corrupt_membership(membership: Membership, ids: Sequence[NodeId], rng: Random) -> None:
    """An arbitrary view and sketch."""

    def ages(count: int, limit: int) -> dict[NodeId, int]:
        return {id: rng.randrange(-2, limit) for id in _some(ids, rng, count)}

    membership.view = ages(rng.choice([0, 1, 3, OVERSIZED]), AGE_MAX + 9)
    membership.asked = ages(rng.choice([0, 3]), PATIENCE + 3)
    membership.sketch = ages(rng.choice([0, 3, OVERSIZED]), AGE_MAX + 9)  # ids are tiny hashes
    membership.remembered = ages(rng.choice([0, 3, OVERSIZED]), AGE_MAX + 9)
    membership.denied = ages(rng.choice([0, 3, OVERSIZED]), AGE_MAX + 9)
    membership.size = rng.choice([1, 2, 1000, 10**9])


def forge_message(ids: Sequence[NodeId], topics: Sequence[str], rng: Random) -> Message:
    """A well-formed message with arbitrary content."""

    def id() -> NodeId:
        return rng.choice([*ids, *GHOSTS])

    def entries() -> tuple[tuple[NodeId, int], ...]:
        return tuple((id(), rng.randrange(AGE_MAX + 1)) for _ in range(rng.randrange(6)))

    def contacts() -> tuple[Contact, ...]:
        return tuple((each, rng.choice(topics), age) for each, age in entries())

    group = rng.choice([*topics, NEIGHBOURHOOD])
    swapped = rng.choice([None, tuple(each for each, _ in entries())])
    wanted = tuple(rng.sample(list(topics), min(2, len(topics))))
    hops, random_id = rng.randrange(17), rng.randbytes(16)
    forged: list[Message] = [
        Shuffle(group, id(), entries(), entries(), contacts(), swapped),
        Subscription(group, id(), hops),
        Unsubscription(group, id(), entries()),
        Gone(group, id()),
        Check(group, id(), hops),
        Superprocesses(group, id(), entries()),
        Search(id(), wanted, hops),
        Found(contacts()),
        Event(group, rng.choice(topics), random_id, b"forged", id(), 0, id()),
    ]
    return rng.choice(forged)


def _some(ids: Sequence[NodeId], rng: Random, count: int) -> list[NodeId]:
    return [rng.choice([*ids, *GHOSTS]) for _ in range(count)]
