"""Subscriptions with wildcards: every topic that matches is joined, also those that come later."""

from collections.abc import Iterable

from msgspec import field

from planaria.core.errors import CapacityExceeded
from planaria.core.node import Effect, Joined, Notice, Subscribe, Unsubscribe
from planaria.core.state import State, Stateful
from planaria.core.topics import matches
from planaria.protocols.skipring.directory import PATTERNS_MAX, Directory
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.register import is_topic
from planaria.protocols.skipring.walk import is_filter

AUDIT_EVERY = 16  # timeouts between two looks at all that was joined


class WildcardsState(State):
    """Which patterns are subscribed to, what was joined for them alone, and who waits to hear."""

    patterns: dict[str, bool] = field(default_factory=dict)
    joined: dict[str, bool] = field(default_factory=dict)
    awaited: dict[str, int] = field(default_factory=dict)
    audit: int = 0


class Wildcards(Stateful):
    """The subscriptions with wildcards of one peer."""

    __slots__ = ("_refused", "audit", "awaited", "directory", "joined", "patterns", "peer")
    state_type = WildcardsState

    def __init__(self, peer: Peer, directory: Directory) -> None:
        self.peer, self.directory = peer, directory
        self.patterns: dict[str, bool] = {}  # and whether each is to be delivered in order
        self.joined: dict[str, bool] = {}  # topics that nobody here has subscribed to by name
        # Patterns of which it was not yet said that they are joined, and since which turn.
        self.awaited: dict[str, int] = {}
        self._refused: set[str] = set()  # said since the last audit that there is no room for them
        self.audit = 0  # timeouts until all that was joined is looked at

    def subscribe(self, pattern: str, *, ordered: bool) -> list[Effect]:
        """Join all topics that match, now and later."""
        if pattern not in self.patterns and len(self.patterns) >= PATTERNS_MAX:
            raise CapacityExceeded(f"{PATTERNS_MAX} patterns at one peer: leave one first")
        self.patterns[pattern] = ordered
        self.awaited[pattern] = self.directory.turn
        self.directory.want(pattern)
        return [*self.directory.hurry(pattern)]

    def unsubscribe(self, pattern: str) -> list[Effect]:
        """Leave the topics that match and that nothing else here wants."""
        self.patterns.pop(pattern, None)
        self.awaited.pop(pattern, None)
        return self._leave_unwanted()

    def named(self, topic: str) -> None:
        """A topic is subscribed to by its name: it is not for the patterns to leave."""
        self.joined.pop(topic, None)

    def keeps(self, topic: str) -> bool:
        """A topic is left by its name: does a pattern want it? Then it stays for that."""
        if self._matching(topic) is None:
            return False
        self.joined[topic] = True
        return True

    def clear(self) -> None:
        """Want nothing any more."""
        self.patterns, self.joined, self.awaited = {}, {}, {}

    def on_news(self) -> list[Effect]:
        """Join what a supervisor has just named, and what matches; memory alone is no reason to."""
        news, self.directory.news = self.directory.news, []
        return self._join(news) + (self._said() if self.awaited else [])

    def on_timeout(self) -> list[Effect]:
        """Keep the directory asking; now and then look whether all that was joined is wanted."""
        self.repair()
        for pattern in self.patterns:
            self.directory.want(pattern)
        self.audit -= 1
        if self.audit > 0:
            return self.on_news()
        self.audit = AUDIT_EVERY
        return [*self._leave_unwanted(), *self.on_news()]

    def repair(self) -> None:
        """Put my own variables right."""
        good = [pattern for pattern in self.patterns if is_filter(pattern)][:PATTERNS_MAX]
        self.patterns = {pattern: self.patterns[pattern] for pattern in good}
        self.joined = {topic: True for topic in self.joined if topic in self.peer.topics}
        turn = self.directory.turn
        awaited = {it: min(since, turn) for it, since in self.awaited.items()}
        self.awaited = {it: since for it, since in awaited.items() if it in self.patterns}
        self.audit = min(max(self.audit, 0), AUDIT_EVERY)

    def _matching(self, topic: str) -> bool | None:
        """Is `topic` wanted, in order or not? None: no pattern matches."""
        found = [ordered for it, ordered in self.patterns.items() if matches(it, topic)]
        return any(found) if found else None

    def _join(self, topics: Iterable[str]) -> list[Effect]:
        """Join those that match and that I am not in; once in an audit, say if there is no room."""
        effects: list[Effect] = []
        for topic in topics:
            membership = self.peer.topics.get(topic)
            if membership is not None and not membership.subscriber.leaving:
                continue
            wanted = self._matching(topic)
            if wanted is None or not is_topic(topic):
                continue
            try:
                effects += self.peer.on_command(Subscribe(topic, ordered=wanted))
                self.joined[topic] = True
            except CapacityExceeded as error:
                if topic not in self._refused:
                    effects.append(Notice(topic, "full", {"reason": str(error)}))
                    self._refused.add(topic)
        return effects

    def _leave_unwanted(self) -> list[Effect]:
        unwanted = [topic for topic in self.joined if self._matching(topic) is None]
        self._refused.clear()
        effects: list[Effect] = []
        for topic in unwanted:
            del self.joined[topic]
            effects += self.peer.on_command(Unsubscribe(topic))
        return effects

    def _said(self) -> list[Effect]:
        """Say of each pattern once that all topics that match are joined."""
        answered = [it for it in self.awaited if self.directory.is_answered(it)]
        said = [it for it in answered if self._in_all(it, self.awaited[it])]
        for pattern in said:
            del self.awaited[pattern]
        return [Joined(pattern) for pattern in said]

    def _in_all(self, pattern: str, since: int) -> bool:
        """Am I a member of every topic of a pattern that was named since that turn?"""
        for topic, turn in self.directory.known.items():
            if turn >= since and matches(pattern, topic):
                membership = self.peer.topics.get(topic)
                if membership is None or membership.awaited:
                    return False
        return True
