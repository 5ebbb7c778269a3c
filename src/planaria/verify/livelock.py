"""Can a fair run avoid the legitimate states for ever? Fair end components; and traps.

The scheduler is the adversary, coins are not: a set of states is an end component if the scheduler
can stay in it whatever the coins say. It is fair if in it every node's timeout comes and every
message that is ever in flight is heard.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from planaria.verify.graph import Graph
from planaria.verify.space import AGES

Actions = dict[int, list[tuple[int, Sequence[int]]]]


class Component(Struct, frozen=True):
    """A fair end component: a livelock, unless one of its states is legitimate."""

    states: list[int]
    timeouts: bool  # False: messages alone keep it going, and no timeout is ever due


def livelocks(graph: Graph, bad: bytearray) -> list[Component]:
    """Every maximal fair end component of expanded states that are all bad."""
    found: list[Component] = []
    waiting = [[s for s in range(graph.expanded) if bad[s]]]
    while waiting:
        inside, actions = _closed(graph, waiting.pop())
        if not inside:
            continue
        for part in _strong(inside, actions):
            if len(part) < len(inside):
                waiting.append(part)
                continue
            unheard = _unheard(graph, part, actions)
            if unheard is None:
                found.append(Component(part, timeouts=_timeouts(graph, part, actions)))
            elif unheard:
                rest = [s for s in part if not unheard & _flying(graph, s)]
                waiting.append(rest)
    return found


def _closed(graph: Graph, states: Iterable[int]) -> tuple[list[int], Actions]:
    """The largest subset in which every state has an action that stays in it, and those actions."""
    inside = dict.fromkeys(states, True)
    actions: Actions = {}
    back: dict[int, list[int]] = {}
    for s in inside:
        kept = [it for it in graph.actions(s) if all(t in inside for t in it[1])]
        actions[s] = kept
        for _, targets in kept:
            for t in targets:
                if t != s:
                    back.setdefault(t, []).append(s)
    dead = [s for s in inside if not actions[s]]
    gone = set(dead)
    while dead:
        lost = dead.pop()
        for s in back.get(lost, ()):
            if s in gone:
                continue
            actions[s] = [it for it in actions[s] if lost not in it[1]]
            if not actions[s]:
                gone.add(s)
                dead.append(s)
    left = [s for s in inside if s not in gone]
    return left, {s: actions[s] for s in left}


def _strong(states: Sequence[int], actions: Actions) -> list[list[int]]:
    """Strongly connected components with a step inside (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found = []
    for root in states:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on.add(root)
        work = [(root, iter(_targets(actions[root])))]
        while work:
            s, targets = work[-1]
            for t in targets:
                if t not in order:
                    order[t] = low[t] = len(order)
                    stack.append(t)
                    on.add(t)
                    work.append((t, iter(_targets(actions[t]))))
                    break
                if t in on and order[t] < low[s]:
                    low[s] = order[t]
            else:
                work.pop()
                if work and low[s] < low[work[-1][0]]:
                    low[work[-1][0]] = low[s]
                if low[s] == order[s]:
                    part = _popped(stack, on, s)
                    if len(part) > 1 or s in _targets(actions[s]):
                        found.append(part)
    return found


def _popped(stack: list[int], on: set[int], root: int) -> list[int]:
    part = []
    while True:
        s = stack.pop()
        on.discard(s)
        part.append(s)
        if s == root:
            return part


def _targets(actions: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    return [t for _, targets in actions for t in targets]


def _flying(graph: Graph, state: int) -> set[int]:
    return {it // AGES for it in graph.states[state][graph.space.head :]}


def _timeouts(graph: Graph, part: Sequence[int], actions: Actions) -> bool:
    taken = {action for s in part for action, _ in actions[s]}
    return all(at in taken for at in range(graph.space.n))


def _unheard(graph: Graph, part: Sequence[int], actions: Actions) -> set[int] | None:
    """Messages in flight that are not heard inside; None: it is fair; empty: it never can be.

    Where messages are heard before timeouts, those that never end let no timeout come.
    """
    n, head = graph.space.n, graph.space.head
    taken = {action for s in part for action, _ in actions[s]}
    chatter = not graph.space.schedule.channel and all(len(graph.states[s]) > head for s in part)
    if not chatter and not all(at in taken for at in range(n)):
        return set()
    flying: set[int] = set()
    for s in part:
        flying |= _flying(graph, s)
    return {it for it in flying if n + it not in taken} or None


def traps(graph: Graph, good: bytearray) -> list[int]:
    """Expanded states from which no step leads on to a legitimate state, or to the unknown."""
    size = len(graph)
    sources: list[int] = []
    ends: list[int] = []
    for s in range(graph.expanded):
        for _, targets in graph.actions(s):
            sources += [s] * len(targets)
            ends += targets
    order = np.argsort(np.asarray(ends, dtype=np.int64), kind="stable")
    by_end = np.asarray(sources, dtype=np.int64)[order]
    first = np.searchsorted(np.asarray(ends, dtype=np.int64)[order], np.arange(size + 1))
    reaches = bytearray(size)
    waiting = [s for s in range(size) if s >= graph.expanded or good[s] or graph.cuts[s]]
    for s in waiting:
        reaches[s] = 1
    while waiting:
        t = waiting.pop()
        for s in by_end[first[t] : first[t + 1]].tolist():
            if not reaches[s]:
                reaches[s] = 1
                waiting.append(s)
    return [s for s in range(graph.expanded) if not reaches[s]]
