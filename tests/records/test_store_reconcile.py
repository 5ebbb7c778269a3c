"""Retained values and what two stores compare, in memory and on disk alike."""

from collections.abc import Sequence

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.protocols.publications.trie import Trie
from planaria.records import retained
from planaria.records.lanes import Entry
from planaria.records.record import PLACE_BITS, Record
from planaria.records.store import Store
from planaria.records.sums import ON_THE_WAY_SECONDS
from planaria.records.window import Window
from records_lab import NOW, A, B, Make, record, shuffled

pytest_plugins = ("record_stores",)


def test_the_last_value_of_a_key_and_of_the_topic(store: Store) -> None:
    assert store.retained() is None
    store.append([record(A, 0, 3, keys=[b"x", b"y", b"x"])])
    assert store.retained(b"x").sequence == 2  # type: ignore[union-attr]
    store.append([record(A, 3, 1, keys=[b"y"]), record(A, 4)])
    assert store.retained(b"y").sequence == 3  # type: ignore[union-attr]
    assert store.retained(b"x").sequence == 2  # type: ignore[union-attr]
    assert store.retained().sequence == 4  # type: ignore[union-attr]
    assert store.retained(b"z") is None


def test_within_one_second_the_last_value_is_the_highest_number_not_the_highest_key(
    store: Store,
) -> None:
    for n in range(50):
        store.append([record(A, n, keys=[b"x"])])
        assert store.retained(b"x").sequence == n  # type: ignore[union-attr]


def test_a_value_goes_with_its_record(store: Store) -> None:
    store.append([record(A, 0, keys=[b"old"], time=NOW), record(A, 1, keys=[b"new"], time=NOW + 9)])
    assert store.retained(b"old") is not None
    store.show(Window(limit=1))
    assert store.retained(b"old") is None
    store.append([record(A, 2, keys=[b"newer"], time=NOW + 10)])
    assert store.retained(b"new") is None
    assert store.retained(b"newer") is not None


def test_a_value_goes_to_what_is_left_of_its_second(store: Store) -> None:
    """Of one second the lowest place is dropped first, and it may have the highest number."""
    store.show(Window(limit=3))
    store.purge([])
    for turn in range(30):
        time = NOW + 2 * turn
        pair = [record(A, 3 * turn + n, time=time, keys=[b"x"]) for n in (0, 1)]
        store.append(pair)
        assert store.retained(b"x").sequence == pair[1].first  # type: ignore[union-attr]
        store.append([record(A, 3 * turn + 2, 2, time=time + 1)])
        left = max(pair, key=lambda one: one.place)
        assert store.retained(b"x").sequence == left.first  # type: ignore[union-attr]


def test_the_last_of_a_topic_is_found_without_reading_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append([record(of, n, 2, time=NOW + n) for of in (A, B) for n in range(0, 40, 2)])
    read, load = list[int](), store._load

    def counted(entries: Sequence[Entry]) -> list[Record | None]:
        read.extend(entry.first for entry in entries)
        return load(entries)

    monkeypatch.setattr(store, "_load", counted)
    found = store.retained()
    assert found is not None
    assert (found.publisher, found.sequence) == (B[0], 39)
    assert {*read} == {38}
    store.index.lanes[B].entries[-1].end += 7
    store.index.sort()
    assert store.retained() == found


def test_more_keys_than_can_be_known_are_refused_and_the_last_of_all_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "RETAINED_KEYS_MAX", 2)
    store.append([record(A, 0, 2, keys=[b"x", b"y"])])
    assert store.retained(b"x") is not None
    store.append([record(A, 2, keys=[b"z"])])
    with pytest.raises(CapacityExceeded, match="more than 2 keys"):
        store.retained(b"x")
    assert store.retained().sequence == 2  # type: ignore[union-attr]
    store.append([record(A, 3, keys=[b"x"])])
    known, parts = store.retaining(), store.read({}).slices
    assert known is not None
    assert [it for part in parts for it in known.compacted(part)] == parts, "it leaves nothing out"


# Reconciling


def test_digests_are_equal_exactly_where_the_same_is_shown(make: Make) -> None:
    one, other = make("one"), make("other")
    records = [record(of, n, time=NOW + n) for of in (A, B) for n in range(50)]
    one.append(shuffled(records, 1))
    other.append(shuffled(records, 2)[1:])
    cut = NOW + 100
    assert one.digest(0, cut) != other.digest(0, cut)
    missing = shuffled(records, 2)[0]
    other.append([missing])
    assert one.digest(0, cut) == other.digest(0, cut)
    assert one.places(0, cut) == other.places(0, cut) == sorted(r.place for r in records)


def test_the_cut_leaves_alone_what_is_on_its_way(make: Make) -> None:
    one, other = make("one"), make("other")
    old, fresh = [record(A, n, time=NOW + n) for n in range(10)], record(A, 10, time=NOW + 10)
    far = record(A, 11, time=NOW + 10 + ON_THE_WAY_SECONDS)
    one.append([*old, fresh])
    other.append(old)
    assert one.digest(0, NOW + 10) == other.digest(0, NOW + 10)
    assert one.digest(0, NOW + 11) != other.digest(0, NOW + 11)
    one.append([far])
    assert one.digest(0, NOW + 10) != other.digest(0, NOW + 10), "a wrong clock hides nothing"
    assert one.digest(NOW + 5, NOW + 10).records == 6
    assert one.places(NOW, NOW + 10) == [*(r.place for r in old), far.place]


def test_a_trie_built_where_it_is_walked_finds_the_difference(make: Make) -> None:
    one, other = make("one"), make("other")
    records = [record(A, n, time=NOW + n) for n in range(100)]
    one.append(records)
    other.append(records[1:])
    tries = [Trie(PLACE_BITS, dict.fromkeys(s.places(0, NOW + 999))) for s in (one, other)]
    assert tries[0].root_hash != tries[1].root_hash
    assert {*tries[0].keys()} - {*tries[1].keys()} == {records[0].place}
    assert other.append(one.get([records[0].place]))[0].new == [(0, 1)]
    assert one.digest(0, NOW + 999) == other.digest(0, NOW + 999)
