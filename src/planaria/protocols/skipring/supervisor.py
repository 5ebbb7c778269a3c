"""A supervisor process: many topics, and other supervisors beside it (paper, sections 1.3 and 4).

A topic is served by the first live supervisor in its order of preference. A database is soft
state: a successor rebuilds it from the requests of the subscribers alone, and gives it up as soon
as one closer to the topic answers a probe.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import field

from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Command, Effects, LinkDown, Node, Restarted, Send, Supervisors
from planaria.core.state import State
from planaria.protocols.skipring.budget import Budget, BudgetState
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Moved,
    Probe,
    ProbeReply,
    Unsubscribe,
    speaker,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.topic_supervisor import (
    SETTLE_TIMEOUTS,
    TopicSupervisor,
    TopicSupervisorState,
    rate_of,
)

TOPICS_MAX = 1 << 16  # databases one process keeps; further topics are not served
MOVED_AGE_MAX = 4  # timeouts for which an answer to a probe counts


class SupervisorState(State):
    """The databases of all topics, who serves which instead, what was asked and sent, and for how
    long others have not answered."""

    topics: dict[str, TopicSupervisorState]
    moved: dict[str, tuple[int, int]]
    turn: int
    budget: BudgetState
    requests: int
    sent: int
    unsettled: int = 0
    absent: dict[int, int] = field(default_factory=dict)


class Supervisor(Node):
    """Serves every topic for which no closer supervisor is alive."""

    __slots__ = (
        "absent",
        "budget",
        "moved",
        "pace_max",
        "requests",
        "secret",
        "sent",
        "supervisors",
        "topics",
        "turn",
        "unsettled",
    )
    state_type = SupervisorState

    def __init__(
        self, id: NodeId, supervisors: Sequence[NodeId], secret: bytes = b"", pace_max: int = 1
    ) -> None:
        super().__init__(id)
        self.secret = secret  # keys the order of supervisors
        self.pace_max = pace_max
        self.supervisors = tuple(supervisors)
        self.topics: dict[str, TopicSupervisor] = {}
        self.moved: dict[str, tuple[NodeId, int]] = {}  # who serves it instead, and how sure
        self.turn = 0  # which topic is the first to be served at the next timeout
        self.budget = Budget()
        self.requests = 0  # totals, for whoever measures
        self.sent = 0
        self.unsettled = 0  # timeouts left in which members from before my restart may ask
        self.absent: dict[NodeId, int] = {}  # timeouts without an answer of whom I probe

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Requests of subscribers, and probes among supervisors; each speaks for itself alone."""
        handler = _HANDLERS.get(type(message))
        if handler is None or sender is None or speaker(message) != sender:
            return ()
        effects = handler(self, message)
        self.sent += len(effects)
        return effects

    def _on_get_configuration(self, message: GetConfiguration) -> Effects:
        """Configure the asker, or send it to the supervisor that serves the topic instead."""
        self.requests += 1
        if (closer := self._moved_to(message.topic)) is not None:
            return [Send(message.sender, Moved(message.topic, self.id, closer))]
        served = self.serve(message.topic)
        return served.on_get_configuration(message) if served else ()

    def _on_unsubscribe(self, message: Unsubscribe) -> Effects:
        """Let the leaver go, recorded or not."""
        served = self.topics.get(message.topic) or TopicSupervisor(message.topic, self.id)
        return served.on_unsubscribe(message)

    def _on_probe(self, message: Probe) -> Effects:
        """Another supervisor asks whether I am alive."""
        known = message.sender in self.supervisors
        return [Send(message.sender, ProbeReply(message.topic, self.id))] if known else ()

    def _on_probe_reply(self, message: ProbeReply) -> Effects:
        """A supervisor is alive: from now on it serves every topic that it is closer to."""
        if message.sender in self.absent:
            self.absent[message.sender] = 0
        for topic in (message.topic, *self.topics):
            if message.sender in self._closer(topic):
                self.moved[topic] = (message.sender, MOVED_AGE_MAX)
        return ()

    def on_timeout(self) -> Effects:
        """Every topic's timeout; topics that are not mine are handed over, empty ones dropped."""
        self._age_moved()
        self.unsettled = min(max(self.unsettled, 1), SETTLE_TIMEOUTS + 1) - 1
        topics = self._in_turn()
        self._refill()
        effects: list[Send] = []
        probed: set[NodeId] = set()
        enough = True
        for place, topic in enumerate(topics):
            effects += self._probe(topic, probed)
            if topic in self.moved or not self.topics[topic].pace.rests():
                self.budget.share(len(topics) - place)
                enough = self.budget.left(0) > 0
                effects += self._on_timeout_of(topic)
            self.turn += enough
        self.absent = {id: min(self._absence(id) + 1, SETTLE_TIMEOUTS) for id in sorted(probed)}
        effects += self._spend_the_rest([topic for topic in topics if topic in self.topics])
        self.sent += len(effects)
        return effects

    def _refill(self) -> None:
        """All topics share a budget. Of one that rests nothing waits."""
        awake = [one for one in self.topics.values() if not one.pace.resting]
        sizes = [max(len(one.database), one.queued) for one in awake]
        sizes += [len(one.database) for one in self.topics.values() if one.pace.resting]
        rates = [rate_of(max(sizes, default=0)), *(one.rate for one in awake)]
        self.budget.refill(sizes, max(rates) if self.topics else 0)

    def _in_turn(self) -> list[str]:
        """All topics, beginning with the first for which nothing was left the last time."""
        topics = list(self.topics)
        self.turn %= max(1, len(topics))
        return topics[self.turn :] + topics[: self.turn]

    def _spend_the_rest(self, topics: Sequence[str]) -> list[Send]:
        """What other topics left over goes to those whose outbox is not yet empty."""
        queued = [topic for topic in topics if self.topics[topic].queued]
        waiting = [self.topics[topic] for topic in queued if self._moved_to(topic) is None]
        effects: list[Send] = []
        for place, served in enumerate(waiting):
            self.budget.share(len(waiting) - place)
            effects += served.flush()
        self.budget.open()
        return effects

    def _probe(self, topic: str, probed: set[NodeId]) -> list[Send]:
        """Ask those closer to a topic whether they are alive, each once for all topics."""
        asked = [id for id in self._closer(topic) if id not in probed]
        probed.update(asked)
        return [Send(other, Probe(topic, self.id)) for other in asked]

    def _on_timeout_of(self, topic: str) -> list[Send]:
        served = self.topics[topic]
        closer = self._moved_to(topic)
        effects = served.on_timeout() if closer is None else self._hand_over(served, closer)
        if not len(served.database):
            del self.topics[topic]
        return effects

    def on_command(self, command: Command) -> Effects:
        """A failed send to a subscriber is a hint to every topic that has it.

        Other supervisors than before: who is closer to a topic now is found out by probes. After a
        restart members may have come and gone.
        """
        if isinstance(command, Restarted):
            self.unsettled = SETTLE_TIMEOUTS
            for served in self.topics.values():
                served.unsettle(SETTLE_TIMEOUTS)
        if isinstance(command, Supervisors):
            self.supervisors = tuple(dict.fromkeys(command.ids))
        if not isinstance(command, LinkDown):
            return ()
        effects: list[Send] = []
        for served in self.topics.values():
            effects += served.on_link_down(command.peer)
        self.sent += len(effects)
        return effects

    def state(self) -> SupervisorState:
        """The databases and all that is beside them."""
        topics = {topic: served.state() for topic, served in self.topics.items()}
        totals = (self.requests, self.sent)
        rest = (self.moved, self.turn, self.budget.state(), *totals, self.unsettled, self.absent)
        return SupervisorState(topics, *rest)  # type: ignore[arg-type]

    def load(self, state: State) -> None:
        """Take any databases, of at most `TOPICS_MAX` topics."""
        assert isinstance(state, SupervisorState)
        self.moved, self.turn = state.moved, state.turn
        self.requests, self.sent = state.requests, state.sent
        self.unsettled, self.absent = state.unsettled, state.absent
        self.budget.load(state.budget)
        self.topics = {}
        for topic, its in state.topics.items():
            if served := self.serve(topic):
                served.load(its)

    def serve(self, topic: str) -> TopicSupervisor | None:
        """The database of `topic`, made if need be; None if there are too many."""
        if topic not in self.topics:
            if len(self.topics) >= TOPICS_MAX:
                return None
            served = TopicSupervisor(topic, self.id, self.budget, self.pace_max)
            served.unsettle(self._unsettled(topic))
            self.topics[topic] = served
        return self.topics[topic]

    def settled(self, topic: str) -> bool:
        """Have all members of `topic` had the time to ask me? Then I know how many there are.

        Not while another one serves it, nor right after a restart or instead of one that served it
        until lately. A new topic of my own is settled at once: who joins it was in no ring before.
        """
        served = self.topics.get(topic)
        left = self._unsettled(topic) if served is None else served.unsettled
        return left <= 0 and self._moved_to(topic) is None

    def _unsettled(self, topic: str) -> int:
        """For how many timeouts more members may ask of which nobody has told me."""
        absences = [self._absence(id) for id in self._closer(topic)]
        return max(self.unsettled, SETTLE_TIMEOUTS - min(absences, default=SETTLE_TIMEOUTS))

    def _absence(self, id: NodeId) -> int:
        return max(self.absent.get(id, 0), 0)

    def _closer(self, topic: str) -> tuple[NodeId, ...]:
        """The supervisors that would rather serve `topic` than me."""
        known = tuple(id for id in self.supervisors if is_node_id(id))
        order = preference(topic, known, self.secret)
        return order[: order.index(self.id)] if self.id in order else order

    def _moved_to(self, topic: str) -> NodeId | None:
        """Who serves `topic` instead of me; only one that the order of preference puts first."""
        closer, age = self.moved.get(topic, (self.id, -1))
        return closer if 0 <= age <= MOVED_AGE_MAX and closer in self._closer(topic) else None

    def _age_moved(self) -> None:
        known = {topic: age for topic, (_, age) in self.moved.items() if age > 0}
        closer = {topic: self._moved_to(topic) for topic in known}
        self.moved = {
            topic: (other, known[topic] - 1) for topic, other in closer.items() if other is not None
        }

    def _hand_over(self, served: TopicSupervisor, closer: NodeId) -> list[Send]:
        """Send as many members as the budget allows to the supervisor that serves them now."""
        served.database.repair()
        entries = served.database.entries
        kept = max(0, len(entries) - min(served.rate, self.budget.left(0)))
        moving = [id for id in entries[kept:] if id is not None]
        served.database.entries = entries[:kept]
        self.budget.spent += len(moving)
        return [Send(id, Moved(served.topic, self.id, closer)) for id in moving]


_HANDLERS: dict[type[Message], Callable[[Supervisor, Any], Effects]] = {
    GetConfiguration: Supervisor._on_get_configuration,
    Unsubscribe: Supervisor._on_unsubscribe,
    Probe: Supervisor._on_probe,
    ProbeReply: Supervisor._on_probe_reply,
}
