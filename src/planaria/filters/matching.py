"""Which of many filters match a notification: a tree of selective equalities over sieves.

A leaf that grows is split by an attribute for which many of its filters name many different single
values: one look-up then leaves the filters for that value and those that do not care. What cannot
be split so is sieved, 64 filters at a time (`sieve`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from planaria.filters.filters import Attributes, Filter, matches
from planaria.filters.sieve import Key, Sieve
from planaria.filters.values import Value, points

LEAF_MAX = 12  # filters that are tested one by one; more are worth a split or a sieve
POINTS_MAX = (
    16,
    4,
    1,
)  # branches that a filter goes to at each split on its way: 64 leaves at most
GAIN_MIN = 32  # filters that a split must rule out on average to be worth its look-up
DISTINCT_MIN = 32  # values of an attribute; fewer are quicker in a sieve


class MatchingIndex:
    """A set of filters, each under a key; `match` finds the keys of those that match."""

    def __init__(self) -> None:
        self._root = _Branch()
        self._filters: dict[Key, Filter] = {}

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def filters(self) -> Mapping[Key, Filter]:
        """All filters, each under its key."""
        return self._filters

    def add(self, key: Key, filter: Filter) -> None:
        """Put `filter` under `key`, instead of what was there."""
        if key in self._filters:
            self.remove(key)
        self._filters[key] = filter
        self._root.add(key, filter)

    def remove(self, key: Key) -> None:
        """Take away what is under `key`, if anything is."""
        filter = self._filters.pop(key, None)
        if filter is not None:
            self._root.remove(key, filter)

    def match(self, attributes: Attributes) -> list[Key]:
        """The keys of all filters that match, each once."""
        found: list[Key] = []
        self._root.match(attributes, found)
        return found


class _Branch:
    """A part of the filters: a leaf, or split by the values of one attribute."""

    __slots__ = ("attribute", "children", "filters", "rest", "retry", "settled", "sieve", "used")

    def __init__(self, used: tuple[str, ...] = (), settled: tuple[str, ...] = ()) -> None:
        self.used = used  # attributes split by on the way here
        self.settled = settled  # those of them for which all filters here name the same value
        self.attribute: str | None = None
        self.children: dict[Any, _Branch] = {}
        self.rest: _Branch | None = None
        self.filters: dict[Key, Filter] = {}
        self.sieve: Sieve | None = None
        self.retry = LEAF_MAX

    def add(self, key: Key, filter: Filter) -> None:
        if self.attribute is None:
            self.filters[key] = filter
            if self.sieve is not None and not self.sieve.add(key, filter):
                self.sieve = None
            if len(self.filters) > self.retry:
                self._split()
            return
        for branch in self._ways(filter):
            branch.add(key, filter)

    def remove(self, key: Key, filter: Filter) -> None:
        if self.attribute is None:
            if self.filters.pop(key, None) is not None and self.sieve is not None:
                self.sieve.remove(key)
            return
        for branch in self._ways(filter):
            branch.remove(key, filter)

    def match(self, attributes: Attributes, found: list[Key]) -> None:
        branch: _Branch | None = self
        while branch is not None and branch.attribute is not None:
            value = attributes.get(branch.attribute)
            if value is not None:
                child = branch.children.get(_typed(value))
                if child is not None:
                    child.match(attributes, found)
            branch = branch.rest
        if branch is None:
            return
        filters = branch.filters
        if len(filters) <= LEAF_MAX:
            found += [key for key, filter in filters.items() if matches(filter, attributes)]
            return
        if branch.sieve is None:
            branch.sieve = Sieve(filters, branch.settled)
        found += branch.sieve.match(attributes)

    @property
    def _most(self) -> int:
        """So many values of an attribute a filter may name to be split by it here."""
        return POINTS_MAX[len(self.used)] if len(self.used) < len(POINTS_MAX) else 0

    def _ways(self, filter: Filter) -> Iterator["_Branch"]:
        """The branches that must know `filter`; they are made when first needed."""
        name = str(self.attribute)
        values = _single(filter, name, self._most)
        if values is None:
            if self.rest is None:
                self.rest = _Branch((*self.used, name), self.settled)
            yield self.rest
            return
        for value in values:
            place = _typed(value)
            child = self.children.get(place)
            if child is None:
                child = self.children[place] = _Branch((*self.used, name), (*self.settled, name))
            yield child

    def _split(self) -> None:
        if not self._most:
            return
        counts: dict[str, int] = {}
        distinct: dict[str, dict[Any, int]] = {}
        for filter in self.filters.values():
            for attribute, values in filter.constraints:
                named = None if attribute in self.used else points(values, self._most)
                if named is not None:
                    counts[attribute] = counts.get(attribute, 0) + 1
                    distinct.setdefault(attribute, {}).update({_typed(it): 1 for it in named})
        worth = [
            (counts[attribute] * (1 - 1 / len(distinct[attribute])), attribute)
            for attribute in sorted(counts)
            if len(distinct[attribute]) >= DISTINCT_MIN
        ]
        gain, attribute = max(worth, default=(0.0, ""))
        self.retry = 2 * len(self.filters)
        if gain < GAIN_MIN:
            return
        self.sieve = None
        filters, self.filters, self.attribute = self.filters, {}, attribute
        for key, filter in filters.items():
            for branch in self._ways(filter):
                branch.add(key, filter)


def _single(filter: Filter, attribute: str, most: int) -> list[Value] | None:
    """The values that `filter` allows for `attribute`, if they are few."""
    for name, values in filter.constraints:
        if name == attribute:
            return points(values, most)
    return None


def _typed(value: Value) -> Any:
    """A dictionary takes True for 1; a filter does not."""
    return (value,) if isinstance(value, bool) else value
