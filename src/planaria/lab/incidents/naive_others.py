"""Naive protocols of another shape: a topic at one owner, and a mesh of bounded degree."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Effects, Node, Send
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.lab.incidents.naive import TOPIC, Mesh, Peer, PeerState
from planaria.lab.incidents.naive_messages import Event, Graft, Interest, Prune
from planaria.lab.incidents.naive_variants import SERVER

DEGREE_MAX = 4  # of a mesh that is grafted and pruned


class OwnedState(PeerState):
    """At which node I subscribe and publish."""

    home: int


class Owned(Peer):
    """Subscribes and publishes at the topic's owner; loses it, and takes another node at random."""

    state_type: ClassVar[type[State]] = OwnedState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, peers, rng)
        self.home: NodeId = max(peers, default=id)

    def down(self, peer: NodeId) -> None:
        """An owner that is gone is replaced; nobody asks whom the others take."""
        super().down(peer)
        if peer == self.home:
            self.home = self.another()
            self.begun = False  # subscribe there

    def another(self) -> NodeId:
        """Any node will do."""
        return self.rng.choice([self.id, *sorted(self.up)])

    def begin(self) -> list[Effect]:
        """Subscribe at the owner."""
        if self.home == self.id:
            self.routes[self.id] = {TOPIC: 1}
        return [Send(self.home, Interest(self.id, TOPIC, self.wishes.get(TOPIC, 0)))]

    def announce(self, peer: NodeId) -> list[Effect]:
        """Nobody but the owner needs to know."""
        return []

    def publish(self, event: Event) -> list[Effect]:
        """Hand it to the owner, or on to the subscribers if that is me."""
        onward = self._onward(event) if self.home == self.id else [Send(self.home, event)]
        return [*self.deliver(event), *onward]

    def take(self, message: Message) -> list[Effect]:
        """What comes to an owner goes on to its subscribers."""
        if not isinstance(message, Event) or message.id in self.seen:
            return super().take(message)
        effects = super().take(message)
        self.seen[message.id] = None
        return effects + self._onward(message)

    def _onward(self, event: Event) -> list[Effect]:
        known = [it for it in self.routes if self.wanted(it, event.topic)]
        return [Send(peer, event) for peer in known if peer not in (self.id, event.sender)]


class OwnedMesh(Mesh):
    """A topic has one owner; everybody remembers which."""

    name = "random-owner"
    node_type = Owned
    extra = (SERVER,)

    def connected(self, node: Peer) -> None:
        """All are subscribed at the owner."""
        everybody = {it: {TOPIC: 1} for it in self.ids if it not in self.extra}
        node.routes = everybody if node.id == SERVER else {}

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Do all publish and subscribe at the same living owner, and does it know them?"""
        peers = {id: it for id, it in states.items() if isinstance(it, OwnedState)}
        members = {id: it for id, it in peers.items() if id not in self.extra}
        homes = [it.home for it in members.values()]
        common = max(sorted({*homes}), key=homes.count)
        found = [
            Violation("owner", id, f"takes {it.home} for it, most take {common}")
            for id, it in members.items()
            if it.home != common or common not in peers
        ]
        known = peers[common].routes if common in peers else {}
        missing = [it for it in members if it not in known and it != common]
        return found + [Violation("routes", common, f"does not know {it}") for it in missing]


class Cached(Owned):
    """Takes the highest node it sees for the owner, once, and remembers."""

    def another(self) -> NodeId:
        """The highest."""
        return max([self.id, *self.up])


class CachedMesh(OwnedMesh):
    """An owner is looked up when the one before is lost, and cached."""

    name = "cached-owner"
    node_type = Cached


class MeshedState(PeerState):
    """Who is in my mesh."""

    mesh: dict[int, None]


class Meshed(Peer):
    """Forwards to its mesh; grafts who is in reach if the mesh is empty, prunes if it is large."""

    state_type = MeshedState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, [it for it in peers if 0 in (id, it)], rng)  # a star around 0
        self.mesh: dict[NodeId, None] = {}

    def on_timeout(self) -> Effects:
        """Graft or prune, each end by its own rule."""
        effects: list[Effect] = []
        for peer in self.rng.sample(sorted(self.mesh), max(0, len(self.mesh) - DEGREE_MAX)):
            del self.mesh[peer]
            effects.append(Send(peer, Prune(self.id)))
        if not self.mesh:
            self.mesh = dict(self.peers)
            effects += [Send(peer, Graft(self.id)) for peer in self.mesh]
        return effects

    def take(self, message: Message) -> list[Effect]:
        """Forward what is new within the mesh."""
        if isinstance(message, Graft):
            self.mesh[message.sender] = None
        elif isinstance(message, Prune):
            self.mesh.pop(message.sender, None)
        elif isinstance(message, Event):
            delivered = self.deliver(message)
            onward = Event(self.id, message.topic, message.id)
            others = [it for it in self.mesh if it != message.sender]
            return delivered + [Send(it, onward) for it in others] if delivered else []
        return []

    def publish(self, event: Event) -> list[Effect]:
        """To the mesh."""
        return [*self.deliver(event), *(Send(peer, event) for peer in self.mesh)]


class StarMesh(Mesh):
    """Peers around one, which wants fewer neighbours than there are."""

    name = "graft-prune"
    node_type = Meshed

    def connected(self, node: Peer) -> None:
        """All are in the mesh of the one in the middle."""
        assert isinstance(node, Meshed)
        node.mesh = dict(node.peers)

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Somebody is in the mesh, and somebody not."""
        assert isinstance(node, Meshed)
        node.mesh = {id: None for id in node.peers if rng.random() < 0.5}

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Do both ends of each link agree, and has everybody one?"""
        meshes = {id: it.mesh for id, it in states.items() if isinstance(it, MeshedState)}
        alone = [id for id, mesh in meshes.items() if not mesh]
        apart = [
            (id, peer)
            for id, mesh in meshes.items()
            for peer in mesh
            if id not in meshes.get(peer, {})
        ]
        found = [Violation("mesh", id, "has no neighbour") for id in alone]
        return found + [Violation("mesh", id, f"{peer} has pruned it") for id, peer in apart]
