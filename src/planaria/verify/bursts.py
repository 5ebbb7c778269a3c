"""A search that keeps states in which nothing is in flight, and between two of them nothing.

While messages are heard before the next timeout, a timeout is followed by a *burst*: its messages
and theirs, in every order, until nothing is in flight. There are some hundred states in bursts for
each without messages. They are made level by level from many timeouts at once, judged, and
forgotten; what stays is which states without messages each timeout may lead to.
"""

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from planaria.core.errors import UsageError
from planaria.verify.cells import Cells, Numbers, Ways
from planaria.verify.fair import Flags, Steps, distinct, livelocked
from planaria.verify.known import Codes
from planaria.verify.model import First, Model
from planaria.verify.passing import Passing
from planaria.verify.saved import SavedBursts
from planaria.verify.space import Schedule, Space
from planaria.verify.wide import CHUNK, Judged, Wide, chunks

ROOM = 1 << 25  # states of bursts that are taken at once, about
LONGEST = 300  # messages heard in a row: more are taken for messages without end
EMPTY = 0  # the set of nothing
FAULTS = ("livelock", "closure", "exception")  # seen in bursts; in sets they are numbers below 0
ENDLESS, LEFT, RAISED = -3, -2, -1  # FAULTS[ENDLESS] is a livelock


class Sets:
    """Sets of numbers, each made once and known by its place; 0 is the empty one."""

    def __init__(self) -> None:
        self.members: list[tuple[int, ...]] = [()]
        self._place: dict[tuple[int, ...], int] = {(): EMPTY}
        self._unions: dict[tuple[int, int], int] = {}

    def of(self, *numbers: int) -> int:
        """The place of this set."""
        found = self._place.setdefault(numbers, len(self.members))
        if found == len(self.members):
            self.members.append(numbers)
        return found

    def unions(self, first: Numbers, second: Numbers | int) -> Numbers:
        """Of each pair of sets the place of its union."""
        found, other = first.copy(), np.broadcast_to(second, first.shape)
        differ = np.flatnonzero(first != other)
        keys, back = np.unique(first[differ] << 32 | other[differ], return_inverse=True)
        made = [self._union(key >> 32, key & 0xFFFFFFFF) for key in keys.tolist()]
        found[differ] = np.array(made, dtype=np.int64)[back]
        return found

    def _union(self, first: int, second: int) -> int:
        found = self._unions.get((first, second))
        if found is None:
            both = set(self.members[first]).union(self.members[second])
            found = self._unions[first, second] = self.of(*sorted(both))
        return found


class Layer(Struct):
    """States that so many messages heard in a row lead to, and where one more leads."""

    quiet: Flags
    codes: Codes  # of the quiet ones
    faults: Numbers  # of each of the others: the set of its own faults
    count: Numbers  # and its steps
    ends: NDArray[np.int32]  # and where these lead, as places in the next layer


