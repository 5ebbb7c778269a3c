"""A search of states that are single numbers: many more of them, and without the ways to them.

Level by level, each as one array; then all steps once more, between places in the array of all
states. What it finds it knows by the first states that lead there: from one of those the plain
search (`planaria.verify.check`) finds it again, with a counterexample.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from tempfile import TemporaryFile

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from planaria.core.errors import UsageError
from planaria.verify.cells import Cells
from planaria.verify.check import Finding, Result
from planaria.verify.fair import FURTHER, Flags, Steps, T, distinct, endless, livelocked
from planaria.verify.fields import Full
from planaria.verify.known import Codes, Known
from planaria.verify.model import First, Model, constants
from planaria.verify.saved import SavedWide
from planaria.verify.space import Schedule, Space
from planaria.verify.verdicts import Verdicts

CHUNK = 1 << 18  # states whose steps are taken at once
Tick = Callable[["Wide"], None]


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
        self.verdicts = Verdicts(self.cells)
        self.phase = ""  # of what follows when every state was visited
        self.tick: Tick = lambda _: None

    def _cells(self, space: Space) -> Cells:
        return Cells(space)

    def __len__(self) -> int:
        return len(self.known)

    def run(self, firsts: Iterable[First], most: int, tick: Tick = lambda _: None) -> Judged:
        """Search all that these first states reach. Raises UsageError if it is more than `most`."""
        self.tick = tick
        with constants(self.model.constants):
            self._explore(firsts, most)
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

    def _explore(self, firsts: Iterable[First], most: int) -> None:
        level = None if self.saved is None else self.saved.resume(self)
        if level is None:
            level = self._begun(firsts)
        while len(level):
            over = len(self) + len(level) > most
            self._keep(level, at_once=over)
            if over:
                raise UsageError(f"more than --states {most:,}: nothing is judged before the end")
            self.known.add(level)
            level = self._next(level)
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

    def _next(self, level: Codes) -> Codes:
        """What the states of a level lead to that was not known."""
        before = self.expanded, self.transitions
        while True:
            try:
                return self._expand(level)
            except Full:
                level = self._widen()(level)
                self.expanded, self.transitions = before

    def _expand(self, level: Codes) -> Codes:
        found = [np.zeros(0, dtype=np.uint64)]
        for chunk in chunks(level):
            ways = self.cells.ways(chunk)
            self.expanded += len(chunk)
            self.transitions += len(ways.codes)
            found.append(self.known.fresh(distinct(ways.codes)))
            self.tick(self)
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
        good = self._of_each(codes, self.verdicts.of)
        wrong = {"exception": self._of_each(codes, self._raising), "safety": self._broken(codes)}
        bad, busy = ~good, ~good & ~self._of_each(codes, self.cells.quiet)
        steps = self._steps(codes)
        self._enter("looking for traps")
        wrong["closure"] = steps.into(bad) & good
        wrong["trap"] = ~steps.reaching(good)
        self._enter("looking for livelocks")
        wrong["livelock"] = livelocked(steps, bad, self.cells.n) | endless(steps, busy)
        return Judged(codes, starts, good, steps, wrong)

    def _enter(self, phase: str) -> None:
        """Say what is done now."""
        self.phase = phase
        self.tick(self)

    def _of_each(self, codes: Codes, said: Callable[[Codes], Flags]) -> Flags:
        """What is said of each of these states, a chunk at a time."""
        found = np.zeros(len(codes), dtype=np.bool_)
        for number, chunk in enumerate(chunks(codes)):
            self._enter(f"judging, {number * CHUNK:,} of {len(codes):,} states")
            found[number * CHUNK :][: len(chunk)] = said(chunk)
        return found

    def _steps(self, codes: Codes) -> Steps:
        """All steps, between places of states in `codes`."""
        counts, total = np.zeros(len(codes), dtype=np.uint16), self.transitions
        ends, whose = self._room(total, np.int32), self._room(total, np.int8)
        at = 0
        for number, chunk in enumerate(chunks(codes)):
            ways = self.cells.ways(chunk)
            order = np.argsort(ways.rows, kind="stable")
            counts[number * CHUNK :][: len(chunk)] = np.bincount(ways.rows, minlength=len(chunk))
            end = at + len(order)
            ends[at:end] = places(codes, ways.codes[order])
            whose[at:end] = np.where(ways.leads, ways.whose, FURTHER)[order]
            at = end
            self._enter(f"taking again {at:,} of {total:,} steps")
        assert at == total
        return Steps(counts, ends, whose)

    def _room(self, count: int, kind: type[T]) -> NDArray[T]:
        """Room for so many numbers: in memory, or on disk beside what is saved."""
        if self.saved is None or not count:
            return np.zeros(count, dtype=kind)
        size, directory = count * np.dtype(kind).itemsize, self.saved.directory
        with TemporaryFile(dir=directory) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)  # or a full disk would kill it later
            except OSError as error:
                what = f"no {size:,} bytes for the steps of {len(self):,} states"
                raise UsageError(f"{directory}: {what}: {error.strerror}") from error
            return np.memmap(file, dtype=kind, mode="r+", shape=(count,))

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


def places(codes: Codes, wanted: Codes) -> NDArray[np.int64]:
    """Where these are among sorted ones; looked up in order, which takes a fifth of the time."""
    order, found = np.argsort(wanted), np.zeros(len(wanted), dtype=np.int64)
    found[order] = np.searchsorted(codes, wanted[order])
    return found
