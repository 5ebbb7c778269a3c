"""Announce interest once, on connect or on change, and believe it: what most systems do.

Every peer keeps who wants what as it was told. Heartbeats say that the other is there; a peer that
is silent for too long, or whose link failed, is forgotten with its wishes, and whoever is heard
again is told one's own. Nothing else is sent twice, and nobody compares the two ends.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    Node,
    Publish,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.lab.incidents.naive_messages import MESSAGES, Beat, Event, Hello, Interest

TOPIC = "news"
PATIENCE = 3  # timeouts of silence until a peer counts as gone


class PeerState(State):
    """Own wishes, who is up (timeouts since it was heard), and who is believed to want what."""

    wishes: dict[str, int]
    up: dict[int, int]
    routes: dict[int, dict[str, int]]
    peers: dict[int, None]
    seen: dict[bytes, None]
    begun: bool

    def sends(self, peer: NodeId) -> bool:
        """Would it send the next publication to `peer`?"""
        return self.routes.get(peer, {}).get(TOPIC, 0) > 0


class Peer(Node):
    """A peer of a full mesh; variants of it override one step."""

    state_type: ClassVar[type[State]] = PeerState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id)
        self.rng = rng
        self.peers: dict[NodeId, None] = dict.fromkeys(it for it in peers if it != id)
        self.wishes: dict[str, int] = {}
        self.up: dict[NodeId, int] = {}
        self.routes: dict[NodeId, dict[str, int]] = {}
        self.seen: dict[bytes, None] = {}
        self.begun = False

    def on_timeout(self) -> Effects:
        """Say that I am here; forget who was silent for too long."""
        for peer in list(self.up):
            self.up[peer] += 1
            if self.up[peer] > PATIENCE:
                self.down(peer)
        effects: list[Effect] = [] if self.begun else self.begin()
        self.begun = True
        return effects + [Send(peer, self.beat()) for peer in self.dialled()]

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Whoever speaks is up; the rest depends on what it says. The name in it is believed."""
        speaker: NodeId = getattr(message, "sender", self.id)
        if isinstance(message, Hello):
            return self.greeted(speaker, message)
        return [*self.heard(speaker, message), *self.take(message)]

    def on_command(self, command: Command) -> Effects:
        """Subscribe, unsubscribe, publish; a link that failed is a peer that is gone."""
        if isinstance(command, Subscribe | Unsubscribe):
            by = 1 if isinstance(command, Subscribe) else -1
            self.wishes[command.pattern] = max(0, self.wishes.get(command.pattern, 0) + by)
            return [Send(peer, self.change(command.pattern, by)) for peer in self.up]
        if isinstance(command, Publish):
            id = b"%d:%b" % (self.id, command.payload)
            published = Published(command.topic, id, self.id)
            return [published, *self.publish(Event(self.id, command.topic, id))]
        if isinstance(command, LinkDown):
            self.down(command.peer)
        return ()

    # Steps that variants override

    def begin(self) -> list[Effect]:
        """What a process says when it begins: nothing, it waits until it hears somebody."""
        return []

    def greeted(self, peer: NodeId, message: Hello) -> list[Effect]:
        """A new connection: what the old one knew is gone."""
        self.down(peer)
        return self.heard(peer, message)

    def beat(self) -> Beat:
        """The heartbeat."""
        return Beat(self.id)

    def dialled(self) -> list[NodeId]:
        """Whom to send heartbeats: everybody ever known."""
        return list(self.peers)

    def down(self, peer: NodeId) -> None:
        """Forget a peer that is gone, and its wishes with it."""
        self.up.pop(peer, None)
        self.routes.pop(peer, None)

    def heard(self, peer: NodeId, message: Message) -> list[Effect]:
        """A peer is there; one that was not before is told what I want, this once."""
        if peer == self.id:
            return []
        known = peer in self.up
        self.up[peer] = 0
        self.peers.setdefault(peer)
        return [] if known else self.announce(peer)

    def announce(self, peer: NodeId) -> list[Effect]:
        """Tell a peer all that I want."""
        wanted = {topic: count for topic, count in self.wishes.items() if count}
        return [Send(peer, Interest(self.id, topic, it)) for topic, it in wanted.items()]

    def change(self, topic: str, by: int) -> Message:
        """What others are told when I want something more or less: that I do, or do not."""
        return Interest(self.id, topic, self.wishes[topic])

    def take(self, message: Message) -> list[Effect]:
        """Believe interest; hand publications to the application."""
        if isinstance(message, Interest):
            self.routes.setdefault(message.sender, {})[message.topic] = message.count
        elif isinstance(message, Event):
            return self.deliver(message)
        return []

    def deliver(self, event: Event) -> list[Effect]:
        """Once, if it is wanted."""
        if event.id in self.seen or not self.wishes.get(event.topic, 0):
            return []
        self.seen[event.id] = None
        return [Deliver.one(event.topic, event.id, event.id)]

    def publish(self, event: Event) -> list[Effect]:
        """Hand it to my application, and send it to all who want it as far as I know."""
        wanting = [peer for peer in self.routes if self.wanted(peer, event.topic)]
        return [*self.deliver(event), *(Send(peer, event) for peer in wanting)]

    def wanted(self, peer: NodeId, topic: str) -> bool:
        """Does `peer` want `topic`, as far as I know?"""
        return self.routes[peer].get(topic, 0) > 0


