"""Any state can be the first one: arbitrary tables and messages in flight, from a seed.

Every variable is filled with what memory can hold: negative, huge and boundary values, ids that
none can have, tables far too long. In some processes all tables tell of the same ghosts, fresh, so
that the processes confirm each other.
"""

from collections.abc import Callable, Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message
from planaria.protocols.gossip.group import ALONE_AFTER, Group
from planaria.protocols.gossip.hierarchy import filter_of
from planaria.protocols.gossip.links import LACKING_MAX, LINK_AGE_MAX, Links
from planaria.protocols.gossip.membership import PATIENCE, Membership
from planaria.protocols.gossip.memory import MEMORY, EventMemory
from planaria.protocols.gossip.messages import (
    AGE_MAX,
    ENTRIES_MAX,
    EVENT_HOPS_MAX,
    NEIGHBOURHOOD,
    SEQUENCE_MAX,
    SKETCH_SIZE,
    Contact,
    ContactCheck,
    Event,
    Found,
    Gone,
    Search,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
)
from planaria.protocols.gossip.node import OUTBOX_MAX, GossipNode
from planaria.protocols.gossip.sketch import SKETCH_AGE_MAX, rank
from planaria.protocols.gossip.state import Waiting

GHOSTS = (900_001, 900_002, 900_003)  # ids of processes that never lived
COUNTS = (0, 1, 3, 60, 200)  # entries of a table: no view, sketch or list may hold the most

Ids = Callable[[int], list[NodeId]]  # so many ids, of which some may be alike


def corrupt_process(
    node: GossipNode, ids: Sequence[NodeId], topics: Sequence[str], rng: Random
) -> None:
    """Arbitrary tables: the dead, ghosts, other groups' members, itself, too many, none at all."""
    if rng.random() < 0.3:  # groups that the application never asked for, or none
        wrong = rng.sample(list(topics), min(2, len(topics)))
        node.groups = {topic: node.groups.get(topic) or node._new(topic) for topic in wrong}
    if rng.random() < 0.2:
        node.groups = {}
    conspiracy = rng.random() < 0.3

    def some(count: int) -> list[NodeId]:
        if conspiracy:
            return list(GHOSTS)
        drawn = [rng.choice([*ids, *GHOSTS]) for _ in range(count)]
        return drawn if rng.random() < 0.8 else [*drawn, any_integer(rng, 0, NODE_ID_MAX)]

    corrupt_membership(node.neighbours, some, topics, rng, fresh=conspiracy)
    for group in node.groups.values():
        corrupt_group(group, some, topics, rng, fresh=conspiracy)
    corrupt_memory(node.memory, rng)
    node.outbox = [_waiting(topics, rng) for _ in range(rng.choice([0, 0, 1, 2, 2 * OUTBOX_MAX]))]
    node.published = any_integer(rng, 0, SEQUENCE_MAX)
    node.refused = any_integer(rng, 0)
    patterns = [*map(filter_of, topics), *topics, "+/a", "\0"]
    node.joining = [rng.choice(patterns) for _ in range(rng.choice([0, 1, 3, 100]))]


def corrupt_memory(memory: EventMemory, rng: Random) -> None:
    """Events that nobody published; what was delivered is the application's memory and stays."""
    if rng.random() < 0.1:
        memory.generations.append({})
    for generation in memory.generations:
        invented = [rng.randbytes(rng.choice([0, 16, 40])) for _ in range(rng.choice([0, 3, 200]))]
        generation.update(dict.fromkeys(invented))
    memory.age = any_integer(rng, 0, MEMORY)


def corrupt_group(
    group: Group, some: Ids, topics: Sequence[str], rng: Random, *, fresh: bool
) -> None:
    """Arbitrary tables of one group."""

    def contacts() -> dict[NodeId, tuple[str, int]]:
        return {
            id: (rng.choice([*topics, NEIGHBOURHOOD]), _age(rng, LINK_AGE_MAX, fresh))
            for id in some(rng.choice(COUNTS))
        }

    corrupt_membership(group.membership, some, topics, rng, fresh=fresh)
    links: Links = group.links
    links.contacts, links.denied = contacts(), contacts()
    links.lacking = any_integer(rng, 0, LACKING_MAX)
    if rng.random() < 0.1:
        links.me, links.topic = some(1)[0], rng.choice(topics)
    group.intervals = any_integer(rng, 0, ALONE_AFTER)


