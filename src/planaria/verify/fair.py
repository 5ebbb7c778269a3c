"""Traps and fair livelocks among states that are numbers, with their steps in flat arrays.

Of a scheduler that chooses and coins that fall: `Steps.able` says from where it can reach a set for
sure to stay inside another. The greatest set from every state of which each node's timeout can be
reached again, over actions that never leave it, is empty if and only if there is no fair end
component: in a smallest part of it that no action leaves every timeout comes.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Flags = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


class Steps:
    """Steps between states 0 to size - 1: sources, ends, where the outcomes of each action begin,
    and whose timeout it is, if any."""

    def __init__(
        self, size: int, sources: Numbers, ends: Numbers, leads: Flags, whose: NDArray[np.int8]
    ) -> None:
        self.size, self.sources, self.ends, self.whose = size, sources, ends, whose
        self.action = None if leads.all() else (np.cumsum(leads) - 1).astype(np.int32)
        self._order = np.argsort(ends).astype(np.int32)
        self._first = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(ends, minlength=size), out=self._first[1:])

    def __len__(self) -> int:
        return len(self.sources)

    def into(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """The steps that end in one of these states."""
        first, count = self._first[states], self._first[states + 1] - self._first[states]
        ends = np.cumsum(count)
        place = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
            first - ends + count, count
        )
        return np.asarray(self._order[place], dtype=np.int64)

    def reaching(self, goal: Flags, usable: Flags | None = None) -> Flags:
        """From where some order of (usable) steps leads into the goal, the goal included."""
        found = goal.copy()
        fresh = np.flatnonzero(goal)
        while len(fresh):
            steps = self.into(fresh)
            if usable is not None:
                steps = steps[usable[steps]]
            before = self.sources[steps]
            fresh = distinct(before[~found[before]]).astype(np.int64)
            found[fresh] = True
        return found

    def reached(self, start: Flags) -> Flags:
        """What some order of steps leads to from a start, the start included."""
        found, fresh = start.copy(), start
        while fresh.any():
            ends = self.ends[fresh[self.sources]]
            fresh = np.zeros(self.size, dtype=np.bool_)
            fresh[ends[~found[ends]]] = True
            found |= fresh
        return found

    def inside(self, states: Flags) -> Flags:
        """The steps of actions whose outcomes all stay among these states."""
        within = states[self.sources] & states[self.ends]
        if self.action is None:
            return within
        out = np.bincount(self.action[~within], minlength=int(self.action[-1]) + 1)
        return np.asarray(out[self.action] == 0)

    def only(self, usable: Flags) -> "Steps":
        """These steps alone; of each action all of them, or none."""
        if self.action is None:
            leads = np.ones(int(usable.sum()), dtype=np.bool_)
        else:
            leads = np.diff(self.action[usable], prepend=-1) != 0
        sources, ends = self.sources[usable], self.ends[usable]
        return Steps(self.size, sources, ends, leads, self.whose[usable])


def distinct(numbers: NDArray[T]) -> NDArray[T]:
    """These numbers, sorted, each once; `np.unique` hashes them, and takes three times as long."""
    ordered = np.sort(numbers)
    if not len(ordered):
        return ordered
    found: NDArray[T] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return found


def livelocked(steps: Steps, bad: Flags, nodes: int) -> Flags:
    """From where a fair scheduler can stay among the bad states for ever, by timeouts of all."""
    left, before = bad.copy(), -1
    steps = steps.only(steps.inside(left))
    while before != (before := int(left.sum())) and before:
        for node in range(nodes):
            usable = steps.inside(left)
            if 4 * usable.sum() < 3 * len(steps):
                steps = steps.only(usable)
                usable = np.ones(len(steps), dtype=np.bool_)
            goal = np.zeros(steps.size, dtype=np.bool_)
            goal[steps.sources[usable & (steps.whose == node)]] = True
            left &= steps.reaching(goal, usable)
    return left


def endless(steps: Steps, states: Flags) -> Flags:
    """The states among which a scheduler can stay for ever, whatever the coins say."""
    left, before = states.copy(), -1
    steps = steps.only(steps.inside(left))
    while before != (before := int(left.sum())) and before:
        usable = steps.inside(left)
        left = np.zeros(steps.size, dtype=np.bool_)
        left[steps.sources[usable]] = True
    return left
