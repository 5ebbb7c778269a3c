"""The window of live epochs, the quota and the delivered marks, one rule at a time."""

from itertools import permutations
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.protocols.publications import retention as module
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.publications.retention import (
    EPOCHS_LIVE,
    VOTE_TIMEOUTS,
    VOTERS_MAX,
    Delivered,
    Horizon,
    Quota,
    Rejected,
    Retention,
)

DAY = Retention(age=16_000)  # epochs of 1000 seconds
D = DAY.epoch_seconds


def horizon_at(epoch: int) -> Horizon:
    horizon = Horizon(DAY)
    horizon.read_clock(epoch * D)
    return horizon


def test_a_publication_lives_at_least_its_age_and_little_longer() -> None:
    for age in (1, 16, 17, 160, 86_400):
        retention = Retention(age=age)
        length = retention.epoch_seconds
        for offset in (0, length - 1):
            stamped = 1000 * length + offset
            horizon = Horizon(retention)
            horizon.read_clock(stamped + age - 1)
            assert horizon.accepts(1000)
            horizon.read_clock(stamped + (EPOCHS_LIVE + 2) * length)
            assert not horizon.accepts(1000)


def test_the_epoch_is_the_low_median_of_the_own_clock_and_the_neighbours() -> None:
    horizon = horizon_at(100)
    for voters, (vote, median) in enumerate([(101, 100), (10**9, 101), (0, 100)], 1):
        horizon.hear(voters, vote)
        horizon.on_timeout([1, 2, 3])
        assert horizon.epoch == median


def test_one_lying_neighbour_of_two_moves_nothing() -> None:
    for lie in (0, 10**12):
        horizon = horizon_at(100)
        horizon.hear(1, 100)
        horizon.hear(2, lie)
        horizon.on_timeout([1, 2])
        assert (horizon.lo, horizon.epoch) == (100 - EPOCHS_LIVE, 100)


def test_a_node_with_a_crazy_clock_follows_its_neighbours() -> None:
    horizon = horizon_at(10**9)
    horizon.hear(1, 100)
    horizon.hear(2, 100)
    horizon.on_timeout([1, 2])
    assert horizon.epoch == 100
    assert horizon.clock == 10**9, "what it advertises is its raw clock, so lies do not spread"


def test_votes_of_strangers_and_of_the_silent_do_not_count() -> None:
    horizon = horizon_at(100)
    for peer in (1, 2, 3):
        horizon.hear(peer, 500)
    horizon.on_timeout([2, 3])
    assert list(horizon.votes) == [2, 3]
    for _ in range(VOTE_TIMEOUTS - 1):
        horizon.on_timeout([2, 3])
    assert horizon.epoch == 500
    horizon.on_timeout([2, 3])
    assert horizon.epoch == 100
    for peer in range(2 * VOTERS_MAX):
        horizon.hear(peer, 100)
    assert len(horizon.votes) == VOTERS_MAX


def test_lo_does_not_step_back_with_the_epoch_but_any_other_lo_is_reset() -> None:
    horizon = horizon_at(100)
    horizon.read_clock(101 * D)
    horizon.read_clock(100 * D)
    assert (horizon.epoch, horizon.lo) == (100, 101 - EPOCHS_LIVE)
    for corrupted in (-5, 0, 10**12):
        horizon.lo = corrupted
        horizon.read_clock(100 * D)
        assert horizon.lo == 100 - EPOCHS_LIVE


def test_without_any_clock_everything_is_accepted_and_nothing_deleted() -> None:
    horizon = Horizon(DAY)
    assert horizon.accepts(0)
    assert horizon.accepts(10**15)
    assert [horizon.expire([0, 10**15]) for _ in range(100)] == [None] * 100


def test_without_an_age_only_the_future_is_hidden() -> None:
    horizon = Horizon(Retention(count=5))
    horizon.read_clock(10**9)
    assert horizon.accepts(0)
    assert horizon.epoch is not None
    assert horizon.accepts(horizon.epoch + 1)
    assert not horizon.accepts(horizon.epoch + 2)


