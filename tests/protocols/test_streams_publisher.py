"""Incarnations and numbers on the publisher's side."""

from copy import deepcopy
from random import Random

import pytest
from msgspec.structs import replace

from planaria.protocols.publications import streams as module
from planaria.protocols.publications.publication import key
from planaria.protocols.publications.retention import Rejected
from planaria.protocols.publications.streams import Publisher, Stamp


def publisher(seed: int = 1, stamp: Stamp | None = None, id: int = 9) -> Publisher:
    return Publisher(id, Random(seed), stamp)


def test_numbers_run_from_zero_in_one_incarnation() -> None:
    mine = publisher()
    said = [mine.publish(b"p", 100, 84) for _ in range(5)]
    assert [p.sequence for p in said] == [0, 1, 2, 3, 4]
    assert len({p.incarnation for p in said}) == 1
    assert said[0].incarnation >> 32 == 100
    assert len({key(p) for p in said}) == 5, "the same payload said five times (erratum T4)"


def test_a_stamp_read_back_intact_goes_on_and_any_other_starts_anew() -> None:
    mine = publisher()
    last = mine.publish(b"p", 100, 84)
    stored = deepcopy(mine.stamp)
    assert stored is not None
    again = publisher(2, stored).publish(b"q", 100, 84)
    assert (again.incarnation, again.sequence) == (last.incarnation, 1)
    for broken in (
        None,
        replace(stored, sequence=0),
        replace(stored, incarnation=5),
        replace(stored, starts=((0, 10**9),)),
        replace(stored, check=stored.check ^ 1),
    ):
        fresh = publisher(2, broken).publish(b"q", 100, 84)
        assert fresh.incarnation != last.incarnation
        assert (fresh.sequence, fresh.low) == (0, 0)
    stolen = publisher(2, stored, id=8).publish(b"q", 100, 84)
    assert stolen.incarnation != last.incarnation


def test_a_stamp_corrupted_in_memory_is_not_used() -> None:
    mine = publisher()
    first = mine.publish(b"p", 100, 84)
    assert mine.stamp is not None
    mine.stamp = replace(mine.stamp, sequence=10**6)
    second = mine.publish(b"p", 100, 84)
    assert second.sequence == 0
    assert second.incarnation != first.incarnation


def test_the_last_number_is_followed_by_a_new_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEQUENCE_MAX", 3)
    mine = publisher()
    said = [mine.publish(b"p", 1, 0) for _ in range(4)]
    assert [p.sequence for p in said] == [0, 1, 2, 0]


def test_low_is_the_first_number_of_the_oldest_live_epoch() -> None:
    mine = publisher()
    lows = [mine.publish(b"p", epoch, lo=epoch - 2).low for epoch in (10, 10, 11, 12, 13, 14, 20)]
    assert lows == [0, 0, 0, 0, 2, 3, 6]


def test_low_never_passes_the_publication_when_the_epoch_steps_back() -> None:
    mine = publisher()
    random = Random(3)
    for _ in range(300):
        epoch = random.randrange(30)
        said = mine.publish(b"p", epoch, lo=max(0, epoch - random.randrange(5)))
        assert said.low <= said.sequence


def test_known_starts_stay_within_their_bound() -> None:
    mine = publisher()
    for epoch in range(500):
        assert mine.publish(b"p", epoch, lo=0).low == 0
    assert mine.stamp is not None
    assert len(mine.stamp.starts) <= module.STARTS_MAX


def test_a_rejected_publication_is_restamped_with_a_new_key_and_the_same_number() -> None:
    mine = publisher()
    said = mine.publish(b"p", 500, 484)
    again = mine.on_rejected(Rejected("t", 3, key(said), 100))
    assert again == replace(said, epoch=100)
    assert mine.on_rejected(Rejected("t", 4, key(said), 100)) is None, "once for many rejections"
    assert mine.on_rejected(Rejected("t", 4, key(again), 100)) is None, "this is the epoch asked"


def test_liars_make_a_publisher_restamp_only_so_often() -> None:
    mine = publisher()
    said, times = mine.publish(b"p", 500, 484), 0
    for lie in range(20):
        again = mine.on_rejected(Rejected("t", 3, key(said), lie))
        if again is not None:
            said, times = again, times + 1
    assert times == module.RESTAMPS_MAX


def test_rejections_of_the_unknown_or_long_gone_are_ignored() -> None:
    mine = publisher()
    first = mine.publish(b"p", 500, 484)
    assert mine.on_rejected(Rejected("t", 3, b"x" * 16, 1)) is None
    for _ in range(module.UNSETTLED_MAX):
        mine.publish(b"p", 500, 484)
    assert mine.on_rejected(Rejected("t", 3, key(first), 1)) is None