def corrupt_membership(
    membership: Membership, some: Ids, topics: Sequence[str], rng: Random, *, fresh: bool
) -> None:
    """An arbitrary view and sketch."""

    def ages(limit: int) -> dict[NodeId, int]:
        return {id: _age(rng, limit, fresh) for id in some(rng.choice(COUNTS))}

    membership.view = ages(AGE_MAX)
    membership.asked = ages(PATIENCE)
    if rng.random() < 0.5:
        membership.asked |= {id: any_integer(rng, 0, PATIENCE) for id in membership.view}
    hashes = [_hash(id, rng) for id in some(rng.choice(COUNTS))]
    membership.sketch = {hashed: _age(rng, SKETCH_AGE_MAX, fresh) for hashed in hashes}
    membership.remembered = ages(AGE_MAX)
    membership.denied = ages(AGE_MAX)
    membership.size = any_integer(rng, 0, 1000)
    if rng.random() < 0.1:
        membership.me, membership.group = some(1)[0], rng.choice(topics)


def forge_message(ids: Sequence[NodeId], topics: Sequence[str], rng: Random) -> Message:
    """A well-formed message with arbitrary content."""

    def id() -> NodeId:
        return rng.choice([*ids, *GHOSTS, NODE_ID_MAX])

    def entries(most: int = ENTRIES_MAX) -> tuple[tuple[NodeId, int], ...]:
        count = rng.choice([0, 1, 3, 5, most])
        return tuple((id(), rng.choice([0, rng.randrange(AGE_MAX), AGE_MAX])) for _ in range(count))

    def hashes() -> tuple[tuple[int, int], ...]:
        return tuple(
            (min(abs(_hash(id, rng)), NODE_ID_MAX), age) for id, age in entries(SKETCH_SIZE)
        )

    def contacts() -> tuple[Contact, ...]:
        return tuple((each, rng.choice(topics), age) for each, age in entries())

    group = rng.choice([*topics, NEIGHBOURHOOD])
    swapped = rng.choice([None, tuple(each for each, _ in entries())])
    wanted = tuple(rng.sample(list(topics), min(2, len(topics))))
    hops = rng.choice([0, 1, rng.randrange(17), ENTRIES_MAX])
    forged: list[Message] = [
        Shuffle(group, id(), entries(), hashes(), contacts(), swapped),
        Subscription(group, id(), hops),
        Unsubscription(group, id(), entries()),
        Gone(group, id()),
        ContactCheck(group, id(), hops),
        Superprocesses(group, id(), entries()),
        Search(id(), wanted, hops),
        Found(contacts()),
        forge_event(ids, topics, rng),
    ]
    return rng.choice(forged)


def forge_event(ids: Sequence[NodeId], topics: Sequence[str], rng: Random) -> Event:
    """An event that nobody published."""
    group, topic = rng.choice([*topics, NEIGHBOURHOOD]), rng.choice(topics)
    sender, hops = rng.choice([*ids, *GHOSTS]), rng.choice([0, 1, EVENT_HOPS_MAX])
    sequence = rng.choice([0, SEQUENCE_MAX])
    return Event(
        group, topic, rng.randbytes(16), b"forged", rng.choice(ids), sequence, sender, hops
    )


def _waiting(topics: Sequence[str], rng: Random) -> Waiting:
    """An event that the process would have to send, with an impossible id or number perhaps."""
    topic, sequence = rng.choice([*topics, NEIGHBOURHOOD]), any_integer(rng, 0, SEQUENCE_MAX)
    return Waiting(topic, rng.randbytes(rng.choice([16, 16, 16, 0, 40])), b"waiting", sequence)


def _age(rng: Random, limit: int, fresh: bool) -> int:
    if fresh:
        return rng.randrange(2)
    return rng.randrange(limit) if rng.random() < 0.5 else any_integer(rng, 0, limit)


def _hash(id: NodeId, rng: Random) -> int:
    """The hash of `id`, or a tiny one, or any number."""
    return rng.choice([rank(id), id, any_integer(rng, 0, NODE_ID_MAX)])
