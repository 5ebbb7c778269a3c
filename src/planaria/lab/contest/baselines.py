"""What one would use instead: a broker in the middle, flooding, and plain gossip, as nodes.

None of them repairs anything. Tables are right in the beginning; nobody looks at them again.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import ceil, log
from random import Random

from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    Node,
    Publish,
    Published,
    Send,
)
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.lab.contest.baseline_messages import (
    MESSAGES,
    Acknowledge,
    Connect,
    Copy,
    Ping,
    Pong,
)
from planaria.lab.contest.workload import Workload, below

SERVER = 1 << 40
FLOOD_LINKS = 4  # each node asks for; a random graph of so many is connected
FANOUT = 5.0  # gossip goes to ln S + c, as in the gossip overlay
CLUSTER = 6  # processes of one cluster of the hierarchical broadcast
ANSWER = 3  # timeouts in which every answer comes, if nothing is lost
PATIENCE = 3  # timeouts without an answer until a client connects again


# Spreading by tables


Tables = dict[str, list[tuple[int, list[NodeId]]]]  # topic -> (how many of them, whom)


class SpreaderState(State):
    """Whom to send to, and what was sent."""

    tables: dict[str, list[tuple[int, list[int]]]]
    seen: dict[bytes, None]


class Spreader(Node):
    """Hands a new event to some of each table that belongs to its topic, and to its application."""

    state_type = SpreaderState

    def __init__(self, id: NodeId, wish: str, tables: Tables, rng: Random) -> None:
        super().__init__(id)
        self.wish, self.rng = wish, rng
        self.tables = tables
        self.seen: dict[bytes, None] = {}

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Forward once, deliver if it is wanted."""
        if not isinstance(message, Copy) or message.payload in self.seen:
            return NOTHING
        return self._spread(message.topic, message.payload, message.sender)

    def on_command(self, command: Command) -> Effects:
        """Publish; failed sends are nobody's business."""
        if isinstance(command, Publish):
            published = Published(command.topic, command.payload, self.id)
            return [published, *self._spread(command.topic, command.payload, self.id)]
        return NOTHING

    def _spread(self, topic: str, payload: bytes, sender: NodeId) -> list[Effect]:
        self.seen[payload] = None
        copy = Copy(topic, payload, self.id)
        effects: list[Effect] = [
            Send(peer, copy)
            for count, table in self.tables.get(topic, [])
            for peer in self.rng.sample(table, min(count, len(table)))
            if peer != sender
        ]
        if below(topic, self.wish):
            effects.append(Deliver.one(topic, payload, payload))
        return effects


