"""Lone records on their way: shorter bytes, and the same record at the other end."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.ids import NODE_ID_MAX
from planaria.protocols.publications.push import PUSH_BYTES_MAX, frames, sound
from planaria.records.evidence import PUBLISHED, sealer
from planaria.records.lone import lean, whole
from planaria.records.record import (
    SEQUENCE_MAX,
    TIME_MAX,
    Draft,
    MalformedRecord,
    Record,
    decode,
    seal,
)
from planaria.studies.skipring.antientropy import reconcile

LONE = seal((7, bytes(range(12))), 300, [Draft(b"payload")], time=1_790_000_000, low=5)
RICH = Draft(b"", b"key", (("unit", b"C"),), 5)
SIGN = sealer(bytes(365), lambda _: bytes(64), PUBLISHED, "news")
OTHERS = [
    seal(LONE.stream, 3, [Draft(b"a"), Draft(b"b")], time=9),
    seal(LONE.stream, 3, [RICH], time=9),
    seal(LONE.stream, 3, [Draft(b"a", b"")], time=9),
    seal(LONE.stream, 3, [Draft(b"a", None, (("", b""),))], time=9),
    seal(LONE.stream, 3, [Draft(b"a", None, (), 0)], time=9),
    seal(LONE.stream, 3, [Draft(b"a")], time=9, sign=SIGN),
]
numbers = st.integers(0, SEQUENCE_MAX - 1) | st.sampled_from([0, 1, 255, 256, SEQUENCE_MAX - 1])


@given(
    st.sampled_from([0, NODE_ID_MAX]) | st.integers(0, NODE_ID_MAX),
    st.binary(min_size=12, max_size=12),
    st.tuples(numbers, numbers),
    st.sampled_from([0, 2**32 - 1, 2**32, TIME_MAX]) | st.integers(0, TIME_MAX),
    st.binary(max_size=300),
)
def test_a_lone_record_is_the_same_at_the_other_end_and_shorter_on_its_way(
    publisher: int, incarnation: bytes, span: tuple[int, int], time: int, payload: bytes
) -> None:
    low, first = sorted(span)
    sealed = seal((publisher, incarnation), first, [Draft(payload)], time=time, low=low)
    short = lean(sealed.data)
    assert whole(short) == sealed
    assert whole(short).key == sealed.key
    size = 27 + (first.bit_length() + 7) // 8 + (low.bit_length() + 7) // 8
    assert len(short) == size + len(payload) < len(sealed.data)


@pytest.mark.parametrize("other", OTHERS)
def test_all_others_travel_as_they_are(other: Record) -> None:
    assert lean(other.data) == other.data
    assert whole(other.data) == other


def test_what_is_no_record_does_not_become_one_on_its_way() -> None:
    """Bytes that a fault has changed anywhere, but not into the mark of lone ones."""
    rng, shortened = Random(5), 0
    for _ in range(20_000):
        damaged = bytearray(LONE.data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        data = bytes(damaged)
        short = lean(data)
        shortened += short != data
        assert _read(short) == _plain(data)
    assert shortened > 1_000


def test_a_time_that_no_record_has_is_left_for_the_other_end_to_refuse() -> None:
    late = LONE.data.replace(LONE.time.to_bytes(8, "little"), (TIME_MAX + 1).to_bytes(8, "little"))
    assert lean(late) == late != LONE.data
    assert _read(late) is None


def _plain(data: bytes) -> bytes | None:
    try:
        return decode(data).data
    except MalformedRecord:
        return None


def _read(data: bytes) -> bytes | None:
    try:
        return whole(data).data
    except MalformedRecord:
        return None


def test_any_bytes_after_the_mark_give_a_sound_record_or_none() -> None:
    rng, found = Random(1), 0
    for size in range(3_000):
        data = b"L" + rng.randbytes(size % 60)
        record = _read(data)
        found += record is not None
        assert record is None or (_plain(record) == record and lean(record) == data)
    assert 0 < found < 3_000
    for end in range(27):
        with pytest.raises(MalformedRecord, match=f"no lone record in {end} bytes|record of 0"):
            whole(lean(LONE.data)[:end])


def test_numbers_that_are_cut_off_or_longer_than_they_need_be_are_no_record() -> None:
    short = lean(LONE.data)
    wide = b"".join(
        [short[:26], b"\x88", *(it.to_bytes(8, "little") for it in (300, 5)), b"payload"]
    )
    for data in (wide, *(short[:end] for end in range(27, 30))):
        with pytest.raises(MalformedRecord, match="in other bytes than it travels in"):
            whole(data)
    assert whole(short[:30]).payloads(300, 301) == [b""], "whoever frames it tells how long it is"


def test_pushes_are_lean_and_bounded_by_what_they_unfold_to() -> None:
    many = [
        seal(LONE.stream, number, [Draft(b"")], time=9).data
        for number in range(PUSH_BYTES_MAX // 64)
    ]
    first, *rest = frames([OTHERS[0].data, *many])
    assert sum(len(record.data) for record in sound(first)) <= PUSH_BYTES_MAX
    assert sum(map(len, first)) < PUSH_BYTES_MAX // 2
    assert rest
    there = [record.data for frame in (first, *rest) for record in sound(frame)]
    assert there == [OTHERS[0].data, *many]


def test_a_history_of_lone_publications_is_reconciled_within_the_mark() -> None:
    """10 kB and 7 messages for 100 that differ; how many they share hardly matters."""
    found = reconcile("sketch", 10_000, 100, 1)
    assert found.equal
    assert found.bytes <= 10_000
    assert found.messages <= 7