class Mesh(Overlay):
    """All peers know each other; each announces its interest once to each."""

    name = "announce-once"
    messages = MESSAGES
    starts = ("legitimate",)
    delivers_once = False
    node_type: ClassVar[type[Peer]] = Peer
    extra: ClassVar[tuple[NodeId, ...]] = ()  # processes that only serve

    def __init__(self) -> None:
        self.ids: tuple[NodeId, ...] = ()

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer that knows the first ones and wants the topic; nobody knows it yet."""
        node = self.node_type(id, self.ids, rng)
        if id not in self.extra:
            node.on_command(Subscribe(TOPIC))
        return node

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody has told everybody."""
        self.ids = (*range(n), *self.extra)
        nodes = [self.spawn(id, rng) for id in self.ids]
        for node in nodes:
            assert isinstance(node, Peer)
            node.begun = True
            node.up = {peer: 0 for peer in self.ids if peer != node.id}
            node.routes = {it: {TOPIC: 1} for it in node.up if it not in self.extra}
            self.connected(node)
        return nodes

    def connected(self, node: Peer) -> None:
        """What else a node knows when all is well."""

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Drop some routes and point others nowhere; what the applications asked for stays."""
        assert isinstance(node, Peer)
        node.routes = {
            id: {rng.choice((TOPIC, "nothing")): 1}
            for id in ids
            if id != node.id and rng.random() < 0.6
        }

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """In another's name: it wants the topic no more."""
        return rng.choice(ids), Interest(rng.choice(ids), TOPIC, 0)

    def link_of(self, message: Message, ids: Sequence[NodeId], rng: Random) -> NodeId | None:
        """Forged messages come from a peer: the first."""
        return ids[0]

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Who would not send to a peer that wants it, or would send to one that does not."""
        peers = {id: it for id, it in states.items() if isinstance(it, PeerState)}
        found = []
        for id, mine in peers.items():
            if id in self.extra:
                continue
            for other, its in peers.items():
                wanted = its.wishes.get(TOPIC, 0) > 0
                if id != other and mine.sends(other) != wanted:
                    one_way = f"does not send to {other}, which wants it"
                    other_way = f"sends to {other}, which does not want it"
                    found.append(Violation("routes", id, one_way if wanted else other_way))
            gone = [it for it in mine.routes if it not in peers and mine.sends(it)]
            found += [Violation("routes", id, f"sends to {it}, which is gone") for it in gone]
        return found

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Peers publish what they number."""
        return None if id in self.extra else Publish(TOPIC, b"publication %d" % number)

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """Every peer's one topic."""
        return () if id in self.extra else (Subscribe(TOPIC),)

    def called(self, id: NodeId) -> str:
        """Who serves and who came later has no small number."""
        if id in self.extra:
            return "the server"
        return f"newcomer {id - max(self.ids)}" if self.ids and id > max(self.ids) else str(id)

    def leave(self, node: Node) -> Command | None:
        """Peers leave by ending their subscription."""
        return None if node.id in self.extra else Unsubscribe(TOPIC)
