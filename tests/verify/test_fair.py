"""Livelocks, and what leads where, against their definitions."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.verify import fair
from planaria.verify.fair import FURTHER, Steps, endless, livelocked

Action = tuple[int, int, tuple[int, ...]]  # from where, whose timeout (-1: none), its outcomes


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, list[Action]]:
    size = draw(st.integers(1, 5))
    states = st.integers(0, size - 1)
    outcomes = st.lists(states, min_size=1, max_size=2, unique=True).map(tuple)
    return size, draw(st.lists(st.tuples(states, st.integers(-1, 1), outcomes), max_size=9))


def steps_of(size: int, actions: Sequence[Action]) -> Steps:
    rows = [
        (s, t, FURTHER if at else who)
        for s, who, ends in sorted(actions)
        for at, t in enumerate(ends)
    ]
    table = np.array(rows, dtype=np.int32).reshape(len(rows), 3)
    count = np.bincount(table[:, 0], minlength=size)
    return Steps(count, table[:, 1].copy(), table[:, 2].astype(np.int8))


def components(size: int, actions: Sequence[Action], needed: set[int]) -> Iterator[set[int]]:
    """Every set of states that are connected by actions which stay in it, the needed among them."""
    for inside in (set(it) for n in range(1, size + 1) for it in combinations(range(size), n)):
        kept = [it for it in actions if it[0] in inside and inside.issuperset(it[2])]
        if needed <= {who for _, who, _ in kept} and all(
            inside <= _reach(one, kept) for one in inside
        ):
            yield inside


def _reach(one: int, actions: Sequence[Action]) -> set[int]:
    found: set[int] = set()
    fresh = {one}
    while fresh:
        fresh = {t for s, _, ends in actions if s in fresh for t in ends} - found
        found |= fresh
    return found


BATCHES = st.sampled_from([1, 2, 3, 1 << 15])


@given(networks(), st.sets(st.integers(0, 4)), BATCHES)
def test_a_livelock_is_found_if_and_only_if_there_is_a_fair_end_component(
    network: tuple[int, list[Action]], chosen: set[int], batch: int
) -> None:
    size, actions = network
    bad = np.array([it in chosen for it in range(size)])
    inside = [(s, who, t) for s, who, t in actions if {s, *t} <= chosen]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fair, "BATCH", batch)
        steps = steps_of(size, actions)
        results = ({0, 1}, livelocked(steps, bad, 2)), (set[int](), endless(steps, bad))
    for needed, found in results:
        parts = list(components(size, inside, needed))
        assert found.any() == bool(parts)
        assert all(found[list(it)].all() for it in parts)


@given(networks(), st.sets(st.integers(0, 4)), BATCHES)
def test_what_leads_where_is_what_following_every_step_shows(
    network: tuple[int, list[Action]], chosen: set[int], batch: int
) -> None:
    size, actions = network
    flags = np.array([it in chosen for it in range(size)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fair, "BATCH", batch)
        steps = steps_of(size, actions)
        found = steps.into(flags), steps.reaching(flags), steps.reached(flags)
    led = {s: {t for source, _, ends in actions if source == s for t in ends} for s in range(size)}
    after = {s: {s, *_reach(s, actions)} for s in range(size)}
    for said, expected in zip(
        found,
        (
            {s for s in range(size) if led[s] & chosen},
            {s for s in range(size) if after[s] & chosen},
            {t for s in range(size) if s in chosen for t in after[s]},
        ),
        strict=True,
    ):
        assert set(np.flatnonzero(said).tolist()) == expected
