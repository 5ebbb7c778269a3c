"""Traps and fair livelocks among states that are numbers, with their steps in flat arrays.

Of a scheduler that chooses and coins that fall. The greatest set from every state of which each
node's timeout can be reached again, over actions that never leave it, is empty if and only if there
is no fair end component: in a smallest part of it that no action leaves every timeout comes.

There may be some hundred million states with some billion steps. So each state's steps lie
together (on disk, if they are to), and sets grow or shrink in sweeps from the last state to the
first, until none changes them: states are numbered about as they are found, and a step mostly leads
further.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

BATCH = 1 << 15  # states whose steps are looked at at once
HEARD, FURTHER = -1, -2  # in `Steps.whose`


class Part(Struct):
    """The steps of a few states: these states, how many each has, where they lead, and whose."""

    rows: Places
    count: Places
    ends: Numbers
    whose: NDArray[np.int8]

    def staying(self, states: Flags) -> Flags:
        """The steps of actions whose outcomes are all among these states."""
        inside = states[self.ends]
        further = np.flatnonzero(self.whose == FURTHER)
        if len(further) and not inside.all():
            action = np.cumsum(self.whose != FURTHER) - 1
            left = np.zeros(int(action[-1]) + 1, dtype=np.bool_)
            left[action[~inside]] = True
            inside = ~left[action]
        return inside

    def each(self, steps: NDArray[T]) -> NDArray[T]:
        """What is said of the steps, joined for each state: flags, or bits."""
        found = np.zeros(len(self.rows), dtype=steps.dtype)
        some = self.count > 0
        if len(steps):
            first = (np.cumsum(self.count) - self.count)[some]
            found[some] = np.bitwise_or.reduceat(steps, first)
        return found


class Steps:
    """Steps between states: how many each state has, and of all, one state's after the other's,
    where they lead, and whose they are: a node's, for its timeout, HEARD, or FURTHER, for another
    outcome of the action before it."""

    def __init__(
        self, count: NDArray[np.integer[Any]], ends: Numbers, whose: NDArray[np.int8]
    ) -> None:
        self.size, self.count, self.ends, self.whose = len(count), count, ends, whose
        sums = [0, *(int(count[at : at + BATCH].sum()) for at in range(0, len(count), BATCH))]
        self._first = np.cumsum(sums)  # step of each batch
        assert self._first[-1] == len(ends)

    def parts(self, states: Flags) -> Iterator[Part]:
        """The steps of those of these states that are still flagged when their turn comes."""
        for batch in reversed(range(len(self._first) - 1)):
            flags = states[batch * BATCH : (batch + 1) * BATCH]
            places = np.flatnonzero(flags)
            if len(places):
                yield self._part(batch, places, len(flags))

    def _part(self, batch: int, places: Places, size: int) -> Part:
        start, steps = batch * BATCH, slice(self._first[batch], self._first[batch + 1])
        counts = self.count[start : start + size].astype(np.int64)
        ends, whose = self.ends[steps], self.whose[steps]
        if len(places) < size:
            flags = np.zeros(size, dtype=np.bool_)
            flags[places] = True
            kept = np.repeat(flags, counts)
            counts, ends, whose = counts[places], ends[kept], whose[kept]
        return Part(places + start, counts, ends, whose)

    def into(self, goal: Flags) -> Flags:
        """From where one step leads into the goal."""
        found = np.zeros(len(goal), dtype=np.bool_)
        for part in self.parts(~found):
            found[part.rows] = part.each(goal[part.ends])
        return found

    def reaching(self, goal: Flags) -> Flags:
        """From where some order of steps leads into the goal, the goal included."""
        missing, before = ~goal, -1
        while before != (before := int(missing.sum())) and before < len(missing):
            for part in self.parts(missing):
                missing[part.rows] = ~part.each(~missing[part.ends])
        return ~missing

    def reached(self, start: Flags) -> Flags:
        """What some order of steps leads to from a start, the start included."""
        found, fresh = start.copy(), start.copy()
        while fresh.any():
            for part in self.parts(fresh):
                fresh[part.rows] = False
                ends = part.ends[~found[part.ends]]
                found[ends] = fresh[ends] = True
        return found


def distinct(numbers: NDArray[T]) -> NDArray[T]:
    """These numbers, sorted, each once; `np.unique` hashes them, and takes three times as long."""
    ordered = np.sort(numbers)
    if not len(ordered):
        return ordered
    found: NDArray[T] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return found


def livelocked(steps: Steps, bad: Flags, nodes: int) -> Flags:
    """From where a fair scheduler can stay among the bad states for ever, by timeouts of all."""
    left, before = endless(steps, bad), -1
    while before != (before := int(left.sum())) and before:
        left = endless(steps, left & (_timeouts(steps, left, nodes) == (1 << nodes) - 1))
    return left


def _timeouts(steps: Steps, left: Flags, nodes: int) -> NDArray[np.uint8]:
    """Whose timeouts, a bit each, each of these states can come to without ever leaving them."""
    every = (1 << nodes) - 1
    found, waiting, before = np.zeros(len(left), dtype=np.uint8), left.copy(), -1
    bits = np.array([*(1 << it for it in range(nodes)), 0, 0], dtype=np.uint8)
    while before != (before := int(found.sum())):
        for part in steps.parts(waiting):
            more = (found[part.ends] | bits[part.whose]) * part.staying(left)
            found[part.rows] = part.each(more)
            waiting[part.rows] = found[part.rows] != every
    return found


def endless(steps: Steps, states: Flags) -> Flags:
    """The states among which a scheduler can stay for ever, whatever the coins say."""
    left, before = states.copy(), -1
    while before != (before := int(left.sum())) and before:
        for part in steps.parts(left):
            left[part.rows] = part.each(part.staying(left))
    return left
