"""The patterns of one subscription: what overlaps is read once."""

from collections.abc import Iterable, Iterator

from planaria.core.errors import UsageError
from planaria.core.topics import check_filter, covers, matches


class Patterns:
    """Some patterns, without those that another one covers."""

    __slots__ = ("_all",)

    def __init__(self, patterns: Iterable[str]) -> None:
        named = dict.fromkeys(check_filter(pattern) for pattern in patterns)
        if not named:
            raise UsageError("subscribe to at least one topic or pattern")
        self._all = [
            it for it in named if not any(covers(other, it) for other in named if other != it)
        ]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def of(self, topic: str) -> str | None:
        """The one pattern that a topic is read by: the first that matches."""
        return next((pattern for pattern in self._all if matches(pattern, topic)), None)
