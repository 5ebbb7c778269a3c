"""Variants of announcing once, each with the one step that an incident is about."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Busy,
    Command,
    Deliver,
    Effect,
    Effects,
    Node,
    Restarted,
    Send,
)
from planaria.lab.incidents.naive import TOPIC, Mesh, Peer, PeerState
from planaria.lab.incidents.naive_messages import (
    Beat,
    Event,
    Hello,
    Interest,
    Members,
    Pull,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE
from planaria.protocols.skipring.placement import preference

RETRIES = 3  # timeouts for which a peer that is gone is dialled again
# Where Planaria has the supervisor that serves the topic these have the process in its role.
SERVER = preference(TOPIC, (SUPERVISOR_BASE, SUPERVISOR_BASE + 1))[0]


class Counting(Peer):
    """Tells changes of its interest; whoever hears of one adds it to a count."""

    def change(self, topic: str, by: int) -> Message:
        """One more, or one fewer."""
        return Interest(self.id, topic, by, change=True)

    def take(self, message: Message) -> list[Effect]:
        """Add up what changes."""
        if isinstance(message, Interest) and message.change:
            counts = self.routes.setdefault(message.sender, {})
            counts[message.topic] = counts.get(message.topic, 0) + message.count
            return []
        return super().take(message)


class CountingMesh(Mesh):
    """Interest is a count, kept at the other end."""

    name = "counting"
    node_type = Counting


class Repeating(Counting):
    """Delivers every copy that arrives."""

    def deliver(self, event: Event) -> list[Effect]:
        """If it is wanted, again and again."""
        wanted = self.wishes.get(event.topic, 0)
        return [Deliver.one(event.topic, event.id, event.id)] if wanted else []


class RepeatingMesh(CountingMesh):
    """Interest is a count, and nobody remembers what was delivered."""

    name = "repeating"
    node_type = Repeating


class PullingState(PeerState):
    """How many more each peer has asked for, and what waits until it asks."""

    credit: dict[int, int]
    waiting: dict[int, list[Event]]

    def sends(self, peer: NodeId) -> bool:
        """Is it subscribed, and has it asked?"""
        return super().sends(peer) and self.credit.get(peer, 0) > 0


class Pulling(Peer):
    """Sends a publication to whoever has asked for one more; one asks at first and after each."""

    state_type = PullingState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, peers, rng)
        self.credit: dict[NodeId, int] = {}
        self.waiting: dict[NodeId, list[Event]] = {}

    def down(self, peer: NodeId) -> None:
        """Forget what it asked for, too."""
        super().down(peer)
        self.credit.pop(peer, None)

    def take(self, message: Message) -> list[Effect]:
        """A question is answered as soon as there is something."""
        if isinstance(message, Pull):
            self.credit[message.sender] = self.credit.get(message.sender, 0) + 1
            return self._serve(message.sender)
        effects = super().take(message)
        if isinstance(message, Event):
            effects.append(Send(message.sender, Pull(self.id)))
        return effects

    def publish(self, event: Event) -> list[Effect]:
        """Have it wait until it is asked for."""
        effects = self.deliver(event)
        for peer in self.routes:
            if self.wanted(peer, event.topic):
                self.waiting.setdefault(peer, []).append(event)
                effects += self._serve(peer)
        return effects

    def _serve(self, peer: NodeId) -> list[Effect]:
        served: list[Effect] = []
        while self.credit.get(peer, 0) > 0 and self.waiting.get(peer):
            self.credit[peer] -= 1
            served.append(Send(peer, self.waiting[peer].pop(0)))
        return served


class PullingMesh(Mesh):
    """Subscribers ask for each publication; a new connection repeats the subscription alone."""

    name = "pulling"
    node_type = Pulling

    def connected(self, node: Peer) -> None:
        """Everybody has asked everybody for one."""
        assert isinstance(node, Pulling)
        node.credit = dict.fromkeys(node.up, 1)


class Introduced(Peer):
    """Knows whom the introducer names; the introducer knows everybody."""

    def announce(self, peer: NodeId) -> list[Effect]:
        """The introducer names all whom it knows."""
        named = [Send(peer, Members(self.id, sorted(self.peers)))] if self.id == SERVER else []
        return [*super().announce(peer), *named]

    def take(self, message: Message) -> list[Effect]:
        """Know whom the introducer names."""
        if isinstance(message, Members):
            self.peers |= dict.fromkeys(it for it in message.ids if it != self.id)
        return super().take(message)


class IntroducedMesh(Mesh):
    """Whoever joins asks the process that founded the mesh who else is there."""

    name = "introducer"
    node_type = Introduced
    extra = (SERVER,)

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A newcomer has a ticket: the founder's address."""
        node = super().spawn(id, rng)
        assert isinstance(node, Peer)
        if id not in self.ids:
            node.peers = {SERVER: None}
        return node


