"""A node of a live network of rings: a peer, a supervisor if it is one, and a directory in one."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from msgspec import field

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Effect,
    Effects,
    Leave,
    Node,
    Publish,
    PublishMany,
    Subscribe,
    Supervisors,
)
from planaria.core.node import Unsubscribe as StopSubscribing
from planaria.core.state import State
from planaria.core.topics import check_filter, has_wildcard
from planaria.protocols.publications.admission import Admission, every_record
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import Judge, nobody
from planaria.protocols.skipring.charter_messages import MESSAGES as CHARTER_MESSAGES
from planaria.protocols.skipring.charters import Charters, ChartersState, LayDown, SeekOverlays
from planaria.protocols.skipring.directory import Directory, DirectoryState
from planaria.protocols.skipring.directory_messages import MESSAGES as DIRECTORY_MESSAGES
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Probe,
    ProbeReply,
    Unsubscribe,
)
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.protocols.skipring.supervisor import Supervisor, SupervisorState
from planaria.protocols.skipring.wildcards import Wildcards, WildcardsState
from planaria.records.memory import MemoryStore
from planaria.records.store import Store

FOR_SUPERVISOR = frozenset((GetConfiguration, Unsubscribe, Probe, ProbeReply))
FOR_DIRECTORY = frozenset(DIRECTORY_MESSAGES)
FOR_CHARTERS = frozenset(CHARTER_MESSAGES)


class RingNodeState(State):
    """The states of the parts."""

    peer: PeerState
    supervisor: SupervisorState | None = None
    directory: DirectoryState = field(default_factory=DirectoryState)
    wildcards: WildcardsState = field(default_factory=WildcardsState)
    charters: ChartersState = field(default_factory=ChartersState)


class RingNode(Node):
    """Takes part in rings and, with `supervise`, serves topics; knows what topics there are.

    `supervisors` are those that are known; the driver tells of others with `Supervisors`. One that
    supervises counts itself among them. `secret` keys their order, the same in a whole cluster.
    `judge` says which charters of topics are to be obeyed, `admission` which records count.
    """

    __slots__ = ("charters", "directory", "peer", "supervisor", "wildcards")
    state_type = RingNodeState
    reads_clock = True

    def __init__(
        self,
        id: NodeId,
        supervisors: Sequence[NodeId],
        rng: Random,
        *,
        supervise: bool,
        store: Callable[[str], Store] = lambda _: MemoryStore(),
        retention: Mapping[str, Retention] | None = None,
        secret: bytes = b"",
        pace_max: int = 1,
        judge: Judge = nobody,
        admission: Callable[[str], Admission] = every_record,
    ) -> None:
        super().__init__(id)
        known = tuple(dict.fromkeys((*supervisors, id) if supervise else supervisors))
        self.peer = Peer(id, known, rng, retention, store, secret, pace_max, admission)
        self.supervisor = Supervisor(id, known, secret, pace_max) if supervise else None
        self.directory = Directory(id, known, rng, self.supervisor, secret)
        self.wildcards = Wildcards(self.peer, self.directory)
        inherits = admission is not every_record  # rights to publish come from topics above, too
        how = {"everything": supervise, "inherits": inherits}
        self.charters = Charters(id, self.peer, rng, judge, **how)

    @property
    def supervisors(self) -> tuple[NodeId, ...]:
        """All supervisors that this node knows of, itself included if it is one."""
        return self.peer.supervisors

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand a message to the part that it is for; nobody speaks in another's name."""
        kind = type(message)
        if kind in FOR_SUPERVISOR:
            return () if self.supervisor is None else self.supervisor.on_message(message, sender)
        if kind in FOR_CHARTERS:
            return () if sender is None else self.charters.on_message(message, sender)
        if kind not in FOR_DIRECTORY:
            return self.peer.on_message(message, sender)
        if sender is None or getattr(message, "sender", None) != sender:
            return ()
        return [*self.directory.on_message(message), *self.wildcards.on_news()]

    def on_timeout(self) -> Effects:
        """The timeouts of all parts."""
        effects: list[Effect] = [*self.peer.on_timeout()]
        if self.supervisor is not None:
            effects += self.supervisor.on_timeout()
        effects += self.wildcards.on_timeout()
        effects += self.directory.on_timeout()
        effects += self.charters.on_timeout()
        return effects

    def on_command(self, command: Command) -> Effects:
        """What the application asks is for the peer; what the driver reports, for all parts."""
        if isinstance(command, PublishMany | Publish):
            return self.peer.on_command(command)
        if isinstance(command, Subscribe):
            return self._subscribe(command)
        if isinstance(command, StopSubscribing):
            return self._unsubscribe(command)
        if isinstance(command, LayDown):
            return self.charters.lay_down(command.sealed)
        if isinstance(command, SeekOverlays):
            return self.charters.seek(command.topics)
        if isinstance(command, Leave):
            self.wildcards.clear()
        if isinstance(command, Supervisors):
            command = self._sound(command)
        effects: list[Effect] = [*self.peer.on_command(command)]
        if self.supervisor is not None:
            effects += self.supervisor.on_command(command)
        effects += self.directory.on_command(command)
        return effects

    def state(self) -> RingNodeState:
        """The states of all parts."""
        supervisor = None if self.supervisor is None else self.supervisor.state()
        parts = self.directory.state(), self.wildcards.state(), self.charters.state()
        return RingNodeState(self.peer.state(), supervisor, *parts)  # type: ignore[arg-type]

    def load(self, state: State) -> None:
        """Take the states of the parts that this node has."""
        assert isinstance(state, RingNodeState)
        self.peer.load(state.peer)
        self.directory.load(state.directory)
        self.wildcards.load(state.wildcards)
        self.charters.load(state.charters)
        if self.supervisor is not None and state.supervisor is not None:
            self.supervisor.load(state.supervisor)

    def restore(self, data: bytes) -> Effects:
        """Take a stored state; a process that begins anew numbers in new incarnations."""
        effects = super().restore(data)
        self.peer.restart()
        return effects

    def _sound(self, command: Supervisors) -> Supervisors:
        """The supervisors told, and this node if it is one: it knows that better than others."""
        ids = [id for id in command.ids if is_node_id(id)]
        mine = [self.id] if self.supervisor is not None else []
        return Supervisors(tuple(dict.fromkeys((*ids, *mine))))

    def _subscribe(self, command: Subscribe) -> Effects:
        """Join one topic, or all that match; `Joined` follows when this node is in all of them."""
        pattern = check_filter(command.pattern)
        if not has_wildcard(pattern):
            effects = self.peer.on_command(command)
            self.wildcards.named(command.pattern)
            return effects
        if command.where is not None or command.client:
            raise UsageError(
                "ring has neither conditions (`where`) nor several clients: use a Gate"
            )
        return self.wildcards.subscribe(pattern, ordered=command.ordered)

    def _unsubscribe(self, command: StopSubscribing) -> Effects:
        """Leave one topic, unless a pattern wants it, or all that only this pattern wants."""
        pattern = check_filter(command.pattern)
        if has_wildcard(pattern):
            return self.wildcards.unsubscribe(pattern)
        if command.pattern in self.peer.topics and self.wildcards.keeps(command.pattern):
            return ()
        return self.peer.on_command(command)
