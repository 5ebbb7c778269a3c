"""Many filters side by side, one bit each: a notification is matched against 64 of them at a time.

For every attribute there is a table with one row of bits for each text that filters name, and one
for each bucket of numbers, times and other texts. The row of a notification's value has the bits of
the filters that the value may satisfy; the rows of all its attributes, intersected, leave the
filters that may match. A second table says which of these bits are not certain (the end of a range
is somewhere within the bucket): only those filters are tested one by one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from sys import float_info
from typing import TYPE_CHECKING, Any, TypeAlias

from planaria.core.later import Later
from planaria.filters.filters import Attributes, Filter, matches
from planaria.filters.ranges import NUL, prefix_end
from planaria.filters.timestamps import Timestamp
from planaria.filters.values import Value, Values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Later("numpy")

WORD = 64  # filters in one machine word
INTEGER_MAX = 256  # filters whose bits are Python's integers; more are quicker as arrays of words
BUCKETS_MIN, BUCKETS_MAX = 32, 256  # of a kind of values in a table: 64 bytes of a filter
NAMED_MAX = 256  # texts with a row of their own; all others are in buckets too
ROOM = 1.125  # a sieve has room for so many times the filters it was made for

Key = Hashable
Words: TypeAlias = "NDArray[np.uint64]"
Rows = Sequence[int | slice]


class Sieve:
    """Some filters, each under a key; bits of filters that went are dead until it is made anew."""

    __slots__ = ("_bits", "_filters", "_keys", "_places", "_settled", "_tables")

    def __init__(self, filters: dict[Key, Filter], settled: Sequence[str] = ()) -> None:
        """Of attributes that are `settled` any value asked for is one that all filters allow."""
        constraints: dict[str, list[Values]] = {}
        for filter in filters.values():
            for attribute, values in filter.constraints:
                if attribute not in settled:
                    constraints.setdefault(attribute, []).append(values)
        self._settled = settled
        self._tables: dict[str, _Table] = {}
        height = 0
        # What most filters care for first: few are left soon.
        for attribute, named in sorted(constraints.items(), key=lambda it: (-len(it[1]), it[0])):
            self._tables[attribute] = table = _Table(named, height)
            height = table.end
        room = int(ROOM * len(filters)) + 1
        self._bits = _Integers(height, room) if room <= INTEGER_MAX else _Arrays(height, room)
        self._keys: list[Key] = []
        self._filters: list[Filter] = []
        self._places: dict[Key, int] = {}
        for key, filter in filters.items():
            self.add(key, filter)

    def add(self, key: Key, filter: Filter) -> bool:
        """Put `filter` under `key`, which must be new; says if there was room."""
        place = len(self._keys)
        named = dict(filter.constraints)
        for attribute in self._settled:
            named.pop(attribute)
        if place == self._bits.room or not named.keys() <= self._tables.keys():
            return False
        self._keys.append(key)
        self._filters.append(filter)
        self._places[key] = place
        allowed: list[int | slice] = []
        doubted: list[int] = []
        for attribute, table in self._tables.items():
            values = named.get(attribute)
            if values is None:
                allowed.append(slice(table.missing, table.end))
            else:
                table.find(values, allowed, doubted)
        self._bits.add(place, allowed, doubted)
        return True

    def remove(self, key: Key) -> None:
        """Take away what is under `key`."""
        place = self._places.pop(key, None)
        if place is not None:
            self._bits.kill(place)

    def match(self, attributes: Attributes) -> list[Key]:
        """The keys of all filters that match: the exact answer."""
        sure, unsure = self._bits.survivors(self._rows(attributes))
        keys, filters = self._keys, self._filters
        found = [keys[place] for place in sure]
        found += [keys[place] for place in unsure if matches(filters[place], attributes)]
        return found

    def _rows(self, attributes: Attributes) -> Iterator[int]:
        for attribute, table in self._tables.items():
            value = attributes.get(attribute)
            if type(value) is str:  # the most frequent kinds without a call
                yield table.named.get(value) or table.texts.row(value)
            elif type(value) is float:
                yield table.numbers.first + bisect_right(table.numbers.cuts, value)
            else:
                yield table.row(value)


class _Integers:
    """The rows of few filters: each row is one integer."""

    __slots__ = ("_alive", "_allowed", "_doubted", "room")

    def __init__(self, height: int, room: int) -> None:
        self.room = room
        self._alive = 0
        self._allowed = [0] * height
        self._doubted = [0] * height

    def add(self, place: int, allowed: Rows, doubted: Rows) -> None:
        """Set the bit of the filter at `place` in these rows."""
        bit = 1 << place
        self._alive |= bit
        for table, rows in (
            (self._allowed, allowed),
            (self._allowed, doubted),
            (self._doubted, doubted),
        ):
            for row in rows:
                if isinstance(row, slice):
                    table[row] = [it | bit for it in table[row]]
                else:
                    table[row] |= bit

    def kill(self, place: int) -> None:
        """The filter at `place` is gone."""
        self._alive &= ~(1 << place)

    def survivors(self, rows: Iterable[int]) -> tuple[list[int], list[int]]:
        """The places with a bit in all rows: those beyond doubt, and the others."""
        possible, doubted = self._alive, 0
        for row in rows:
            possible &= self._allowed[row]
            if not possible:
                return [], []
            doubted |= self._doubted[row]
        sure: list[int] = []
        unsure: list[int] = []
        while possible:
            lowest = possible & -possible
            possible ^= lowest
            (unsure if lowest & doubted else sure).append(lowest.bit_length() - 1)
        return sure, unsure


class _Arrays:
    """The rows of many filters: each row is an array of words."""

    __slots__ = ("_alive", "_allowed", "_doubted", "room")

    def __init__(self, height: int, room: int) -> None:
        words = -(-room // WORD)
        self.room = WORD * words
        self._alive: Words = np.zeros(words, np.uint64)
        self._allowed: Words = np.zeros((height, words), np.uint64)
        self._doubted: Words = np.zeros((height, words), np.uint64)

    def add(self, place: int, allowed: Rows, doubted: Rows) -> None:
        """Set the bit of the filter at `place` in these rows."""
        word, bit = divmod(place, WORD)
        mask = np.uint64(1 << bit)
        self._alive[word] |= mask
        for table, rows in (
            (self._allowed, allowed),
            (self._allowed, doubted),
            (self._doubted, doubted),
        ):
            column = table[:, word]
            for row in rows:
                column[row] |= mask

    def kill(self, place: int) -> None:
        """The filter at `place` is gone."""
        self._alive[place // WORD] &= ~np.uint64(1 << place % WORD)

    def survivors(self, rows: Iterable[int]) -> tuple[list[int], list[int]]:
        """The places with a bit in all rows: those beyond doubt, and the others."""
        chosen = np.array(list(rows), np.intp)
        possible = np.bitwise_and.reduce(self._allowed.take(chosen, 0))
        possible &= self._alive
        words = possible.nonzero()[0]
        doubted = np.bitwise_or.reduce(self._doubted[chosen[:, None], words]).tolist()
        sure: list[int] = []
        unsure: list[int] = []
        for word, bits, doubt in zip(
            words.tolist(), possible[words].tolist(), doubted, strict=True
        ):
            before = word * WORD - 1
            while bits:
                lowest = bits & -bits
                bits ^= lowest
                (unsure if lowest & doubt else sure).append(before + lowest.bit_length())
        return sure, unsure


class _Table:
    """The rows of one attribute: missing, false, true, named texts, then buckets of each kind."""

    __slots__ = ("end", "instants", "missing", "named", "numbers", "texts", "words")

    def __init__(self, constraints: Sequence[Values], first: int) -> None:
        self.missing = first
        texts = [it for values in constraints for it in _texts(values)]
        points = dict.fromkeys(low for low, high, _ in texts if high == low + NUL)
        # In their order, so that a range of texts is a range of rows.
        self.words = sorted(list(points)[:NAMED_MAX])
        self.named = {word: first + 3 + place for place, word in enumerate(self.words)}
        ends = [end for low, high, _ in texts if low not in self.named for end in (low, high)]
        self.texts = _Buckets([it for it in ends if it is not None], first + 3 + len(self.words))
        numbers = [end[0] for it in constraints for ends in it.numbers for end in ends]
        floats = [float(it) for it in numbers if abs(it) < float_info.max]
        self.numbers = _Buckets(floats, self.texts.end)
        # An array: the numbers of a list are all over the memory, and waiting for them takes longer
        # than the search. Where exactly the line is cut does not matter.
        self.numbers.cuts = array("d", self.numbers.cuts)
        instants = [end for it in constraints for ends in it.timestamps for end in ends]
        self.instants = _Buckets(instants, self.numbers.end)
        self.end = self.instants.end

    def row(self, value: Value | None) -> int:
        """The row that holds for `value`."""
        if value is None:
            return self.missing
        if isinstance(value, str):
            return self.named.get(value) or self.texts.row(value)
        if isinstance(value, bool):
            return self.missing + 1 + value
        if isinstance(value, Timestamp):
            return self.instants.row(value.microseconds)
        # NaN is placed last: whoever is allowed there has the end of a range there, and is tested.
        return self.numbers.row(value)

    def find(self, values: Values, sure: list[int | slice], unsure: list[int]) -> None:
        """Add the rows whose values are all in the set, and those of which some may be.

        What is between the first and the last bucket of a range is in it, the ends who knows.
        """
        numbers, instants = self.numbers, self.instants
        spans = [(numbers.row(low[0]), numbers.row(high[0])) for low, high in values.numbers]
        spans += [(instants.row(start), instants.row(end)) for start, end in values.timestamps]
        for low, high, exact in _texts(values):
            if high == low + NUL and low in self.named:
                sure.append(self.named[low])
                continue
            beyond = len(self.words) if high is None else bisect_left(self.words, high)
            words = range(bisect_left(self.words, low), beyond)
            end = self.texts.end - 1 if high is None else self.texts.row(high)
            if exact:
                sure.append(slice(self.missing + 3 + words.start, self.missing + 3 + words.stop))
                spans.append((self.texts.row(low), end))
            else:
                unsure += [self.missing + 3 + word for word in words]
                unsure += range(self.texts.row(low), end + 1)
        for first, last in spans:
            sure.append(slice(first + 1, last))
            unsure += (first, last)
        sure += [
            slice(self.missing + 1 + it[0], self.missing + 1 + it[1]) for it in values.booleans
        ]


class _Buckets:
    """A line cut into pieces, each of which has a row."""

    __slots__ = ("cuts", "end", "first")

    def __init__(self, ends: Sequence[Any], first: int) -> None:
        cuts = sorted(dict.fromkeys(ends))
        most = min(BUCKETS_MAX, max(BUCKETS_MIN, len(cuts) // 4))
        self.cuts: Sequence[Any] = cuts[:: -(-len(cuts) // most) or 1]
        self.first, self.end = first, first + len(self.cuts) + 1

    def row(self, place: Any) -> int:
        """The row of the piece that `place` is in; it grows with `place`."""
        return self.first + bisect_right(self.cuts, place)


def _texts(values: Values) -> Iterator[tuple[str, str | None, bool]]:
    """Ranges of texts, from and up to before (None: all), and if all of the range is in the set.

    A topic pattern is the range of texts that begin as it does: not all of them match it.
    """
    for low, high in values.strings:
        yield low[1], None if high[0] else high[1], True
    for pattern in values.topics:
        stem = pattern.split("+")[0].split("#")[0]
        if stem == pattern:
            yield pattern, pattern + NUL, True
        else:
            beyond = prefix_end(stem.removesuffix("/"))
            yield stem.removesuffix("/"), None if beyond[0] else beyond[1], False
