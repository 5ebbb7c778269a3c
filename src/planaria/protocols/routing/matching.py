"""Which of many filters match a notification: a tree of equalities over leaves of ranges.

A leaf that grows is split by the attribute for which most of its filters name single values: one
look-up then leaves the filters for that value and those that do not care. What cannot be split is
sieved by number ranges, all at once; the few that are left are tested one by one, exactly.
"""

from collections.abc import Hashable, Iterator
from math import inf
from typing import Any

import numpy as np

from planaria.protocols.routing.filters import Attributes, Filter, matches
from planaria.protocols.routing.values import Value, points

LEAF_MAX = 6  # filters that are tested one by one; more are worth a split or a sieve
POINTS_MAX = 16  # a filter goes to so many branches at most: `x IN (...)` beyond it is a range
GAIN_MIN = 32  # filters that a split must rule out on average to be worth its look-up

Key = Hashable


class MatchingIndex:
    """A set of filters, each under a key; `match` finds the keys of those that match."""

    def __init__(self) -> None:
        self._root = _Branch(())
        self._filters: dict[Key, Filter] = {}

    def __len__(self) -> int:
        return len(self._filters)

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

    __slots__ = ("attribute", "children", "filters", "rest", "retry", "sieve", "used")

    def __init__(self, used: tuple[str, ...]) -> None:
        self.used = used  # attributes split by on the way here
        self.attribute: str | None = None
        self.children: dict[Any, _Branch] = {}
        self.rest: _Branch | None = None
        self.filters: dict[Key, Filter] = {}
        self.sieve: _Sieve | None = None
        self.retry = LEAF_MAX

    def add(self, key: Key, filter: Filter) -> None:
        if self.attribute is None:
            self.filters[key] = filter
            self.sieve = None
            if len(self.filters) > self.retry:
                self._split()
            return
        for branch in self._ways(filter):
            branch.add(key, filter)

    def remove(self, key: Key, filter: Filter) -> None:
        if self.attribute is None:
            self.filters.pop(key, None)
            self.sieve = None
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
            branch.sieve = _Sieve(filters)
        found += branch.sieve.match(attributes)

    def _ways(self, filter: Filter) -> Iterator["_Branch"]:
        """The branches that must know `filter`; they are made when first needed."""
        values = _single(filter, self.attribute)
        if values is None:
            if self.rest is None:
                self.rest = _Branch((*self.used, str(self.attribute)))
            yield self.rest
            return
        for value in values:
            place = _typed(value)
            child = self.children.get(place)
            if child is None:
                child = self.children[place] = _Branch((*self.used, str(self.attribute)))
            yield child

    def _split(self) -> None:
        counts: dict[str, int] = {}
        distinct: dict[str, dict[Any, int]] = {}
        for filter in self.filters.values():
            for attribute, values in filter.constraints:
                named = None if attribute in self.used else points(values, POINTS_MAX)
                if named is not None:
                    counts[attribute] = counts.get(attribute, 0) + 1
                    distinct.setdefault(attribute, {}).update({_typed(it): 1 for it in named})
        worth = [
            (counts[attribute] * (1 - 1 / len(distinct[attribute])), attribute)
            for attribute in sorted(counts)
        ]
        gain, attribute = max(worth, default=(0.0, ""))
        self.retry = 2 * len(self.filters)
        if gain < GAIN_MIN:
            return
        filters, self.filters, self.attribute = self.filters, {}, attribute
        for key, filter in filters.items():
            for branch in self._ways(filter):
                branch.add(key, filter)


class _Sieve:
    """The number ranges of many filters side by side. Lets through what matches, and a few more."""

    __slots__ = ("attributes", "filters", "high", "keys", "low")

    def __init__(self, filters: dict[Key, Filter]) -> None:
        self.keys = list(filters)
        self.filters = list(filters.values())
        ranged = {
            attribute: 0
            for filter in self.filters
            for attribute, values in filter.constraints
            if values.numbers
        }
        self.attributes = sorted(ranged)
        self.low = np.full((len(ranged), len(self.keys)), -inf)
        self.high = np.full((len(ranged), len(self.keys)), inf)
        for row, attribute in enumerate(self.attributes):
            for column, filter in enumerate(self.filters):
                values = dict(filter.constraints).get(attribute)
                if values is not None and values.numbers:
                    # Whole numbers too large for a float are rounded: the ends leave room for it.
                    self.low[row, column] = np.nextafter(float(values.numbers[0][0][0]), -inf)
                    self.high[row, column] = np.nextafter(float(values.numbers[-1][1][0]), inf)

    def match(self, attributes: Attributes) -> list[Key]:
        """The exact answer: what passes the sieve is tested."""
        given = [attributes.get(attribute) for attribute in self.attributes]
        # What is missing or no number cannot be sieved: rows without a number let all through.
        rows = [row for row, value in enumerate(given) if type(value) in (float, int)]
        low, high = self.low, self.high
        if len(rows) < len(given):
            low, high = low[rows], high[rows]
            given = [given[row] for row in rows]
        value = np.array(given, dtype=np.float64)[:, None]
        inside = (low <= value) & (high >= value)
        columns = np.flatnonzero(inside.all(axis=0)).tolist()
        filters, keys = self.filters, self.keys
        return [keys[column] for column in columns if matches(filters[column], attributes)]


def _single(filter: Filter, attribute: str | None) -> list[Value] | None:
    """The values that `filter` allows for `attribute`, if they are few."""
    for name, values in filter.constraints:
        if name == attribute:
            return points(values, POINTS_MAX)
    return None


def _typed(value: Value) -> Any:
    """A dictionary takes True for 1; a filter does not."""
    return (value,) if isinstance(value, bool) else value