class SpreadOverlay(Overlay):
    """Nodes with fixed tables; subclasses say which."""

    messages = MESSAGES

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.right: dict[NodeId, Tables] = {}

    @abstractmethod
    def tables(self, rng: Random) -> dict[NodeId, Tables]:
        """Whom each node may send events of each topic to."""

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """Right from the beginning: somebody wrote the tables by hand."""
        return self.legitimate(n, rng)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody with its tables."""
        self.right = self.tables(rng)
        wishes = self.workload.wishes
        return [
            Spreader(id, wishes[id], {topic: list(own) for topic, own in mine.items()}, rng)
            for id, mine in self.right.items()
        ]

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A node that knows nobody: nothing here lets it join."""
        return Spreader(id, self.workload.wishes[id], {}, rng)

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary tables."""
        assert isinstance(node, Spreader)
        node.tables = {
            topic: [(count, rng.choices(ids, k=len(table))) for count, table in own]
            for topic, own in node.tables.items()
        }

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An event that nobody published."""
        topic = rng.choice(self.workload.topics)
        return rng.choice(ids), Copy(topic, rng.randbytes(8), rng.choice(ids))

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Tables that are not what they were written to be, or name the dead."""
        found = []
        for id, state in states.items():
            assert isinstance(state, SpreaderState)
            named = [peer for own in state.tables.values() for _, table in own for peer in table]
            if state.tables != self.right[id] or any(peer not in states for peer in named):
                found.append(Violation("tables", id, "not as written, or they name the dead"))
        return found


class Flooding(SpreadOverlay):
    """Everything to all neighbours of one random graph, once."""

    name = "flooding"

    def tables(self, rng: Random) -> dict[NodeId, Tables]:
        """Each node links to some others drawn at random, for all topics alike."""
        ids = list(self.workload.wishes)
        links: dict[NodeId, dict[NodeId, None]] = {id: {} for id in ids}
        for id in ids:
            for peer in rng.sample([it for it in ids if it != id], min(FLOOD_LINKS, len(ids) - 1)):
                links[id][peer] = links[peer][id] = None
        return {
            id: {topic: [(len(peers), list(peers))] for topic in self.workload.topics}
            for id, peers in links.items()
        }


class Broadcast(SpreadOverlay):
    """Gossip in one group of all; who does not want an event gets it all the same."""

    name = "broadcast"

    def tables(self, rng: Random) -> dict[NodeId, Tables]:
        """Everybody, for all topics alike."""
        ids = list(self.workload.wishes)
        return {id: {topic: [group(ids, id)] for topic in self.workload.topics} for id in ids}


class Multicast(SpreadOverlay):
    """Gossip in one group per topic of all who want it: a table for every topic one wants."""

    name = "multicast"

    def tables(self, rng: Random) -> dict[NodeId, Tables]:
        """For each topic that a node wants, all others that do."""
        interested = {topic: self.workload.interested(topic) for topic in self.workload.topics}
        return {
            id: {topic: [group(interested[topic], id)] for topic in self.workload.wanted(id)}
            for id in self.workload.wishes
        }


class Hierarchical(SpreadOverlay):
    """Gossip broadcast within clusters that know nothing of interests, and between them."""

    name = "hierarchical"

    def tables(self, rng: Random) -> dict[NodeId, Tables]:
        """One's cluster, and the first of every other one by chance."""
        ids = rng.sample(list(self.workload.wishes), len(self.workload.wishes))
        clusters = [ids[first : first + CLUSTER] for first in range(0, len(ids), CLUSTER)]
        found = {}
        for own in clusters:
            for id in sorted(own):
                away = [rng.choice(it) for it in clusters if it is not own]
                tables = [group(own, id), group([*away, id], id)]
                found[id] = {topic: list(tables) for topic in self.workload.topics}
        return dict(sorted(found.items()))


def group(members: Sequence[NodeId], me: NodeId) -> tuple[int, list[NodeId]]:
    """ln S + c of the others."""
    others = [id for id in members if id != me]
    return max(1, ceil(log(max(1, len(members))) + FANOUT)), others


# One broker

Waiting = dict[int, tuple[Copy, int]]  # key -> what was sent, and how many timeouts ago


def key_of(copy: Copy) -> int:
    """A short name of an event, for acknowledgements."""
    return stable_hash(copy.payload, bits=63)


def overdue(waiting: Waiting) -> list[Copy]:
    """What was not acknowledged for longer than an answer takes; everything grows older."""
    for key, (copy, age) in waiting.items():
        waiting[key] = (copy, age + 1)
    return [copy for copy, age in waiting.values() if age >= ANSWER]


class ClientState(State):
    """How long the broker said nothing, what came, and what waits for its acknowledgement."""

    quiet: int
    seen: dict[bytes, None]
    waiting: dict[int, tuple[Copy, int]]


class Client(Node):
    """Connects once, pings, and connects again when nobody answers."""

    state_type = ClientState

    def __init__(self, id: NodeId, wish: str) -> None:
        super().__init__(id)
        self.wish = wish
        self.quiet = PATIENCE
        self.seen: dict[bytes, None] = {}
        self.waiting: Waiting = {}  # published, not yet acknowledged

    def on_timeout(self) -> Effects:
        """Ping; send again what was not acknowledged; connect when there was no answer."""
        effects: list[Effect] = [Send(SERVER, Ping(self.id))]
        if self.quiet >= PATIENCE:
            effects.append(Send(SERVER, Connect(self.id, self.wish)))
        self.quiet = min(max(0, self.quiet), PATIENCE) + 1
        return effects + [Send(SERVER, copy) for copy in overdue(self.waiting)]

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """An answer, an acknowledgement, or an event, which is acknowledged."""
        if isinstance(message, Pong):
            self.quiet = 0
        elif isinstance(message, Acknowledge):
            self.waiting.pop(message.key, None)
        elif isinstance(message, Copy):
            effects: list[Effect] = [Send(SERVER, Acknowledge(self.id, key_of(message)))]
            if message.payload not in self.seen:
                self.seen[message.payload] = None
                effects.append(Deliver.one(message.topic, message.payload, message.payload))
            return effects
        return NOTHING

    def on_command(self, command: Command) -> Effects:
        """Publish; a lost connection is made anew at the next timeout."""
        if isinstance(command, LinkDown):
            self.quiet = PATIENCE
        elif isinstance(command, Publish):
            copy = Copy(command.topic, command.payload, self.id)
            self.waiting[key_of(copy)] = (copy, 0)
            return [Published(command.topic, command.payload, self.id), Send(SERVER, copy)]
        return NOTHING