class Named(Peer):
    """Keeps the route of a peer that is gone, inactive; a route that is known is not made again."""

    def down(self, peer: NodeId) -> None:
        """Mark its routes inactive."""
        self.up.pop(peer, None)
        self.routes[peer] = dict.fromkeys(self.routes.get(peer, {}), 0)

    def take(self, message: Message) -> list[Effect]:
        """A route by this name exists already: nothing to do."""
        if isinstance(message, Interest) and message.topic in self.routes.get(message.sender, {}):
            return []
        return super().take(message)


class NamedMesh(Mesh):
    """Routes go by name, and survive their peers."""

    name = "named-routes"
    node_type = Named


class Late(Peer):
    """Announces when it subscribes, to those who are there, and never to who comes later."""

    def begin(self) -> list[Effect]:
        """The subscription that a process begins with."""
        return [send for peer in self.peers for send in super(Late, self).announce(peer)]

    def announce(self, peer: NodeId) -> list[Effect]:
        """Who comes later was not there."""
        return []


class LateMesh(Mesh):
    """Subscriptions go to the publishers that are there."""

    name = "announce-on-subscribe"
    node_type = Late


class DroppingState(PeerState):
    """Whose links were full."""

    full: dict[int, None]

    def sends(self, peer: NodeId) -> bool:
        """Is it believed to want it, and was its link never full?"""
        return super().sends(peer) and peer not in self.full


class Dropping(Peer):
    """Drops what goes to a full link, until something could be sent to it: nothing is tried."""

    state_type = DroppingState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, peers, rng)
        self.full: dict[NodeId, None] = {}

    def on_command(self, command: Command) -> Effects:
        """Remember whose link is full."""
        if isinstance(command, Busy):
            self.full[command.peer] = None
        return super().on_command(command)

    def wanted(self, peer: NodeId, topic: str) -> bool:
        """And can it be sent?"""
        return super().wanted(peer, topic) and peer not in self.full


class DroppingMesh(Mesh):
    """Under congestion publications are dropped."""

    name = "dropping"
    node_type = Dropping


class Resumed(Peer):
    """A session that is restored takes its subscriptions for announced."""

    def on_command(self, command: Command) -> Effects:
        """A process that goes on from its disk makes new connections; its session is old."""
        if isinstance(command, Restarted):
            return [Send(peer, Hello(self.id)) for peer in self.peers]
        return super().on_command(command)


class ResumedMesh(Mesh):
    """Sessions survive a restart, routes do not."""

    name = "restored-sessions"
    node_type = Resumed


class GivingUpState(PeerState):
    """For how many timeouts peers that are gone have been dialled."""

    tries: dict[int, int]


class GivingUp(Peer):
    """Dials a peer that is gone a few times more, then waits to be dialled."""

    state_type = GivingUpState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, peers, rng)
        self.tries: dict[NodeId, int] = {}

    def dialled(self) -> list[NodeId]:
        """Those who are up, and those not given up."""
        for peer in self.peers:
            self.tries[peer] = 0 if peer in self.up else self.tries.get(peer, 0) + 1
        return [peer for peer in self.peers if self.tries[peer] <= RETRIES]


class GivingUpMesh(Mesh):
    """A connection that is lost for long is made anew by nobody."""

    name = "giving-up"
    node_type = GivingUp


class Voting(Peer):
    """Takes a peer back if one of the two sees a majority."""

    def beat(self) -> Beat:
        """Do I see most of us?"""
        return Beat(self.id, majority=self._majority())

    def heard(self, peer: NodeId, message: Message) -> list[Effect]:
        """Without a majority nobody knows which side is right."""
        theirs = isinstance(message, Beat) and message.majority
        if peer in self.up or theirs or self._majority():
            return super().heard(peer, message)
        return []

    def take(self, message: Message) -> list[Effect]:
        """What peers say that were not taken back does not count."""
        return super().take(message) if getattr(message, "sender", None) in self.up else []

    def _majority(self) -> bool:
        return 2 * (1 + len(self.up)) > 1 + len(self.peers)


class VotingMesh(Mesh):
    """A partition is healed by the side that has the majority."""

    name = "majority-heals"
    node_type = Voting
