"""A search of states that are single numbers: many more of them, and without the ways to them.

Level by level, each as one array; then all steps once more, between places in the array of all
states. What it finds it knows by the first states that lead there: from one of those the plain
search (`planaria.verify.check`) finds it again, with a counterexample.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from planaria.core.errors import UsageError
from planaria.verify.cells import Cells, Codes, Ways
from planaria.verify.check import Finding, Result
from planaria.verify.fair import Flags, Steps, distinct, endless, livelocked
from planaria.verify.fields import Full
from planaria.verify.model import First, Model, constants
from planaria.verify.saved import SavedWide
from planaria.verify.space import Schedule, Space

CHUNK = 1 << 18  # states whose steps are taken at once
NOWHERE = -1
VERDICTS_MAX = 1 << 20  # remembered for the next batch of states; 200 bytes each


class Known:
    """A set of numbers as sorted arrays, each at most half as long as the one before it."""

    def __init__(self) -> None:
        self.runs: list[Codes] = []

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def fresh(self, codes: Codes) -> Codes:
        """Those of these (sorted) that are not in it."""
        for run in self.runs:
            place = np.searchsorted(run, codes)
            place[place == len(run)] = 0
            codes = codes[run[place] != codes]
        return codes

    def add(self, codes: Codes) -> None:
        """Put in sorted numbers that are not in it."""
        if len(codes):
            self.runs.append(codes)
        while len(self.runs) > 1 and 2 * len(self.runs[-1]) > len(self.runs[-2]):
            last = self.runs.pop()
            self.runs[-1] = np.concatenate([self.runs[-1], last])
            self.runs[-1].sort(kind="stable")

    def all(self) -> Codes:
        """Every number, sorted."""
        found = np.concatenate([np.zeros(0, dtype=np.uint64), *self.runs])
        found.sort(kind="stable")
        return found


class Judged(Struct):
    """What is true of each state of a search that was run to its end."""

    codes: Codes
    starts: NDArray[np.int64]  # the place of each first state
    good: Flags
    steps: Steps
    wrong: dict[str, Flags]  # of each kind of finding: the states that show it


class Wide:
    """A model under a schedule in which messages are heard before the next timeout."""

    def __init__(self, model: Model, schedule: Schedule, saved: SavedWide | None = None) -> None:
        self.model, self.saved = model, saved
        self.cells = self._cells(Space(model, schedule))
        self.known = Known()
        self.starts: list[int] = []
        self.expanded = self.transitions = 0
        self.between = 0  # states that were visited and forgotten
        self._right: dict[tuple[int, int, int], bool] = {}  # of nodes and a cell of one

    def _cells(self, space: Space) -> Cells:
        return Cells(space)

    def __len__(self) -> int:
        return len(self.known)

    def run(
        self, firsts: Iterable[First], most: int, tick: Callable[["Wide"], None] = lambda _: None
    ) -> Judged:
        """Search all that these first states reach. Raises UsageError if it is more than `most`."""
        with constants(self.model.constants):
            self._explore(firsts, most, tick)
            return self._judged()

    def result(self, judged: Judged, numbers: Sequence[int]) -> Result:
        """What was covered and found, of first states with these numbers."""
        model, space = self.model, self.cells.space
        return Result(
            model.name,
            model.n,
            model.covered,
            str(space.schedule),
            dict(model.constants),
            len(self.starts),
            len(self),
            self.expanded,
            self.transitions,
            len(space.steps),
            int(judged.good.sum()),
            space.cut,
            space.coins.thinned,
            list(_findings(judged, numbers)),
            self.between,
        )

    def _explore(self, firsts: Iterable[First], most: int, tick: Callable[["Wide"], None]) -> None:
        level = None if self.saved is None else self.saved.resume(self)
        if level is None:
            level = self._begun(firsts)
        while len(level):
            over = len(self) + len(level) > most
            self._keep(level, at_once=over)
            if over:
                raise UsageError(f"more than --states {most:,}: nothing is judged before the end")
            self.known.add(level)
            level = self._next(level, tick)
        self._keep(level, at_once=True)

    def _begun(self, firsts: Iterable[First]) -> Codes:
        """Number the first states."""
        for first in firsts:
            state = self.cells.space.first(first)
            try:
                code = self.cells.code(state)
            except Full:
                self._widen()
                code = self.cells.code(state)
            self.starts.append(code)
        return distinct(np.array(self.starts, dtype=np.uint64))

    def _next(self, level: Codes, tick: Callable[["Wide"], None]) -> Codes:
        """What the states of a level lead to that was not known."""
        before = self.expanded, self.transitions
        while True:
            try:
                return self._expand(level, tick)
            except Full:
                level = self._widen()(level)
                self.expanded, self.transitions = before

    def _expand(self, level: Codes, tick: Callable[["Wide"], None]) -> Codes:
        found = [np.zeros(0, dtype=np.uint64)]
        for chunk in chunks(level):
            ways = self.cells.ways(chunk)
            self.expanded += len(chunk)
            self.transitions += len(ways.codes)
            found.append(self.known.fresh(distinct(ways.codes)))
            tick(self)
        return distinct(np.concatenate(found))

    def _widen(self) -> Callable[[Codes], Codes]:
        """Give states new numbers, in the order of the old; how to change those of others."""
        moved = self.cells.widen()
        self.starts = moved(np.array(self.starts, dtype=np.uint64)).tolist()
        self.known.runs = [moved(it) for it in self.known.runs]
        return moved

    def _keep(self, level: Codes, *, at_once: bool) -> None:
        """Save what was found before this level, if it is to be saved, and it is time."""
        if self.saved is not None:
            self.saved.keep(self, level, at_once=at_once)

    def _judged(self) -> Judged:
        """Judge every state, and look for what must not be."""
        codes = self.known.all()
        starts = np.searchsorted(codes, np.array(self.starts, dtype=np.uint64))
        good = self._good(codes)
        steps = self._steps(codes)
        bad = ~good
        wrong = {"exception": self._raising(codes), "safety": self._broken(codes)}
        out = good[steps.sources] & bad[steps.ends]
        wrong["closure"] = _marked(len(codes), steps.sources[out])
        wrong["trap"] = ~steps.reaching(good)
        busy = bad & ~self.cells.quiet(codes)
        wrong["livelock"] = livelocked(steps, bad, self.cells.n) | endless(steps, busy)
        return Judged(codes, starts, good, steps, wrong)

    def _steps(self, codes: Codes) -> Steps:
        """All steps, between places of states in `codes`."""
        count = self.transitions
        sources, ends = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)
        leads, whose = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.int8)
        at = 0
        for number, chunk in enumerate(chunks(codes)):
            ways: Ways = self.cells.ways(chunk)
            end = at + len(ways.codes)
            sources[at:end] = ways.rows + number * CHUNK
            ends[at:end] = np.searchsorted(codes, ways.codes)
            leads[at:end], whose[at:end] = ways.leads, ways.whose
            at = end
        assert at == count
        return Steps(len(codes), sources, ends, leads, whose)

    def _good(self, codes: Codes) -> Flags:
        """Which states are legitimate: nodes without what is in flight, then with that to each."""
        owns = self.cells.owns(codes)
        good = self._judge(owns, codes, owns, NOWHERE)
        for at in range(self.cells.n):
            places = np.flatnonzero(good)
            _, kinds = np.unique(owns[places], return_inverse=True)
            pairs = kinds * len(self.cells.cells[at]) + self.cells.of(codes[places], at)
            good[places] = self._judge(pairs, codes[places], owns[places], at)
        return good

    def _judge(self, kinds: NDArray[Any], codes: Codes, owns: Codes, at: int) -> Flags:
        """Which are legitimate with what is in flight to one node; one of each kind is judged."""
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        right = np.zeros(len(first), dtype=np.bool_)
        for place in range(0, len(first), CHUNK):
            part = first[place : place + CHUNK]
            right[place : place + CHUNK] = [*self._verdicts(codes[part], owns[part], at)]
        return right[kind_of]

    def _verdicts(self, codes: Codes, owns: Codes, at: int) -> Iterator[bool]:
        """Whether each of these is legitimate; what was judged a while ago may be judged again."""
        cells = np.zeros(len(codes)) if at == NOWHERE else self.cells.of(codes, at)
        for own, cell, code in zip(owns.tolist(), cells.tolist(), codes.tolist(), strict=True):
            known = self._right.get((own, at, cell))
            if known is None:
                heard = () if at == NOWHERE else self.cells.inbox(code, at)
                known = not self._violations(code, heard)
                if len(self._right) < VERDICTS_MAX:
                    self._right[own, at, cell] = known
            yield known

    def _violations(self, code: int, channel: Any) -> list[Any]:
        return self.model.violations(self.cells.space.states(self.cells.state(code)), channel)

    def _raising(self, codes: Codes) -> Flags:
        """States in which a step raises or does what no step may."""
        found = np.zeros(len(codes), dtype=np.bool_)
        for it in self.cells.troubles:
            found |= self.cells.of(codes, it.at) == it.cell
        return found

    def _broken(self, codes: Codes) -> Flags:
        """States that are never so."""
        found = np.zeros(len(codes), dtype=np.bool_)
        if type(self.model).broken is not Model.broken:
            space = self.cells.space
            for place, code in enumerate(codes.tolist()):
                found[place] = bool(self.model.broken(space.states(self.cells.state(code))))
        return found


def _findings(judged: Judged, numbers: Sequence[int]) -> Iterator[Finding]:
    """Of each kind how many starts lead to one, and the first of them."""
    for kind, wrong in judged.wrong.items():
        leads = judged.steps.reaching(wrong)[judged.starts]
        if leads.any():
            number = numbers[int(leads.argmax())]
            yield Finding(kind, int(leads.sum()), f"--part {number}:{number + 1}", [])


def chunks(codes: Codes) -> Iterator[Codes]:
    """So many of them as are taken at once."""
    for at in range(0, len(codes), CHUNK):
        yield codes[at : at + CHUNK]


def _marked(size: int, places: NDArray[np.int32]) -> Flags:
    found = np.zeros(size, dtype=np.bool_)
    found[places] = True
    return found
