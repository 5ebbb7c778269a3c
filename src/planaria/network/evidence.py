"""How old is what a member believes of its ring? As old as the last word of its neighbours.

A calm neighbour speaks rarely and promises when; its counter of silence begins below zero by so
much, so its value alone does not say when it was last set. Whoever looks once in each interval
sees when it falls.
"""

from collections.abc import Mapping

from planaria.protocols.skipring.membership import Membership

Sides = tuple[int, int]


class Evidence:
    """Watches the members of one node; `tick` it once in each interval."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Sides, Sides]] = {}  # silence, and intervals since it fell

    def tick(self, topics: Mapping[str, Membership]) -> None:
        """An interval passed."""
        seen = {}
        for topic, membership in topics.items():
            silence = membership.subscriber.silence
            known = self._seen.get(topic)
            seen[topic] = (silence, (0, 0) if known is None else _ages(known, silence))
        self._seen = seen

    def age(self, topic: str, membership: Membership) -> int:
        """Intervals since the last word of the ring neighbour that has been silent for longer.

        Who has no neighbour has the supervisor's word alone.
        """
        one = membership.subscriber
        ages = self._seen.get(topic, ((0, 0), (0, 0)))[1]
        there = [age for ref, age in zip((one.pred, one.succ), ages, strict=True) if ref]
        return max(there) if there else max(0, one.inquiry.version_age)


def _ages(known: tuple[Sides, Sides], silence: Sides) -> Sides:
    before, ages = known
    first, second = (
        age + 1 if now == was + 1 else 0
        for was, now, age in zip(before, silence, ages, strict=True)
    )
    return first, second
