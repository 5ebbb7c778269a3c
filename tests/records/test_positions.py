"""Interval sets, vectors and what was delivered, beside plain sets."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.records import positions
from planaria.records.positions import (
    START,
    Delivered,
    Intervals,
    Mark,
    skip,
    vector_from_json,
    vector_to_json,
)
from records_lab import NOW, A, B, flat, stream

pairs = st.tuples(st.integers(0, 30), st.integers(0, 30))
steps = st.lists(st.tuples(st.sampled_from(["add", "remove"]), pairs), max_size=25)


@given(steps, pairs)
def test_intervals_do_what_a_set_does(
    steps: list[tuple[str, tuple[int, int]]], range_: tuple[int, int]
) -> None:
    intervals, twin = Intervals(), set[int]()
    for step, (lo, hi) in steps:
        if step == "add":
            assert flat(intervals.add(lo, hi)) == sorted({*range(lo, hi)} - twin)
            twin |= {*range(lo, hi)}
        else:
            intervals.remove(lo, hi)
            twin -= {*range(lo, hi)}
        assert flat(intervals) == sorted(twin)
        ends = list(intervals)
        assert all(a < b for a, b in ends)
        assert all(b < c for (_, b), (c, _) in pairwise(ends)), "none touch"
    lo, hi = range_
    assert flat(intervals.missing(lo, hi)) == sorted({*range(lo, hi)} - twin)
    assert flat(intervals.common(lo, hi)) == sorted({*range(lo, hi)} & twin)
    assert intervals.contiguous(lo) == next(n for n in range(lo, 99) if n not in twin)
    assert [n in intervals for n in range(32)] == [n in twin for n in range(32)]
    assert Intervals.unpack(intervals.pack()) == intervals


@pytest.mark.parametrize("data", [b"x", bytes(16), Intervals([(5, 6)]).pack() * 2])
def test_bytes_that_no_intervals_made_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="intervals"):
        Intervals.unpack(data)


def test_a_vector_survives_json() -> None:
    vector = {B: Mark(7), A: Mark(9, ((1, 3), (5, 9)))}
    plain = json.loads(json.dumps(vector_to_json(vector)))
    assert plain == {f"1/{A[1].hex()}": [[9], [1, 3], [5, 9]], f"2/{B[1].hex()}": 7}
    assert vector_from_json(plain) == vector


NAME = f"1/{A[1].hex()}"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [1],
        {"x": 1},
        {"1/zz": 1},
        {"1/00": 1},
        {f"-1/{A[1].hex()}": 1},
        {NAME: -1},
        {NAME: 2**63},
        {NAME: "1"},
        {NAME: []},
        {NAME: [[1, 2]]},
        {NAME: [[9], [3, 2]]},
        {NAME: [[9], [3, 12]]},
        {NAME: [[9], [1, 3], [2, 4]]},
    ],
)
def test_what_is_no_vector_is_refused_in_one_line(wrong: object) -> None:
    with pytest.raises(UsageError) as refused:
        vector_from_json(wrong)
    assert "\n" not in str(refused.value)


def test_skipping_is_carried_in_the_vector_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = skip({B: START}, A, 3)
    assert vector == {B: START, A: Mark(3, ((0, 3),))}
    assert skip(vector, A, 2) == vector
    assert skip(vector, A, 5)[A] == Mark(5, ((0, 5),))
    monkeypatch.setattr(positions, "SKIPPED_MAX", 1)
    with pytest.raises(UsageError, match="holes skipped"):
        skip({A: Mark(9, ((1, 2),))}, A, 11)


def test_delivered_numbers_are_new_once() -> None:
    delivered = Delivered()
    assert delivered.add(A, 3, 6, NOW) == [(3, 6)]
    assert delivered.add(A, 0, 9, NOW) == [(0, 3), (6, 9)]
    assert delivered.add(B, 0, 9, NOW) == [(0, 9)]
    assert delivered.add(A, 0, 9, NOW) == []
    assert delivered.newest(A) == NOW
    assert delivered.add(A, 9, 12, NOW + 5) == [(9, 12)]
    assert delivered.newest(A) == NOW + 5, "what comes next may come later"
    assert delivered.add(A, 12, 13, NOW) == [(12, 13)]
    assert delivered.newest(A) == NOW + 5
    assert list(delivered.numbers(stream(5))) == []


def test_too_many_holes_are_given_up_from_below_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(positions, "INTERVALS_MAX", 2)
    delivered = Delivered()
    for number in (0, 5, 10):
        delivered.add(A, number, number + 1, NOW)
    assert list(delivered.numbers(A)) == [(0, 6), (10, 11)]
    assert delivered.given_up == 4


def test_marks_that_a_fault_changed_swallow_nothing_that_is_yet_to_come() -> None:
    stream = (1, bytes(12))
    for lo, hi, newest in ((0, 2**40, 5), (0, 3, 10**9), (-7, 3, 5), (2, 3, 5)):
        delivered = Delivered()
        delivered.add(stream, 0, 3, 5)
        check = delivered._streams[stream][2]
        delivered._streams[stream] = (Intervals([(lo, hi)]), newest, check)
        assert delivered.add(stream, 3, 9, 6) == [(3, 9)]
        assert list(delivered.numbers(stream)) == [(3, 9)], "what they said is forgotten"
        again = Delivered()
        again.load(delivered.state())
        assert again.add(stream, 5, 12, 6) == [(9, 12)]


def test_a_false_mark_between_others_is_noticed_too() -> None:
    for at, by in ((1, 1), (2, -2), (3, 1 << 63)):
        marks = Delivered()
        for first in range(0, 50, 10):
            marks.add(A, first, first + 5, NOW)
        ends = marks.numbers(A)._ends
        ends[at] += by
        assert marks.add(A, 60, 61, NOW) == [(60, 61)]
        assert list(marks.numbers(A)) == [(60, 61)], "what they said is forgotten"
