"""How old is what a member believes of its ring? As old as the last word of its neighbours.

A calm neighbour speaks rarely and promises when; its counter of silence begins below zero by so
much, so its value alone does not say when it was last set. Whoever looks once in each interval
sees when it falls.
"""

from collections.abc import Mapping

from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.rest import silence


class Evidence:
    """Watches the members of one node; `tick` it once in each interval."""

    def __init__(self) -> None:
        self._now = 0
        # Of both sides: since which tick its silence has only grown, were it counted from zero,
        # and when it last did anything else.
        self._seen: dict[str, tuple[int, int, int, int]] = {}

    def tick(self, topics: Mapping[str, Membership]) -> None:
        """An interval passed."""
        self._now = now = self._now + 1
        for topic, membership in topics.items():
            before, after = silence(membership.subscriber)
            first, second, heard, answered = self._seen.get(topic, (None, None, now, now))
            if now - before != first or now - after != second:
                heard = heard if now - before == first else now
                answered = answered if now - after == second else now
                self._seen[topic] = (now - before, now - after, heard, answered)
        if len(self._seen) > len(topics):
            self._seen = {topic: it for topic, it in self._seen.items() if topic in topics}

    def age(self, topic: str, membership: Membership) -> int:
        """Intervals since the last word of the ring neighbour that has been silent for longer.

        Who has no neighbour has the supervisor's word alone.
        """
        one, now = membership.subscriber, self._now
        heard = self._seen.get(topic, (0, 0, now, now))[2:]
        there = [now - at for ref, at in zip((one.pred, one.succ), heard, strict=True) if ref]
        return max(there) if there else max(0, one.inquiry.version_age)