class ServerState(State):
    """What clients want, what came, and what waits for whose acknowledgement."""

    wishes: dict[int, str]
    seen: dict[bytes, None]
    waiting: dict[int, dict[int, tuple[Copy, int]]]


class Server(Node):
    """Knows every client's wish as it last heard it; keeps what a client has not acknowledged."""

    state_type = ServerState

    def __init__(self) -> None:
        super().__init__(SERVER)
        self.wishes: dict[NodeId, str] = {}
        self.seen: dict[bytes, None] = {}
        self.waiting: dict[NodeId, Waiting] = {}

    def on_timeout(self) -> Effects:
        """Send again what was not acknowledged."""
        return [
            Send(client, copy)
            for client, copies in self.waiting.items()
            for copy in overdue(copies)
        ]

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Answer, remember a wish, or send an event to all who want it."""
        if isinstance(message, Ping):
            return [Send(message.sender, Pong())]
        if isinstance(message, Connect):
            self.wishes[message.sender] = message.wish
        elif isinstance(message, Acknowledge):
            self.waiting.get(message.sender, {}).pop(message.key, None)
        elif isinstance(message, Copy):
            return self._publish(message)
        return NOTHING

    def on_command(self, command: Command) -> Effects:
        """A client that is gone is forgotten."""
        if isinstance(command, LinkDown):
            self.wishes.pop(command.peer, None)
            self.waiting.pop(command.peer, None)
        return NOTHING

    def _publish(self, copy: Copy) -> list[Effect]:
        effects: list[Effect] = [Send(copy.sender, Acknowledge(SERVER, key_of(copy)))]
        if copy.payload in self.seen:
            return effects
        self.seen[copy.payload] = None
        onward = Copy(copy.topic, copy.payload, SERVER)
        for client, wish in self.wishes.items():
            if below(copy.topic, wish) and client != copy.sender:
                self.waiting.setdefault(client, {})[key_of(copy)] = (onward, 0)
                effects.append(Send(client, onward))
        return effects


class Star(Overlay):
    """One broker, at least once on the wire, once at the application: what people use today."""

    name = "star"
    messages = MESSAGES

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A client; or the broker, with nothing in its memory."""
        return Server() if id == SERVER else Client(id, self.workload.wishes[id])

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """All connect at once."""
        return [self.spawn(id, rng) for id in (*self.workload.wishes, SERVER)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """All are connected."""
        nodes = self.fresh(n, rng)
        for node in nodes:
            if isinstance(node, Server):
                node.wishes = dict(self.workload.wishes)
            elif isinstance(node, Client):
                node.quiet = 0
        return nodes

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary wishes at the broker, arbitrary patience at clients."""
        topics = [*self.workload.topics, "nothing"]
        if isinstance(node, Server):
            node.wishes = {id: rng.choice(topics) for id in ids if rng.random() < 0.7}
        elif isinstance(node, Client):
            node.quiet = rng.randrange(-PATIENCE, 2 * PATIENCE)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An event that nobody published."""
        topic = rng.choice(self.workload.topics)
        return rng.choice(ids), Copy(topic, rng.randbytes(8), rng.choice(ids))

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Does the broker live, and know every client's wish?"""
        server = states.get(SERVER)
        if not isinstance(server, ServerState):
            return [Violation("broker", None, "is gone")]
        right = {id: self.workload.wishes[id] for id in states if id != SERVER}
        wrong = [id for id in right if server.wishes.get(id) != right[id]]
        wrong += [id for id in server.wishes if id not in right]
        return [Violation("wishes", id, "are not what the broker believes") for id in wrong]


BASELINES: Mapping[str, type[SpreadOverlay] | type[Star]] = {
    it.name: it for it in (Star, Flooding, Broadcast, Multicast, Hierarchical)
}
