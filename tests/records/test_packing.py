"""Packing: at once when idle, together under load, never beyond its bounds."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.records import packing
from planaria.records.packing import (
    LINGER_MICROSECONDS,
    PACKED_BYTES,
    PACKED_PUBLICATIONS,
    Packer,
    packed,
    weigh,
)
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft, Record
from records_lab import NOW, A

T = 5_000_000  # some time on a steady clock


@pytest.fixture
def packer() -> Packer:
    return Packer(*A)


def take_all(packer: Packer, now: int) -> list[Record]:
    found = []
    while (one := packer.take(now, time=NOW)) is not None:
        found.append(one)
    return found


def test_a_lone_publication_leaves_at_once(packer: Packer) -> None:
    for turn in range(5):
        now = T + turn * LINGER_MICROSECONDS
        assert packer.offer(Draft(b"x")) == turn
        assert packer.due is not None
        assert packer.due <= now
        (one,) = take_all(packer, now)
        assert (one.first, one.count) == (turn, 1)
        assert packer.due is None


def test_the_first_publication_leaves_at_once_whatever_the_clock_says(packer: Packer) -> None:
    packer.offer(Draft(b"x"))
    assert len(take_all(packer, 0)) == 1


def test_under_load_a_linger_of_publications_shares_a_record(packer: Packer) -> None:
    packer.offer(Draft(b"first"))
    take_all(packer, T)
    for number in range(40):
        packer.offer(Draft(b"x"))
        assert packer.take(T + 10 * number, time=NOW) is None
    assert packer.due == T + LINGER_MICROSECONDS
    assert packer.take(T + LINGER_MICROSECONDS - 1, time=NOW) is None
    (one,) = take_all(packer, T + LINGER_MICROSECONDS)
    assert (one.first, one.count) == (1, 40)
    assert one.payloads(1, 41) == [b"x"] * 40


def test_a_full_record_does_not_wait(packer: Packer, monkeypatch: pytest.MonkeyPatch) -> None:
    packer.offer(Draft(b"first"))
    take_all(packer, T)
    for _ in range(PACKED_PUBLICATIONS + 3):
        packer.offer(Draft(b"x"))
    assert [one.count for one in take_all(packer, T)] == [PACKED_PUBLICATIONS]
    assert len(packer) == 3
    monkeypatch.setattr(packing, "PACKED_BYTES", 1000)
    packer.offer(Draft(bytes(900)))
    assert [one.count for one in take_all(packer, T)] == [3]
    assert [one.count for one in take_all(packer, T + LINGER_MICROSECONDS)] == [1]


def test_numbers_and_times_ascend_whatever_the_clock_does(packer: Packer) -> None:
    times = []
    for turn, time in enumerate((NOW, NOW - 100, NOW + 1)):
        packer.offer(Draft(b"x"))
        one = packer.take(T + turn * LINGER_MICROSECONDS, time=time, low=99)
        assert one is not None
        times.append(one.time)
        assert one.low == one.first == turn, "nothing is vouched away that is only now sealed"
    assert times == [NOW, NOW, NOW + 1]


def test_too_much_unacknowledged_is_refused_and_acknowledging_makes_room(
    packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "UNSETTLED_BYTES_MAX", 3000)
    sealed = []
    for turn in range(3):
        packer.offer(Draft(bytes(900)))
        sealed += take_all(packer, T + turn * LINGER_MICROSECONDS)
    with pytest.raises(CapacityExceeded, match="slow down"):
        packer.offer(Draft(bytes(900)))
    assert list(packer.unsettled) == sealed, "a retry is the same bytes"
    packer.acknowledge(1)
    assert list(packer.unsettled) == sealed[1:]
    assert packer.offer(Draft(bytes(900))) == 3


def test_a_draft_larger_than_the_bound_is_taken_when_nothing_else_is(
    packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "UNSETTLED_BYTES_MAX", 100)
    packer.offer(Draft(bytes(5000)))
    assert [one.count for one in take_all(packer, T)] == [1]
    packer.acknowledge(1)
    packer.offer(Draft(bytes(5000)))


@pytest.mark.parametrize(
    "draft",
    [
        Draft(bytes(PAYLOAD_BYTES_MAX + 1)),
        Draft(bytes(PAYLOAD_BYTES_MAX), headers=tuple((f"h{n}", bytes(8000)) for n in range(8))),
        Draft(b"", bytes(5000)),
        Draft(b"", None, (("n", b""),) * 65),
        Draft(b"", None, (("n" * 256, b""),)),
        Draft(b"", None, (("n", bytes(8193)),)),
        Draft(b"", None, (), 1 << 63),
    ],
)
def test_what_no_record_can_hold_is_refused_before_it_is_numbered(
    packer: Packer, draft: Draft
) -> None:
    with pytest.raises(UsageError):
        packer.offer(draft)
    assert packer.offer(Draft(b"x")) == 0


def test_whatever_is_offered_can_be_sealed(packer: Packer) -> None:
    largest = Draft(bytes(PAYLOAD_BYTES_MAX - 9000), bytes(1000), (("n", bytes(7000)),), 5)
    for draft in (largest, Draft(bytes(PAYLOAD_BYTES_MAX)), Draft(b"")):
        packer.offer(draft)
    sealed = take_all(packer, T) + take_all(packer, T + 1000) + take_all(packer, T + 2000)
    assert sum(one.count for one in sealed) == 3


BAD = [
    Draft(bytes(PAYLOAD_BYTES_MAX + 1)),
    Draft("text"),  # type: ignore[arg-type]
    Draft(b"", "text"),  # type: ignore[arg-type]
    Draft(b"", None, (("name", "text"),)),  # type: ignore[arg-type]
    Draft(b"", None, (), 1 << 63),
]


@pytest.mark.parametrize(
    "odd", [*BAD, Draft(b"x", b"key"), Draft(b"x", None, (), 1), Draft(b"y" * 9)]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_many_weigh_what_each_of_them_weighs(packer: Packer, odd: Draft, at: int) -> None:
    drafts = [Draft(b"one"), Draft(b"three")]
    drafts.insert(at, odd)
    if odd in BAD:
        with pytest.raises(UsageError):
            packer.offer(*drafts)
        assert (packer.weights, packer.bytes, len(packer)) == ([], 0, 0)
    else:
        packer.offer(*drafts)
        assert packer.weights == [weigh(it) for it in drafts]
        assert packer.bytes == sum(packer.weights)


def test_an_incarnation_has_96_bits() -> None:
    with pytest.raises(UsageError, match="incarnation of 8 bytes"):
        Packer(1, bytes(8))


def test_packs_are_in_order_as_full_as_a_record_and_no_fuller() -> None:
    rng, full = Random(3), set[str]()
    for _ in range(60):
        largest = rng.choice([10, 300, 5_000, PACKED_BYTES, PAYLOAD_BYTES_MAX])
        rich = rng.choice([0.0, 0.5])
        drafts = [
            Draft(
                b"%d" % number + bytes(rng.randrange(largest)),
                bytes(rng.randrange(900)) if rng.random() < rich else None,
                (("h", bytes(rng.randrange(1500))),) * (rng.random() < rich),
            )
            for number in range(rng.choice([0, 1, 20, 1_100]) if largest < PACKED_BYTES else 4)
        ]
        packs = [*packed(drafts)]
        assert [it for pack in packs for it in pack] == drafts
        weights = [sum(map(weigh, pack)) for pack in packs]
        for pack, weight in zip(packs, weights, strict=True):
            assert 1 <= len(pack) <= PACKED_PUBLICATIONS
            assert len(pack) == 1 or weight <= PACKED_BYTES
        for (pack, following), weight in zip(pairwise(packs), weights, strict=False):
            heavy = weight + weigh(following[0]) > PACKED_BYTES
            assert heavy or len(pack) == PACKED_PUBLICATIONS
            full.add("weight" if heavy else "number")
    assert full == {"weight", "number"}


def test_what_comes_before_a_bad_one_is_packed_first() -> None:
    def source() -> Iterator[Draft]:
        yield from [Draft(b"a"), Draft(b"b")]
        raise OSError("unplugged")

    for drafts, error in (
        (source(), OSError),
        ([Draft(b"a"), Draft(b"b"), Draft(bytes(PAYLOAD_BYTES_MAX + 1))], UsageError),
    ):
        packs = packed(drafts)
        assert next(packs) == [Draft(b"a"), Draft(b"b")]
        with pytest.raises(error):
            next(packs)
