"""What a gate asks of its node: members, memberships, and whether they are in order."""

from collections.abc import Callable, Collection

from planaria.core.errors import PlanariaError
from planaria.core.ids import NodeId
from planaria.core.node import Command, Joined, Subscribe, Unsubscribe
from planaria.core.topics import has_wildcard, matches
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.node import RingNode

CALM_TIMEOUTS = 4  # after joining, in which a neighbour's digest shows what is missing
RELEASE_SECONDS = 600.0  # for which nobody must want what was joined for clients, before it is left
KEEPERS = 3  # members of a topic, by label, that never leave it for want of readers


class Memberships:
    """The topics that this node takes part in, and those that its clients want it to."""

    def __init__(
        self, ring: RingNode, command: Callable[[Command], None], clock: Callable[[], float]
    ) -> None:
        self.ring, self._command, self._clock = ring, command, clock
        self._began = clock()
        self._joined: dict[str, float] = {}  # topics and patterns that are in force, since when
        self.served: dict[str, float] = {}  # those joined for clients: when last wanted
        self.released: set[str] = set()  # topics that were left and have members which stay

    @property
    def id(self) -> NodeId:
        """This node."""
        return self.ring.peer.id

    def get(self, topic: str) -> Membership | None:
        """This node's part in a topic, if it has one and is to stay."""
        found = self.ring.peer.topics.get(topic)
        return None if found is None or found.subscriber.leaving else found

    def matching(self, pattern: str) -> list[str]:
        """The topics of a pattern that this node takes part in."""
        if not has_wildcard(pattern):
            return [pattern] if self.get(pattern) else []
        topics = self.ring.peer.topics
        return [topic for topic in topics if matches(pattern, topic) and self.get(topic)]

    def join(self, pattern: str) -> None:
        """Take part in all topics of a pattern from now on.

        Raises UsageError or CapacityExceeded if that cannot be.
        """
        known = pattern in self.ring.wildcards.patterns or self.get(pattern) is not None
        if not known:
            self._command(Subscribe(pattern))
        if not known or pattern in self.served:
            self.served[pattern] = self._clock()

    def serves(self, pattern: str) -> None:
        """This was joined for clients, before this node was started again."""
        self.served[pattern] = self._clock()

    def release(self, wanted: Collection[str], keeps: Callable[[str], bool]) -> None:
        """Leave what was joined for clients and nobody has wanted for long.

        `wanted` are the patterns that are followed now; `keeps` says what this node's own
        application wants. The first members of a topic stay, so that a topic without readers
        keeps its history.
        """
        now = self._clock()
        self.released -= {it for it in self.released if self.get(it)}
        self.served.update(dict.fromkeys((it for it in wanted if it in self.served), now))
        for pattern in [it for it, last in self.served.items() if now - last > RELEASE_SECONDS]:
            self.served[pattern] = now
            if keeps(pattern):
                del self.served[pattern]
            elif has_wildcard(pattern):
                matched = self.ring.wildcards.joined
                for topic in [it for it in self.matching(pattern) if it in matched]:
                    followed = any(matches(it, topic) for it in wanted)
                    if followed or not self._may_leave(topic):
                        self._command(Subscribe(topic))  # by its name it stays
                        self.served.setdefault(topic, now)
                self._leave(pattern)
            elif self.get(pattern) is None or self._may_leave(pattern):
                self._leave(pattern)

    def _may_leave(self, topic: str) -> bool:
        membership = self.get(topic)
        label = membership.subscriber.label if membership is not None and membership.calm else None
        return label is not None and label >= KEEPERS

    def _leave(self, pattern: str) -> None:
        before = self.matching(pattern)
        self._command(Unsubscribe(pattern))
        self.released.update(topic for topic in before if self.get(topic) is None)
        del self.served[pattern]
        self._joined.pop(pattern, None)

    def on_joined(self, effect: Joined) -> None:
        """A subscription is in force."""
        self._joined.setdefault(effect.pattern, self._clock())

    def joined(self, pattern: str) -> bool:
        """Does whatever is published on these topics from now on come here?"""
        if has_wildcard(pattern) and pattern not in self._joined:
            return False
        found = [self.get(topic) for topic in self.matching(pattern)]
        calm = all(it is not None and it.calm for it in found)
        return calm and (bool(found) or has_wildcard(pattern))

    def settled(self, pattern: str, interval: float) -> bool:
        """Does this node hold what its neighbours hold, as far as it can tell?"""
        if not self.joined(pattern):
            return False
        for topic in self.matching(pattern):
            membership = self.ring.peer.topics[topic]
            since = max(self._began, self._joined.get(topic, self._began))
            alone = not membership.subscriber.neighbours()
            waited = self._clock() - since > CALM_TIMEOUTS * interval
            if membership.history.antientropy.exchanges or not (alone or waited):
                return False
        return True

    def named(self, topic: str) -> bool:
        """Has a supervisor named the members of a topic?"""
        return self.ring.directory.members(topic) is not None

    def candidates(self, topic: str) -> tuple[list[NodeId], int | None, bool]:
        """Members to deposit at, this node and its neighbours first; how many there are, as far as
        known, and whether that is certain.

        What this node sees of its ring proves that there are members, not that there are no more:
        of a ring that lost its supervisor, the first to ask the next one is told to be alone.
        """
        known = self.ring.directory.members(topic)
        found, count = known if known is not None else ([], None)
        settled = self.ring.directory.settled(topic)
        membership = self.get(topic)
        if membership is None or not membership.holds:
            return [id for id in found if id != self.id], count, settled
        near = [id for _, id in membership.subscriber.neighbours()]
        near = list(dict.fromkeys([self.id, *near]))
        count = None if count is None else max(count, len(near))
        return list(dict.fromkeys([*near, *found])), count, settled

    def join_if_empty(self, topic: str) -> str | None:
        """Be the first member of a topic that has none; says why that cannot be."""
        if self.get(topic) is None:
            try:
                self._command(Subscribe(topic))
            except PlanariaError as error:
                return str(error)
        return None