def test_a_jump_of_the_epoch_raises_the_alarm_and_a_step_does_not() -> None:
    horizon = horizon_at(100)
    assert not horizon.on_timeout([1, 2])
    horizon.hear(1, 101)
    horizon.hear(2, 101)
    assert not horizon.on_timeout([1, 2])
    horizon.hear(1, 900)
    horizon.hear(2, 900)
    horizon.read_clock(900 * D)
    assert horizon.on_timeout([1, 2])
    assert not horizon.on_timeout([1, 2])


@pytest.mark.parametrize("step", [1, 50, 250])
def test_hidden_buckets_are_deleted_oldest_first_one_per_half_epoch(step: int) -> None:
    horizon = horizon_at(10**6)
    stored = list(range(100))
    deleted = []
    for seconds in range(0, 5 * D, step):
        horizon.read_clock(10**6 * D + seconds)
        gone = horizon.expire(stored)
        if gone is not None:
            stored.remove(gone)
            deleted.append((gone, seconds))
    assert [epoch for epoch, _ in deleted] == list(range(len(deleted)))
    assert 7 <= len(deleted) <= 10
    assert deleted[0][1] >= D // 2, "there is time to take a wrong horizon back"


def test_a_horizon_that_jumps_after_a_long_peace_deletes_nothing_for_half_an_epoch() -> None:
    horizon = horizon_at(100)
    for seconds in range(0, D, 10):
        horizon.read_clock(100 * D + seconds)
        assert horizon.expire([100, 101]) is None
    for seconds in range(0, D // 2 - D // 4, 10):
        horizon.read_clock(10**6 * D + seconds)
        assert horizon.expire([100, 101]) is None


def test_a_clock_that_jumps_at_every_reading_does_not_hurry_deletion_much() -> None:
    horizon = horizon_at(10**6)
    stored = list(range(100))
    deleted = 0
    for reading in range(40):
        horizon.read_clock((10**6 + (-1) ** reading * 10**5) * D)
        deleted += horizon.expire(stored) is not None
    assert deleted <= 10


def test_a_corrupted_pace_heals() -> None:
    for corrupted in (-(10**9), 10**18):
        horizon = horizon_at(10**6)
        horizon.elapsed = corrupted
        assert horizon.expire([1]) is None
        deleted = 0
        for seconds in range(0, 3 * D, 100):
            horizon.read_clock(10**6 * D + seconds)
            deleted += horizon.expire([1]) is not None
        assert deleted >= 4


def test_a_rejected_publication_is_answered_with_the_epoch() -> None:
    horizon = horizon_at(100)
    inside, outside = (Publication(1, 1, 0, 0, epoch, b"p") for epoch in (101, 102))
    assert horizon.reject("t", 9, inside) is None
    assert horizon.reject("t", 9, outside) == Rejected("t", 9, key(outside), 100)
    assert Horizon(DAY).reject("t", 9, outside) is None


def test_a_key_deleted_and_fetched_again_is_not_delivered_again() -> None:
    """The horizon is wrong for R/4 epochs, buckets go, the horizon comes back, peers refill."""
    horizon = horizon_at(100)
    names = {epoch: bytes([epoch]) * 16 for epoch in range(84, 101)}
    assert all(horizon.delivered.add(epoch, name) for epoch, name in names.items())
    stored, time = list(names), 100 * D
    for step in range(EPOCHS_LIVE // 4 * D // 100):
        horizon.read_clock(time + 10**6 * D + step * 100)
        gone = horizon.expire(stored)
        if gone is not None:
            stored.remove(gone)
    assert len(stored) < len(names)
    horizon.read_clock(time + EPOCHS_LIVE // 4 * D)
    assert not any(horizon.delivered.add(epoch, name) for epoch, name in names.items())


def test_marks_outlive_their_bucket_by_one_retention_period_and_no_more() -> None:
    horizon = horizon_at(100)
    horizon.delivered.add(100, b"k" * 16)
    stored, gone_at, forgotten_at = [100], 0, 0
    for step in range(0, 60 * D, 100):
        horizon.read_clock(100 * D + step)
        if horizon.expire(stored) is not None:
            stored, gone_at = [], step
        if not len(horizon.delivered):
            forgotten_at = step
            break
    assert EPOCHS_LIVE * D <= gone_at <= (EPOCHS_LIVE + 3) * D
    assert (EPOCHS_LIVE - 1) * D <= forgotten_at - gone_at <= (EPOCHS_LIVE + 2) * D


def test_marks_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MARKS_MAX", 10)
    delivered = Delivered()
    for number in range(100):
        assert delivered.add(number // 4, number.to_bytes(16, "little"))
        assert len(delivered) <= 10
    assert delivered.epochs()[-1] == 24


Item = tuple[int, tuple[int, int]]  # publisher, (epoch, key)


def stupid_kept(items: set[Item], count: int, quota: int) -> set[Item]:
    """The quota of each publisher, then the newest of all; in plain sight."""
    within = [
        item
        for item in items
        if len([o for o in items if o[0] == item[0] and o[1] > item[1]]) < quota
    ]
    return set(sorted(within, key=lambda item: item[1])[-count:])


def keep(items: list[Item], count: int, quota: int) -> set[Item]:
    """The quota before a store of limited size, item by item."""
    limit = Quota(Retention(count=count, per_publisher=quota))
    store: set[Item] = set()
    for publisher, place in items:
        dropped = limit.add(publisher, place)
        if dropped is not None:
            store.discard((publisher, dropped))
        if dropped != place:
            store.add((publisher, place))
            store = set(sorted(store, key=lambda item: item[1])[-count:])
        if len(store) == count:
            limit.forget(min(place for _, place in store))
    return store


items = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 10**6)), st.integers(0, 3), max_size=14
).map(lambda found: {(publisher, place) for place, publisher in found.items()})


@given(items, st.integers(1, 8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_is_kept_depends_on_the_items_and_not_on_their_order(
    found: set[Item], count: int, quota: int, random: Random
) -> None:
    order = sorted(found)
    random.shuffle(order)
    assert keep(order, count, quota) == stupid_kept(found, count, quota)


@given(items, items, st.integers(1, 8), st.integers(1, 4))
def test_what_is_kept_of_a_union_depends_on_what_is_kept_of_its_parts(
    one: set[Item], other: set[Item], count: int, quota: int
) -> None:
    parts = stupid_kept(one, count, quota) | stupid_kept(other, count, quota)
    assert stupid_kept(one | other, count, quota) == stupid_kept(parts, count, quota)


def test_one_publisher_cannot_flush_a_topic() -> None:
    honest = [(1, (5, number)) for number in range(4)]
    forged = [(2, (6, number)) for number in range(100)]
    kept = keep(honest + forged, count=8, quota=4)
    assert kept == {*honest, *forged[-4:]}
    without = keep(honest + forged, count=8, quota=100)
    assert not without & set(honest), "which is what happens without a quota"


def test_a_publication_counted_twice_counts_once() -> None:
    quota = Quota(Retention(per_publisher=1))
    assert quota.add(1, (5, 5)) is None
    assert quota.add(1, (5, 5)) is None
    assert quota.add(1, (4, 4)) == (4, 4)
    assert quota.add(1, (6, 6)) == (5, 5)
    assert len(quota) == 1
    quota.forget((7, 0))
    assert len(quota) == 0


def test_without_a_quota_nothing_is_dropped_or_held() -> None:
    quota = Quota(Retention())
    assert {quota.add(1, (0, number)) for number in range(9)} == {None}
    assert len(quota) == 0


def test_a_late_fetch_of_every_order_keeps_the_same_three() -> None:
    found = [(1, (1, 1)), (1, (2, 2)), (1, (3, 3)), (2, (1, 4)), (2, (2, 5))]
    results = {frozenset(keep(list(order), 3, 2)) for order in permutations(found)}
    assert len(results) == 1


@pytest.mark.parametrize("field", ["age", "count", "per_publisher"])
def test_a_limit_below_one_is_no_policy(field: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(
            [0 if name == field else 1 for name in Retention.__struct_fields__], Retention
        )
