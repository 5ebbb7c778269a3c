"""States as single numbers, and the steps of very many of them at once.

While messages are heard before the next timeout, what a node does next depends on its own variables
and on what is on its way to it: its *cell*. There are few cells, however many states there are. A
state of the whole is a cell for each node, and (with rounds) who has had its timeout: 64 bits.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from planaria.core.errors import UsageError
from planaria.verify.fair import HEARD
from planaria.verify.fields import BITS, Fields, Full
from planaria.verify.known import Codes
from planaria.verify.model import Flying
from planaria.verify.passing import Passing
from planaria.verify.space import AGES, TIMEOUT, Raised, Space, State

Numbers = NDArray[np.int64]
Cell = tuple[int, tuple[int, ...]]  # a node's state, and what is on its way to it
UNKNOWN = -1
NOBODY = -1
TABLE_MAX = 1 << 28  # entries of one table, of cells by what may come to them


class Ways(Struct):
    """Steps out of many states: out of which, where to, and where the outcomes of each begin."""

    rows: Numbers
    codes: Codes
    leads: NDArray[np.bool_]  # the first outcome of an action; those after it are of the same
    whose: NDArray[np.int8]  # the node whose timeout it is; HEARD: a message is heard


class Trouble(Struct, frozen=True):
    """A step that raised, or did what no step may do, of a node in one of its cells."""

    at: int
    cell: int
    detail: str


class Column:
    """Numbers that only grow in number, as an array."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._array = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    def append(self, number: int) -> None:
        """One more."""
        self._numbers.append(number)

    def array(self) -> Numbers:
        """All of them, made anew when something came to it."""
        if len(self._array) < len(self._numbers):
            self._array = np.array(self._numbers, dtype=np.int64)
        return self._array


class Options:
    """What may be next in each cell of one node: outcomes of actions, one after the other."""

    def __init__(self) -> None:
        self.first: list[int] = []  # of each cell; UNKNOWN: not asked yet
        self.count: list[int] = []
        self.cell: list[int] = []
        self.mail: list[int] = []
        self.lead: list[bool] = []
        self.urgent: list[bool] = []  # of each cell: is what passes heard before all else?
        self.changed = True
        self._arrays: tuple[Numbers, ...] = ()

    def arrays(self) -> tuple[Numbers, ...]:
        """All of it, made anew when something came to it."""
        if self.changed:
            every = (self.first, self.count, self.cell, self.mail, self.lead, self.urgent)
            self._arrays = tuple(np.array(it, dtype=np.int64) for it in every)
            self.changed = False
        return self._arrays


