"""The gossip overlay as a whole: how to make, break and judge a network of `GossipNode`."""

from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import Any

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import Command, Node, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.protocols.gossip.arbitrary import corrupt_process, forge_message
from planaria.protocols.gossip.hierarchy import ROOT, Hierarchy, filter_of
from planaria.protocols.gossip.legitimacy import violations
from planaria.protocols.gossip.links import GAP_MAX
from planaria.protocols.gossip.membership import PATIENCE
from planaria.protocols.gossip.messages import AGE_MAX, SLOWEST, speaker
from planaria.protocols.gossip.messages import MESSAGES as GOSSIP_MESSAGES
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.gossip.sketch import SKETCH_AGE_MAX
from planaria.protocols.gossip.state import GossipNodeState
from planaria.protocols.gossip.tables import give_tables

# A hierarchy with a gap (nobody asks for a/b/c itself) and a topic with two supertopics.
TOPICS = (ROOT, "a", "a/b", "a/b/c/d", "e", "e/f", "a/g")
SUPERTOPICS: Mapping[str, Sequence[str]] = {"e/f": ("a/g",)}
CONTACTS = (0, 1, 2)  # whom a newcomer asks first
GROUPS_MAX = 32  # levels of a chain given as a list of sizes
TRIPS = 10  # messages one after the other on the way to legitimate tables
STRANGERS = 20  # a search among so many more takes an interval longer, where groups are smallest


class GossipOverlay(Overlay):
    """Hierarchical topics by gossip: best effort, two small tables per topic, no parasites.

    `groups` are the sizes of a chain of topics from the root down, as in the paper's section VII;
    without it the processes spread over a small hierarchy.
    """

    name = "gossip"
    messages = GOSSIP_MESSAGES
    # Whom nobody answers is forgotten after PATIENCE: by then a false age or suspicion has shown.
    calm = PATIENCE + 1
    delay_max = SLOWEST  # what patience and memory are made for

    def __init__(self, groups: str = "", parameters: Parameters | None = None) -> None:
        self.sizes = parse_sizes(groups)
        self.topics = chain(len(self.sizes)) if self.sizes else TOPICS
        self.configuration = Configuration(
            hierarchy=Hierarchy({} if self.sizes else SUPERTOPICS),
            default=parameters or Parameters(),
            contacts=CONTACTS,
        )

    def bound(self, n: int, delay: float) -> int:
        """Intervals after the last fault within which `n` processes are legitimate.

        False news dies when it is AGE_MAX old, in views and links; only then does nobody renew it
        in sketches, where it may become SKETCH_AGE_MAX old. It is one older per hop, and a hop
        takes `delay` and less than an interval until it is handed on or a timeout makes it older.
        A lonely process searches every GAP_MAX intervals, longer the more strangers there are, and
        ten messages (an unanswered question, a search, its answer, a subscription, an exchange)
        come one after the other. No message may take longer than `delay` intervals, nor than
        SLOWEST, for which the patience is made.
        """
        strangers = (sum(self.sizes) or n) // STRANGERS
        false = (AGE_MAX + SKETCH_AGE_MAX) * (1 + delay)
        return ceil(false + TRIPS * delay) + GAP_MAX + strangers

    def interests(self, id: NodeId) -> list[str]:
        """What process `id` subscribes to: in a chain the place says, else a hash of the id."""
        if self.sizes:
            place = id % sum(self.sizes)
            for topic, size in zip(self.topics, self.sizes, strict=True):
                if place < size:
                    return [topic]
                place -= size
        topic = self.topics[stable_hash("topic", id, bits=32) % len(self.topics)]
        unrelated = {"a/b": "e", "e/f": "a/b/c/d"}.get(topic)  # some want two unrelated topics
        return [topic] if unrelated is None or id % 2 else [topic, unrelated]

    def spawn(self, id: NodeId, rng: Random) -> GossipNode:
        """A newcomer knows its wishes and the contacts."""
        node = GossipNode(id, self.configuration, rng)
        for topic in self.interests(id):
            node.on_command(Subscribe(filter_of(topic)))
        return node

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """All processes join at once; a chain says how many there are."""
        return [self.spawn(id, rng) for id in range(sum(self.sizes) or n)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Tables drawn at random, as after a long time."""
        nodes = [self.spawn(id, rng) for id in range(sum(self.sizes) or n)]
        give_tables(nodes, rng)
        return [*nodes]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary tables; what the application asked for stays."""
        assert isinstance(node, GossipNode)
        corrupt_process(node, ids, self.topics, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message to anybody."""
        return rng.choice(ids), forge_message(ids, self.topics, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name a message speaks, whoever sent it."""
        return speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Compare with the wishes of the live processes."""
        configuration = self.configuration
        return violations(
            states, channel, lambda topic: configuration.of(topic).z, configuration.hierarchy.supers
        )

    def may_crash(self, node: Node) -> bool:
        """All but one contact: who joins after all contacts died has nobody to ask."""
        return node.id != CONTACTS[0]

    def leave(self, node: Node) -> Command | None:
        """Unsubscribe from the first topic."""
        assert isinstance(node, GossipNode)
        if not node.subscribed:
            return None
        return Unsubscribe(filter_of(node.subscribed[0]))

    def publication(self, id: NodeId, number: int) -> Command | None:
        """An event on one of the process's own topics, wherever it is in the hierarchy."""
        named = [topic for topic in self.interests(id) if topic]
        return Publish(named[number % len(named)], f"{number}".encode()) if named else None

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """Each of its topics, with all below it."""
        return [Subscribe(filter_of(topic)) for topic in self.interests(id)]

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """Sizes of groups and tables at this moment."""
        processes = [it for _, it in sorted(states.items()) if isinstance(it, GossipNodeState)]
        rows = []
        for topic in self.topics:
            groups = [it.groups[topic] for it in processes if topic in it.groups]
            tables = [len(each.membership.view) + len(each.links.contacts) for each in groups]
            rows.append(
                {
                    "topic": filter_of(topic),
                    "alive": len(groups),
                    "table_max": max(tables, default=0),
                    "table_mean": sum(tables) / max(1, len(tables)),
                }
            )
        parasites = sum(it.parasites for it in processes)
        return {"processes": len(processes), "groups": rows, "parasites_so_far": parasites}


def parse_sizes(text: str) -> tuple[int, ...]:
    """`10,100,1000` as sizes of groups from the root down."""
    try:
        sizes = tuple(int(part) for part in text.split(",") if text)
    except ValueError:
        raise UsageError(
            f"groups {text!r}: write sizes from the root down, as 10,100,1000"
        ) from None
    if len(sizes) > GROUPS_MAX or any(size < 1 for size in sizes) or sum(sizes) > 10**6:
        raise UsageError(
            f"groups {text!r}: 1 to {GROUPS_MAX} sizes of at least 1, a million in all"
        )
    return sizes


def chain(levels: int) -> tuple[str, ...]:
    """The topics T0, T1, ... of a chain, from the most general down: `t0`, `t0/t1`, ..."""
    return tuple("/".join(f"t{place}" for place in range(level + 1)) for level in range(levels))


def gossip_overlay(
    g: float = 5.0, a: int = 1, z: int = 3, b: float = 3.0, c: float = 5.0
) -> GossipOverlay:
    """An overlay with these dials for every group."""
    return GossipOverlay(parameters=Parameters(g, a, z, b, c, tau=z))
