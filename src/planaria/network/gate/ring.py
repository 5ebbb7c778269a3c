"""What a gate asks of its node: members, memberships, and whether they are in order."""

from collections.abc import Callable

from planaria.core.errors import PlanariaError
from planaria.core.ids import NodeId
from planaria.core.node import Command, Joined, Subscribe
from planaria.core.topics import matches
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.ring_node import RingNode, has_wildcard

CALM_TIMEOUTS = 4  # after joining, in which a neighbour's digest shows what is missing


class Memberships:
    """The topics that this node takes part in, and those that its clients want it to."""

    def __init__(
        self, ring: RingNode, command: Callable[[Command], None], clock: Callable[[], float]
    ) -> None:
        self.ring, self._command, self._clock = ring, command, clock
        self._began = clock()
        self._joined: dict[str, float] = {}  # topics and patterns that are in force, since when

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
        if has_wildcard(pattern):
            if pattern not in self._joined:
                self._command(Subscribe(pattern))
        elif self.get(pattern) is None:
            self._command(Subscribe(pattern))

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

    def candidates(self, topic: str) -> tuple[list[NodeId], int | None]:
        """Members to deposit at, this node and its neighbours first, and how many there are."""
        known = self.ring.directory.members(topic)
        found, count = known if known is not None else ([], None)
        membership = self.get(topic)
        if membership is None or not membership.holds:
            return [id for id in found if id != self.id], count
        near = [id for _, id in membership.subscriber.neighbours()]
        near = list(dict.fromkeys([self.id, *near]))
        if count is not None or len(near) == 1:
            count = max(count or 0, len(near))
        return list(dict.fromkeys([*near, *found])), count

    def join_if_empty(self, topic: str) -> str | None:
        """Be the first member of a topic that has none; says why that cannot be."""
        if self.get(topic) is None:
            try:
                self._command(Subscribe(topic))
            except PlanariaError as error:
                return str(error)
        return None
