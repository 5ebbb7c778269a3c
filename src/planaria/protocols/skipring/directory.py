"""The directory at every node: which topics there are, and who is in them.

Soft state: supervisors are asked again and again, and what none of them names any more is
forgotten. Nothing is believed but answers to questions of one's own.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from msgspec import field

from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Command, LinkDown, LinkUp, Send, Supervisors
from planaria.core.state import State, Stateful
from planaria.core.topics import check_filter, covers, matches
from planaria.protocols.skipring.directory_messages import (
    AskMembers,
    AskTopics,
    Members,
    Topics,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.register import Register, is_topic
from planaria.protocols.skipring.sought import Sought, SoughtState
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.walk import POSTPONED, REST_MAX, Walk, WalkState, is_filter

PATTERNS_MAX = 256  # that one node wants to know about
WANTED_MAX = 240  # timeouts for which a pattern is asked for after somebody looked
KNOWN_MAX = 1 << 16  # topics: as many as one supervisor serves
KEPT_MAX = 4 * REST_MAX  # timeouts for which a topic is kept that no supervisor names
SWEEP_EVERY = 8  # timeouts
PAGES_MAX = 64  # questions for further pages between two timeouts
SOUGHT_MAX = 4096  # topics whose members are wanted
TURN_MAX = 1 << 62


class Seek(Command, frozen=True, gc=False):
    """Ask at once who is in `topic`; `Directory.members` will tell."""

    topic: str


class DirectoryState(State):
    """What is wanted, what was heard and when, and how far each supervisor was asked."""

    turn: int = 0
    wanted: dict[str, int] = field(default_factory=dict)
    heard: dict[str, list[int]] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    walks: dict[int, WalkState] = field(default_factory=dict)
    sought: dict[str, SoughtState] = field(default_factory=dict)


class Directory(Stateful):
    """What one node knows of all topics; at a supervisor it also answers for that one's topics."""

    __slots__ = (
        "_pages",
        "_reduced",
        "_rng",
        "heard",
        "id",
        "known",
        "news",
        "register",
        "secret",
        "sought",
        "supervisors",
        "turn",
        "walks",
        "wanted",
    )
    state_type = DirectoryState

    def __init__(
        self,
        id: NodeId,
        supervisors: Sequence[NodeId],
        rng: Random,
        supervisor: Supervisor | None = None,
        secret: bytes = b"",
    ) -> None:
        self.id, self.supervisors, self.secret = id, tuple(supervisors), secret
        self.register = None if supervisor is None else Register(supervisor, rng)
        self.turn = 0  # timeouts so far
        self.wanted: dict[str, int] = {}  # patterns, and for how many timeouts they are asked for
        self.heard: dict[str, list[NodeId]] = {}  # who has told all topics of a pattern
        self.known: dict[str, int] = {}  # topics, and the turn in which they were last named
        self.walks: dict[NodeId, Walk] = {}
        self.sought: dict[str, Sought] = {}
        self.news: list[str] = []  # topics just named, for whoever joins them
        self._rng = rng
        self._pages = 0  # asked for since the last timeout
        self._reduced: tuple[list[str], list[str]] = ([], [])  # patterns, and the widest of them

    # For the node's application

    def topics(self, pattern: str) -> list[str]:
        """The known topics that match, in order; whoever looks again and again learns of others.

        Raises `UsageError` if it is no pattern.
        """
        wanted = check_filter(pattern)
        self.want(wanted)
        return sorted(topic for topic in self.known if matches(wanted, topic))

    def complete(self, pattern: str) -> bool:
        """Has every supervisor told all its topics of a pattern, but for those long silent?

        Raises `UsageError` if it is no pattern.
        """
        return self.is_answered(check_filter(pattern))

    def is_answered(self, pattern: str) -> bool:
        """The same of a pattern that memory holds, whatever it is."""
        answered = self.heard.get(pattern, [])
        silent = [id for id in self.supervisors if id not in answered]
        return bool(answered) and all(id in self.walks and self.walks[id].quiet for id in silent)

    def members(self, topic: str) -> tuple[list[NodeId], int] | None:
        """Some members of a topic and their number; None while no supervisor has answered."""
        sought = self._sought(topic)
        sought.looked = self.turn
        return sought.found

    def settled(self, topic: str) -> bool:
        """Is the number of members certain? Not while a supervisor may not know all of them."""
        sought = self.sought.get(topic)
        return sought is not None and sought.found is not None and sought.settled

    def want(self, pattern: str) -> None:
        """Ask for a pattern from now on, for a while."""
        if pattern not in self.wanted and len(self.wanted) >= PATTERNS_MAX:
            del self.wanted[min(self.wanted, key=lambda it: self.wanted[it])]
        if pattern not in self.wanted:
            self.heard[pattern] = []
            self._reduced = ([*self.wanted, pattern], widest([pattern], self._patterns()))
            for walk in self.walks.values():
                walk.add(pattern)
        self.wanted[pattern] = WANTED_MAX

    def hurry(self, pattern: str) -> list[Send]:
        """Ask those that rest for a pattern at once, for somebody waits."""
        self.repair()
        resting = [id for id, walk in self.walks.items() if not walk.patterns]
        return [self._ask(id) for id in resting if self.walks[id].begin([pattern])]

    # Inputs

    def on_message(self, message: Message) -> list[Send]:
        """A question, if I supervise, or an answer, if I asked."""
        if self.register is not None and isinstance(message, AskTopics | AskMembers):
            return self.register.on_message(message)
        handler = _HANDLERS.get(type(message))
        return handler(self, message) if handler else []

    def on_timeout(self) -> list[Send]:
        """Time passed: ask on, ask again, forget what was not named for long."""
        self.repair()
        self.turn += 1
        self._pages = 0
        if self.register is not None:
            self.register.on_timeout()
        self.wanted = {it: left - 1 for it, left in self.wanted.items() if left > 0}
        if self.turn % SWEEP_EVERY == 0:
            self._sweep()
        patterns = self._patterns()
        asking = [id for id, walk in self.walks.items() if walk.due(patterns)]
        return [self._ask(id) for id in asking] + self._ask_for_members()

    def on_command(self, command: Command) -> list[Send]:
        """The driver knows of other supervisors, or of a link; or members are wanted at once."""
        if isinstance(command, Supervisors):
            self.supervisors = tuple(dict.fromkeys(command.ids))
            self._repair_walks()
        elif isinstance(command, LinkUp) and command.peer in self.walks:
            self.walks[command.peer].silent = 0
        elif isinstance(command, LinkDown) and command.peer in self.walks:
            self.walks[command.peer].silent += 1
        elif isinstance(command, Seek):
            sought = self._sought(command.topic)
            return self._seek(command.topic, sought) if sought.asks(self.turn) else []
        return []

    def load(self, state: State) -> None:
        """Take any state."""
        assert isinstance(state, DirectoryState)
        self.turn, self.known = state.turn, state.known
        self.wanted, self.heard = state.wanted, state.heard
        self.walks = {id: Walk() for id in state.walks}
        self.sought = {topic: Sought() for topic in state.sought}
        for id, walk in state.walks.items():
            self.walks[id].load(walk)
        for topic, sought in state.sought.items():
            self.sought[topic].load(sought)

    def state(self) -> DirectoryState:
        """All that was heard and asked."""
        walks: Any = {id: walk.state() for id, walk in self.walks.items()}
        sought: Any = {topic: it.state() for topic, it in self.sought.items()}
        return DirectoryState(self.turn, self.wanted, self.heard, self.known, walks, sought)

    def repair(self) -> None:
        """Put every variable back into its range; tables that are too large lose what is left."""
        if not 0 <= self.turn < TURN_MAX:
            self.turn = 0
        good = [it for it in self.wanted if is_filter(it)][:PATTERNS_MAX]
        self.wanted = {it: min(max(self.wanted[it], 0), WANTED_MAX) for it in good}
        self.heard = {
            it: [id for id in dict.fromkeys(self.heard.get(it, [])) if id in self.supervisors]
            for it in good
        }
        self._repair_walks()
        for walk in self.walks.values():
            walk.repair()
        for topic in list(self.sought)[SOUGHT_MAX:]:
            del self.sought[topic]
        for sought in self.sought.values():
            sought.repair(self.turn)

    def _repair_walks(self) -> None:
        self.walks = {id: self.walks.get(id) or Walk() for id in self.supervisors if is_node_id(id)}

    def _sweep(self) -> None:
        """Forget what no supervisor has named for long, and what nobody has looked at."""
        heard = {topic: min(turn, self.turn) for topic, turn in self.known.items()}
        kept = [topic for topic, turn in heard.items() if self.turn - turn <= KEPT_MAX]
        self.known = {topic: heard[topic] for topic in kept[:KNOWN_MAX]}
        self.sought = {topic: it for topic, it in self.sought.items() if it.fresh(self.turn)}

    # Topics

    def _patterns(self) -> list[str]:
        """What to ask for: no pattern that another one covers; worked out when they change."""
        if self._reduced[0] != list(self.wanted):
            self._reduced = (list(self.wanted), widest(self.wanted))
        return self._reduced[1]

    def _ask(self, supervisor: NodeId) -> Send:
        question = self.walks[supervisor].question(self._rng)
        return Send(supervisor, AskTopics(self.id, *question))

    def _on_topics(self, message: Topics) -> list[Send]:
        """A page of an answer: learn from it, and ask for the next one."""
        walk = self.walks.get(message.sender)
        if walk is None or not walk.patterns or message.walk != walk.number:
            return []
        walk.repair()
        if not walk.patterns:
            return []
        for topic in message.topics:
            if matches(walk.patterns[0], topic):
                self._learn(topic)
        done = walk.turn(message.next)
        if done is not None:
            self._answered(message.sender, done)
        self._pages += 1
        if not walk.patterns:
            return []
        if self._pages > PAGES_MAX:
            walk.number = POSTPONED
            return []
        return [self._ask(message.sender)]

    def _learn(self, topic: str) -> None:
        full = len(self.known) >= KNOWN_MAX
        if topic not in self.known and (full or not is_topic(topic)):
            return
        self.known[topic] = self.turn
        self.news.append(topic)

    def _answered(self, supervisor: NodeId, done: str) -> None:
        """A supervisor has told all its topics of `done`, and of what that covers."""
        for pattern in self.wanted:
            answered = self.heard.setdefault(pattern, [])
            if supervisor not in answered and covers(done, pattern):
                answered.append(supervisor)

    # Members

    def _sought(self, topic: str) -> Sought:
        if topic not in self.sought:
            if len(self.sought) >= SOUGHT_MAX:
                del self.sought[next(iter(self.sought))]
            self.sought[topic] = Sought(self.turn)
        return self.sought[topic]

    def _ask_for_members(self) -> list[Send]:
        due = [(topic, it) for topic, it in self.sought.items() if it.due(self.turn)]
        return [send for topic, sought in due for send in self._seek(topic, sought)]

    def _seek(self, topic: str, sought: Sought) -> list[Send]:
        """Ask the supervisor that should serve a topic; without an answer the next ones too."""
        if not is_topic(topic):
            return []
        order = preference(topic, self.supervisors, self.secret)
        asked = order[: sought.ask(self.turn)]
        return [Send(id, AskMembers(self.id, topic)) for id in asked if is_node_id(id)]

    def _on_members(self, message: Members) -> list[Send]:
        """Who is in a topic, as far as one supervisor knows."""
        sought = self.sought.get(message.topic)
        order = preference(message.topic, self.supervisors, self.secret)
        if sought is not None and message.sender in order:
            first, settled = message.sender == order[0], message.settled
            sought.learn(self.turn, message.members, message.count, settled=settled, first=first)
        return []


def widest(patterns: Iterable[str], before: Iterable[str] = ()) -> list[str]:
    """Those patterns that together cover all; of several that cover each other, the first.

    `before` are some to begin with, none of which covers another.
    """
    found = list(before)
    for pattern in patterns:
        if not any(covers(it, pattern) for it in found):
            found = [it for it in found if not covers(pattern, it)] + [pattern]
    return found


_HANDLERS: dict[type[Message], Callable[[Directory, Any], list[Send]]] = {
    Topics: Directory._on_topics,
    Members: Directory._on_members,
}