class Cells:
    """The cells of every node of a space, with tables of what each may do and may be sent.

    With `passing` a message that changes nothing where it is heard is heard before all others.
    """

    def __init__(self, space: Space, passing: Passing | None = None) -> None:
        if space.schedule.channel or space.shifts:
            raise UsageError(
                "states are packed only where messages are heard before the next timeout, "
                "and nothing is counted from elsewhere"
            )
        self.space, self.n, self.passing = space, space.n, passing
        self.rounds = bool(space.schedule.delay)
        self.fields = Fields.equal(space.n, rounds=self.rounds)
        self.cells: list[list[Cell]] = [[] for _ in range(self.n)]
        self.number_of: list[dict[Cell, int]] = [{} for _ in range(self.n)]
        self.node_of = [Column() for _ in range(self.n)]  # of each cell: its node's state
        self.own_of = [Column() for _ in range(self.n)]  # the same, in numbers without gaps
        self.empty = [Column() for _ in range(self.n)]  # and is nothing in flight to it?
        self._owns: list[dict[int, int]] = [{} for _ in range(self.n)]
        self.hears = [Options() for _ in range(self.n)]
        self.wakes = [Options() for _ in range(self.n)]
        self.mails: dict[tuple[int, ...], int] = {}
        self.parts: list[dict[tuple[int, ...], int]] = [{(): 0} for _ in range(self.n)]
        self.part_of: list[list[int]] = [[] for _ in range(self.n)]  # of a mail: this node's part
        self._adds = [np.full((64, 64), UNKNOWN, dtype=np.int64) for _ in range(self.n)]
        self.troubles: list[Trouble] = []
        self._mail(())

    # Numbers for values

    def _cell(self, at: int, own: int, inbox: tuple[int, ...]) -> int:
        """The number of a cell of a node. Raises Full if there is no number left."""
        found = self.number_of[at].get((own, inbox))
        if found is None:
            found = len(self.cells[at])
            if found == self.fields.sizes[at]:
                raise Full(f"more than {found:,} cells of one node: no room in {BITS} bits")
            self.number_of[at][own, inbox] = found
            self.cells[at].append((own, inbox))
            self.node_of[at].append(own)
            self.own_of[at].append(self._owns[at].setdefault(own, len(self._owns[at])))
            self.empty[at].append(not inbox)
            for options in (self.hears[at], self.wakes[at]):
                options.first.append(UNKNOWN)
                options.count.append(0)
                options.urgent.append(False)
                options.changed = True
        return found

    def widen(self) -> Callable[[Codes], Codes]:
        """Make room for more cells; how numbers of states are to be changed.

        Raises UsageError if there is none.
        """
        before, counts = self.fields, [len(it) + 1 for it in self.cells]
        self.fields = before.wider(counts, rounds=self.rounds)
        return partial(before.moved, fields=self.fields)

    def put_back(self, cells: list[list[Cell]], sizes: list[int]) -> None:
        """Number these cells of each node as they were numbered when they were saved."""
        self.fields = Fields(sizes)
        for at, mine in enumerate(cells):
            for own, inbox in mine:
                self._cell(at, own, inbox)

    def _mail(self, sends: tuple[int, ...]) -> int:
        """The number of what one step sends, with the part that each node gets of it."""
        found = self.mails.get(sends)
        if found is None:
            found = self.mails[sends] = len(self.mails)
            for at in range(self.n):
                part = tuple(it for it in sends if self.space.targets[it] == at)
                self.part_of[at].append(self.parts[at].setdefault(part, len(self.parts[at])))
        return found

    def code(self, state: State) -> int:
        """The number of a state of the whole."""
        space, inboxes = self.space, self._sorted(state)
        code = state[self.n] * self.fields.top if self.rounds else 0
        for at in range(self.n):
            code += self._cell(at, state[at], inboxes[at]) * self.fields.units[at]
        assert space.head == self.n + self.rounds
        return code

    def _sorted(self, state: State) -> list[tuple[int, ...]]:
        """What is in flight, by whom it is for; of each link it stays in order."""
        inboxes: list[list[int]] = [[] for _ in range(self.n)]
        for flying in state[self.space.head :]:
            inboxes[self.space.targets[flying // AGES]].append(flying)
        return [tuple(it) for it in inboxes]

    def state(self, code: int) -> State:
        """The state of the whole that has this number."""
        cells = [mine[self.fields.place(code, at)] for at, mine in enumerate(self.cells)]
        had = [code // self.fields.top] if self.rounds else []
        flying = self.space.ordered([it for _, inbox in cells for it in inbox])
        return (*(own for own, _ in cells), *had, *flying)

    def nodes(self, codes: Codes) -> Iterator[State]:
        """Each of these without what is in flight and who has had its timeout."""
        own = [it.array()[self.of(codes, at)].tolist() for at, it in enumerate(self.node_of)]
        return zip(*own, strict=True)

    def inbox(self, code: int, at: int) -> list[Flying]:
        """What is in flight to one node in this state."""
        _, inbox = self.cells[at][self.fields.place(code, at)]
        return [self.space.messages[it // AGES] for it in inbox]

    def of(self, codes: Codes, at: int) -> Numbers:
        """The cell of one node in each of these states."""
        return self.fields.of(codes, at)

    def quiet(self, codes: Codes) -> NDArray[np.bool_]:
        """In which of these states is nothing in flight?"""
        found = np.ones(len(codes), dtype=np.bool_)
        for at in range(self.n):
            found &= self.spared(codes, at)
        return found

    def spared(self, codes: Codes, at: int) -> NDArray[np.bool_]:
        """In which of these states is nothing in flight to this node?"""
        return self.empty[at].array()[self.of(codes, at)].astype(np.bool_)

    def owns(self, codes: Codes, whole: int = NOBODY) -> Codes:
        """These states without who has had its timeout and what is in flight but to this node."""
        found = np.zeros(len(codes), dtype=np.uint64)
        for at in range(self.n):
            cells = self.of(codes, at)
            found += self.fields.put(cells if at == whole else self.own_of[at].array()[cells], at)
        return found

    # Steps

    def ways(self, codes: Codes) -> Ways:
        """Every step out of these states."""
        quiet = np.flatnonzero(self.quiet(codes))
        heard, woken = self.hear(codes), self.wake(codes[quiet])
        return joined([heard, Ways(quiet[woken.rows], woken.codes, woken.leads, woken.whose)])

    def hear(self, codes: Codes) -> Ways:
        """What comes of each message in flight; or of one alone that passes."""
        cells = [self.of(codes, at) for at in range(self.n)]
        for at, options in enumerate(self.hears):
            for cell in self._unasked(options, cells[at]):
                self._hear(at, cell)
        left, found = np.ones(len(codes), dtype=np.bool_), []
        for at, options in enumerate(self.hears):
            mine = left & options.arrays()[-1].astype(np.bool_)[cells[at]]
            found.append(self._led(codes, np.flatnonzero(mine), at, options))
            left &= ~mine
        rest = np.flatnonzero(left)
        return joined(found + [self._led(codes, rest, *it) for it in enumerate(self.hears)])

    def _hear(self, at: int, cell: int) -> None:
        """Take every message that may be next in this cell, or one alone that passes."""
        own, inbox = self.cells[at][cell]
        inputs = list(self._next(inbox))
        passes = None if self.passing is None else self.passing.pick(at, own, inputs)
        self._ask(self.hears[at], at, cell, inputs if passes is None else [passes])
        self.hears[at].urgent[cell] = passes is not None

    def _next(self, inbox: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Each message that may be heard next, and what is in flight to the node then."""
        before = None
        for place, flying in enumerate(inbox):
            number = flying // AGES
            if self.space.schedule.fifo:
                if self.space.links[number] == before:
                    continue
                before = self.space.links[number]
            yield number, inbox[:place] + inbox[place + 1 :]

    def wake(self, codes: Codes) -> Ways:
        """What comes of each timeout that is due, where nothing is in flight."""
        return joined([self._wake(codes, at) for at in range(self.n)])

    def _wake(self, codes: Codes, at: int) -> Ways:
        """What comes of one node's timeout where it is due."""
        options, rows = self.wakes[at], np.arange(len(codes))
        if self.rounds:
            had, bit, top = self.fields.had(codes), np.uint64(1 << at), np.uint64(self.fields.top)
            rows = np.flatnonzero((had & bit) == 0)
            over = (had | bit) == np.uint64((1 << self.n) - 1)  # the last: the next round begins
            codes = np.where(over, codes - had * top, codes + bit * top)
        for cell in self._unasked(options, self.of(codes[rows], at)):
            self._ask(options, at, cell, [(TIMEOUT, ())])
        found = self._led(codes, rows, at, options)
        found.whose[:] = at
        return found

    def _unasked(self, options: Options, cells: Numbers) -> list[int]:
        first = options.arrays()[0]
        return np.unique(cells[first[cells] == UNKNOWN]).tolist() if len(cells) else []

    def _ask(
        self, options: Options, at: int, cell: int, inputs: list[tuple[int, tuple[int, ...]]]
    ) -> None:
        """Take each input in this cell, by the real class, and note what comes of it."""
        own, _ = self.cells[at][cell]
        first = len(options.cell)
        for input, rest in inputs:
            try:
                outcomes = self.space.step(at, own, input)
            except Raised as raised:
                self.troubles.append(Trouble(at, cell, str(raised)))
                continue
            for place, (after, sends) in enumerate(outcomes):
                options.cell.append(self._cell(at, after, rest))
                options.mail.append(self._mail(sends))
                options.lead.append(not place)
        options.first[cell], options.count[cell] = first, len(options.cell) - first
        options.changed = True

    def _led(self, every: Codes, rows: Numbers, at: int, options: Options) -> Ways:
        """Where all options of one node lead in the states in these rows."""
        codes = every[rows]
        cells = self.of(codes, at)
        firsts, counts, afters, mails, leads, _ = options.arrays()
        count = counts[cells]
        place = np.repeat(np.arange(len(codes)), count)
        ends = np.cumsum(count)
        option = np.arange(len(place)) + np.repeat(firsts[cells] - (ends - count), count)
        mail, found = mails[option], codes[place]
        for to in range(self.n):
            parts = np.array(self.part_of[to], dtype=np.int64)[mail]
            told = np.arange(len(place)) if to == at else np.flatnonzero(parts)
            before = self.of(found[told], to)
            after = self._added(to, afters[option] if to == at else before, parts[told])
            found[told] += self.fields.put(after - before, to)
        whose = np.full(len(place), HEARD, dtype=np.int8)
        return Ways(rows[place], found, leads[option].astype(np.bool_), whose)

    def _added(self, at: int, cells: Numbers, parts: Numbers) -> Numbers:
        """The cells of a node after something more is on its way to it."""
        self._grow(at)
        found = self._adds[at][cells, parts]
        if (found == UNKNOWN).any():
            missing = found == UNKNOWN
            pairs = np.unique(np.stack([cells[missing], parts[missing]], axis=1), axis=0)
            named = list(self.parts[at])
            for cell, part in pairs.tolist():
                self._adds[at][cell, part] = self._add(at, cell, named[part])
            found[missing] = self._adds[at][cells[missing], parts[missing]]
        return found

    def _add(self, at: int, cell: int, part: tuple[int, ...]) -> int:
        own, inbox = self.cells[at][cell]
        known = set(inbox)
        fresh = [it * AGES for it in part if it * AGES not in known]
        if self.passing is not None and len(fresh) < len(part):
            self.passing.merged |= {it for it in part if it * AGES in known}
        return self._cell(at, own, tuple(self.space.ordered([*inbox, *fresh])))

    def _grow(self, at: int) -> None:
        """Room for every cell and every part that there is."""
        table, need = self._adds[at], (len(self.cells[at]), len(self.parts[at]))
        if need[0] > table.shape[0] or need[1] > table.shape[1]:
            size = [2 * it if it > has else has for it, has in zip(need, table.shape, strict=True)]
            if size[0] * size[1] > TABLE_MAX:
                raise UsageError(f"{need[0]:,} cells and {need[1]:,} kinds of mail: no such table")
            self._adds[at] = np.full(size, UNKNOWN, dtype=np.int64)
            self._adds[at][: table.shape[0], : table.shape[1]] = table


def joined(parts: list[Ways]) -> Ways:
    """All these steps."""
    return once(
        Ways(
            np.concatenate([it.rows for it in parts]),
            np.concatenate([it.codes for it in parts]),
            np.concatenate([it.leads for it in parts]),
            np.concatenate([it.whose for it in parts]),
        )
    )


def once(ways: Ways) -> Ways:
    """Outcomes of one action that lead to the same state count once."""
    if ways.leads.all():
        return ways
    action = np.cumsum(ways.leads) - 1
    several = np.flatnonzero(np.bincount(action)[action] > 1)
    order = several[np.lexsort((ways.codes[several], action[several]))]
    ways.codes[several] = ways.codes[order]
    same = np.zeros(len(action), dtype=np.bool_)
    same[several[1:]] = (ways.codes[several[1:]] == ways.codes[several[:-1]]) & (
        action[several[1:]] == action[several[:-1]]
    )
    kept, action = ~same, action[~same]
    leads = np.ones(len(action), dtype=np.bool_)
    leads[1:] = action[1:] != action[:-1]
    return Ways(ways.rows[kept], ways.codes[kept], leads, ways.whose[kept])
