"""Naive ways with what is on disk: the leader's log is right, a damaged file is the end."""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Effect, Effects, Node, Restarted, Send
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.lab.incidents.naive import TOPIC, Mesh, Peer, PeerState
from planaria.lab.incidents.naive_messages import Event, Hello, Log


class LoggingState(PeerState):
    """All publications, in order."""

    log: list[bytes]


class Logging(Peer):
    """Keeps all publications; the leader's log is right, and whoever joins is given it."""

    state_type = LoggingState

    def __init__(self, id: NodeId, peers: Sequence[NodeId], rng: Random) -> None:
        super().__init__(id, peers, rng)
        self.log: list[bytes] = []

    def begin(self) -> list[Effect]:
        """Tell all what I want, and ask them for the same; a leader tells what is right."""
        hello = Hello(self.id)
        return [it for peer in self.peers for it in (Send(peer, hello), *self.announce(peer))]

    def greeted(self, peer: NodeId, message: Hello) -> list[Effect]:
        """Answer; what it wants it says itself."""
        self.up[peer] = 0
        self.peers.setdefault(peer)
        return self.announce(peer)

    def on_command(self, command: Command) -> Effects:
        """A process that goes on from its disk begins as well."""
        return self.begin() if isinstance(command, Restarted) else super().on_command(command)

    def announce(self, peer: NodeId) -> list[Effect]:
        """Whoever is heard for the first time gets the log."""
        return [*super().announce(peer), *([self._tell(peer)] if self._leads() else [])]

    def take(self, message: Message) -> list[Effect]:
        """The leader is right."""
        if not isinstance(message, Log):
            return super().take(message)
        effects = []
        for id in message.ids:
            effects += self.deliver(Event(message.sender, message.topic, id))
        self.log = list(message.ids)
        return effects

    def deliver(self, event: Event) -> list[Effect]:
        """Keep it, too."""
        effects = super().deliver(event)
        self.log += [event.id] if effects else []
        return effects

    def _leads(self) -> bool:
        return self.id == min([self.id, *self.peers])

    def _tell(self, peer: NodeId) -> Effect:
        return Send(peer, Log(self.id, TOPIC, list(self.log)))


class LoggingMesh(Mesh):
    """Replicas follow their leader's log."""

    name = "leader-log"
    node_type = Logging


class Truncating(Logging):
    """Reads its log from disk up to the first block whose bits have changed."""

    def restore(self, data: bytes) -> Effects:
        """A bit has flipped after a third of it."""
        effects = super().restore(data)
        self.log = self.log[: len(self.log) // 3]
        return effects


class TruncatingMesh(LoggingMesh):
    """Replicas follow their leader's log, also if it was cut short."""

    name = "truncated-log"
    node_type = Truncating


class Refusing(Node):
    """A process that does not start: its file cannot be read."""


class RefusingMesh(Mesh):
    """A peer whose file is damaged ends at once, again and again."""

    name = "no-start"

    def __init__(self) -> None:
        super().__init__()
        self.started: dict[NodeId, None] = {}

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """Whoever begins a second time finds its file damaged."""
        if id in self.started:
            return Refusing(id)
        self.started[id] = None
        return super().spawn(id, rng)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Those who do not run, and routes."""
        down = [id for id, it in states.items() if not isinstance(it, PeerState)]
        found = [Violation("running", id, "does not start") for id in down]
        return found + super().violations(states, channel)