class Bursts(Wide):
    """A model under a schedule in which messages are heard before the next timeout."""

    def __init__(self, model: Model, schedule: Schedule, kept: SavedBursts | None = None) -> None:
        super().__init__(model, schedule)
        self.kept = kept
        self.numbers: dict[int, int] = {}  # of the states without messages, as they were found
        self.codes: list[int] = []
        self.after: list[tuple[int, int, int]] = []  # from which one, whose timeout, to which set
        self.sets = Sets()
        self.longest = 0  # messages heard in one burst
        self.faulty: dict[str, set[int]] = {it: set() for it in FAULTS}

    def __len__(self) -> int:
        return len(self.codes)

    def _cells(self, space: Space) -> Cells:
        self.passing = Passing(space)
        return Cells(space, self.passing)

    def _explore(self, firsts: Iterable[First], most: int) -> None:
        if self.kept is None or not self.kept.resume(self):
            self._begin(firsts)
        width = 1
        while self.expanded < len(self):
            batch = np.array(self.codes[self.expanded : self.expanded + width], dtype=np.uint64)
            before = self.between
            good = self.verdicts.of(batch)
            for part, judged in ((batch[good], True), (batch[~good], not self.passing.kinds)):
                self._burst(part, judged, most)
            self.expanded += len(batch)
            each = (self.between - before) // len(batch) + 1
            width = max(1, min(2 * len(batch), ROOM // each))
            if self.kept is not None:
                self.kept.keep(self, at_once=self.expanded == len(self))
        self.passing.confirm()

    def _begin(self, firsts: Iterable[First]) -> None:
        self.starts = [self.cells.code(self.cells.space.first(it)) for it in firsts]
        level = distinct(np.array(self.starts, dtype=np.uint64))
        if not self.cells.quiet(level).all():
            raise UsageError("bursts begin where nothing is in flight: not in all of these starts")
        self._number(level)

    def _number(self, codes: Codes) -> Numbers:
        """The numbers of these states; new ones get the next."""
        found = np.zeros(len(codes), dtype=np.int64)
        for place, code in enumerate(codes.tolist()):
            number = self.numbers.get(code)
            if number is None:
                number = self.numbers[code] = len(self.codes)
                self.codes.append(code)
            found[place] = number
        return found

    # The bursts of some states

    def _burst(self, batch: Codes, judged: bool, most: int) -> None:
        """Take every timeout that is due in these states, and all that comes of it.

        Where messages pass not every state between is visited, so only bursts that begin
        legitimately are judged on the way: they must stay so.
        """
        woken = self._certain(self.cells.wake(batch))
        level = distinct(woken.codes)
        led, right = np.searchsorted(level, woken.codes), self._fine(level, judged)
        left = woken.rows[self._fine(batch, judged)[woken.rows] & ~right[led]]
        layers: list[Layer] = []
        while len(level) and len(layers) < LONGEST:
            layer, level, right = self._layer(level, right, judged)
            layers.append(layer)
            self.between += len(layer.count)
            self.tick(self)
            if self.between + len(self) > most:
                raise UsageError(f"more than --states {most:,}: nothing is judged before the end")
        self.longest = max(self.longest, len(layers) - 1)
        sets = np.full(len(level), self.sets.of(ENDLESS))
        for layer in reversed(layers):
            sets = self._sets(layer, sets)
        rows = self._number(batch)
        self.faulty["closure"].update(rows[left].tolist())
        self.faulty["exception"].update(rows[self._raising(batch)].tolist())
        for row, whose, to in zip(rows[woken.rows], woken.whose, sets[led], strict=True):
            self._note(int(row), int(whose), int(to))

    def _note(self, state: int, whose: int, to: int) -> None:
        """What a timeout leads to: states, and faults on the way."""
        self.after.append((state, whose, to))
        for it in self.sets.members[to]:
            if it < 0:
                self.faulty[FAULTS[it]].add(state)

    def _fine(self, codes: Codes, judged: bool) -> Flags:
        """Which of these states are legitimate; all, where they are not judged."""
        return self.verdicts.of(codes) if judged else np.ones(len(codes), dtype=np.bool_)

    def _certain(self, ways: Ways) -> Ways:
        if not ways.leads.all():
            raise UsageError("coins fall there, and bursts are of rules without any: take --wide")
        self.transitions += len(ways.codes)
        return ways

    def _layer(self, level: Codes, right: Flags, judged: bool) -> tuple[Layer, Codes, Flags]:
        """One more message heard in these states; what that leads to, and is it legitimate?"""
        quiet = self.cells.quiet(level)
        flying, right = level[~quiet], right[~quiet]
        rows, codes = [np.zeros(0, dtype=np.int64)], [level[:0]]
        for number, chunk in enumerate(chunks(flying)):
            ways = self._certain(self.cells.hear(chunk))
            order = np.argsort(ways.rows, kind="stable")
            rows.append(ways.rows[order] + number * CHUNK)
            codes.append(ways.codes[order])
        every, row = np.concatenate(codes), np.concatenate(rows)
        following = distinct(every)
        ends, good = np.searchsorted(following, every), self._fine(following, judged)
        faults = np.full(len(flying), EMPTY)
        faults[row[right[row] & ~good[ends]]] = self.sets.of(LEFT)
        raising = np.flatnonzero(self._raising(flying))
        faults[raising] = self.sets.unions(faults[raising], self.sets.of(RAISED))
        count = np.bincount(row, minlength=len(flying))
        layer = Layer(quiet, level[quiet], faults, count, ends.astype(np.int32))
        return layer, following, good

    def _sets(self, layer: Layer, following: Numbers) -> Numbers:
        """Which states without messages, and faults, each state of a layer leads to."""
        found = np.zeros(len(layer.quiet), dtype=np.int64)
        found[layer.quiet] = [self.sets.of(it) for it in self._number(layer.codes).tolist()]
        led, first = layer.faults, np.cumsum(layer.count) - layer.count
        for place in range(int(layer.count.max(initial=0))):
            more = np.flatnonzero(layer.count > place)
            led[more] = self.sets.unions(led[more], following[layer.ends[first[more] + place]])
        found[~layer.quiet] = led
        return found

    # What it says of all

    def _judged(self) -> Judged:
        rows = [
            (state, it, whose)
            for state, whose, to in self.after
            for it in self.sets.members[to]
            if it >= 0
        ]
        table = np.array(sorted(rows), dtype=np.int32).reshape(len(rows), 3)
        count = np.bincount(table[:, 0], minlength=len(self))
        steps = Steps(count, table[:, 1].copy(), table[:, 2].astype(np.int8))
        codes = np.array(self.codes, dtype=np.uint64)
        good = self.verdicts.of(codes)
        wrong = {kind: self._marked(numbers) for kind, numbers in self.faulty.items()}
        wrong["safety"] = self._broken(codes)
        wrong["trap"] = ~steps.reaching(good)
        wrong["livelock"] |= livelocked(steps, ~good, self.cells.n)
        starts = np.array([self.numbers[it] for it in self.starts], dtype=np.int64)
        return Judged(codes, starts, good, steps, wrong)

    def _marked(self, numbers: set[int]) -> Flags:
        found = np.zeros(len(self), dtype=np.bool_)
        found[list(numbers)] = True
        return found
