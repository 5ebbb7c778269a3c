"""What every store of records promises, in memory and on disk alike."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.lab.incidents.disk_ring import commit
from planaria.records import positions
from planaria.records import store as store_module
from planaria.records.positions import Mark, skip
from planaria.records.record import Publication, Stream
from planaria.records.store import Store
from planaria.records.window import LIMIT_MAX, Window
from records_lab import NOW, A, B, Make, any_record, numbers, record, shuffled, stream

pytest_plugins = ("record_stores",)

# What arrives


def test_a_record_brings_its_numbers_once(store: Store) -> None:
    one = record(A, 3, 4)
    (arrival,) = store.append([one])
    assert arrival.new == [(3, 7)]
    assert store.append([one])[0].new == []
    assert len(store) == 4
    assert one.place in store


def test_a_retry_with_other_bounds_brings_only_what_is_new_and_is_held(store: Store) -> None:
    whole = record(A, 0, 10)
    store.append([whole])
    parts = [record(A, 0, 5), record(A, 5, 7)]
    arrivals = store.append(parts)
    assert [arrival.new for arrival in arrivals] == [[], [(10, 12)]]
    assert [arrival.disputed for arrival in arrivals] == [[], []]
    assert all(part.place in store for part in (whole, *parts))
    assert numbers(store.read({})) == {A: list(range(12))}


def test_another_body_at_a_position_is_disputed_and_never_delivered(store: Store) -> None:
    store.append([record(A, 0, 4)])
    (arrival,) = store.append([record(A, 2, 4, text="!")])
    assert arrival.new == [(4, 6)]
    assert arrival.disputed == [(2, 4)]


def test_the_body_at_a_position_does_not_depend_on_the_order_of_arrival(make: Make) -> None:
    rivals = [record(A, n, 3, time=NOW + n % 2, text=f"<{n}>") for n in range(6)]
    said = []
    for seed in range(5):
        store = make(f"topic {seed}")
        for one in shuffled(rivals, seed):
            store.append([one])
        said.append(store.read({}).publications())
    assert all(bodies == said[0] for bodies in said)
    best = {n: max((r.time, r.key, r) for r in rivals if r.first <= n < r.end)[2] for n in range(8)}
    assert [one.payload for one in said[0]] == [best[n].payloads(n, n + 1)[0] for n in range(8)]


def test_what_a_count_drops_is_delivered_all_the_same(store: Store) -> None:
    store.show(Window(limit=10))
    records = [record(A, 5 * n, 5, time=NOW + n) for n in range(200)]
    arrivals = [store.append([one])[0] for one in reversed(records)]
    assert sum(hi - lo for arrival in arrivals for lo, hi in arrival.new) == 1000
    assert len(store) == 10
    assert records[0].place not in store
    assert store.append([records[0]])[0].new == []


def test_what_is_too_old_is_neither_held_nor_delivered(store: Store) -> None:
    store.show(Window(lo=NOW))
    (arrival,) = store.append([record(time=NOW - 1)])
    assert arrival.new == []
    assert len(store) == 0


# Reading


def test_reading_is_in_publisher_order_whatever_the_order_of_arrival(make: Make) -> None:
    records = [record(of, 4 * n, 4) for of in (A, B) for n in range(25)]
    batches = []
    for seed in range(3):
        store = make(f"topic {seed}")
        store.append(shuffled(records, seed))
        rows, vector = list[Publication](), store.read({}, limit=1).vector
        while (batch := store.read(vector, limit=7)).slices:
            assert len(batch.publications()) <= 7
            rows, vector = rows + batch.publications(), batch.vector
        batches.append(rows)
        assert vector == store.vector() == {A: Mark(100), B: Mark(100)}
    assert batches[0] == batches[1] == batches[2]
    assert [(row.publisher, row.sequence) for row in batches[0]] == [
        (who, n) for who in (1, 2) for n in range(100)
    ][1:]


def test_a_range_is_read_to_its_end_and_no_further(store: Store) -> None:
    store.append([record(A, 0, 50), record(B, 0, 50)])
    batch = store.read({A: Mark(10)}, {A: Mark(20), B: Mark(3)})
    assert numbers(batch) == {A: list(range(10, 20)), B: [0, 1, 2]}
    assert batch.vector == {A: Mark(20), B: Mark(3)}
    assert store.read(batch.vector, {A: Mark(20), B: Mark(3)}).slices == []


def test_a_range_with_a_hole_is_read_up_to_it(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 3, 2)])
    batch = store.read({}, {A: Mark(5)})
    assert numbers(batch) == {A: [0, 1]}
    assert batch.vector == {A: Mark(2)}


def test_a_reader_that_fixes_the_end_is_not_starved_by_a_fast_publisher(store: Store) -> None:
    store.append([record(A, 0, 10), record(B, 0, 10)])
    to, vector, got = store.vector(), dict[Stream, Mark](), list[Publication]()
    for turn in range(10):
        store.append([record(A, 10 + 10 * turn, 10)])
        batch = store.read(vector, to, limit=4)
        vector, got = batch.vector, got + batch.publications()
    assert [row.sequence for row in got if row.publisher == 2] == list(range(10))


def test_a_batch_is_bounded_in_bytes_and_a_larger_record_comes_alone(store: Store) -> None:
    store.append([record(A, n) for n in range(10)])
    assert numbers(store.read({}, size=2 * len(record(A).data))) == {A: [0, 1]}
    assert numbers(store.read({}, size=1)) == {A: [0]}


def test_streams_without_a_mark_begin_at_the_floor(store: Store) -> None:
    store.append([record(A, n, time=NOW + n) for n in range(10)])
    store.append([record(B, 0, 3, time=NOW)])
    batch = store.read({}, floor=NOW + 4)
    assert numbers(batch) == {A: [4, 5, 6, 7, 8, 9]}
    assert batch.vector == {A: Mark(10)}, "of B nothing is read, and nothing passed"
    store.append([record(B, 3, time=NOW + 5)])
    assert numbers(store.read(batch.vector, floor=NOW + 4)) == {B: [3]}
    assert numbers(store.read({A: Mark(8), B: Mark(1)}, floor=NOW + 4)) == {A: [8, 9], B: [1, 2, 3]}


def test_what_a_longer_record_covers_is_older_than_the_floor_too(store: Store) -> None:
    store.append([record(A, 0, 9), record(A, 2, 2, text="!"), record(A, 9, time=NOW + 2)])
    assert numbers(store.read({}, floor=NOW + 1)) == {A: [9]}


def test_a_hole_before_the_floor_is_not_passed_for_it_may_be_young(store: Store) -> None:
    store.append([record(A, 0, 2, time=NOW), record(A, 3, time=NOW + 9)])
    batch = store.read({}, floor=NOW + 5)
    assert (numbers(batch), batch.vector) == ({}, {})
    store.append([record(A, 2, time=NOW + 8)])
    assert numbers(store.read(batch.vector, floor=NOW + 5)) == {A: [2, 3]}


def test_a_store_that_lacks_the_beginning_reads_from_the_floor_when_it_has_it(store: Store) -> None:
    store.append([record(A, 5, 5, time=NOW + 9)])
    assert numbers(store.read({}, floor=NOW + 5)) == {}
    store.append([record(A, 0, 5, time=NOW)])
    assert numbers(store.read({}, floor=NOW + 5)) == {A: [5, 6, 7, 8, 9]}


def test_only_the_streams_named_are_looked_at_in_that_order(store: Store) -> None:
    store.append([record(A, 0, 3), record(B, 0, 3), record(stream(3), 0, 3)])
    batch = store.read({}, only=[stream(3), A, stream(9)])
    assert list(numbers(batch)) == [stream(3), A]
    assert batch.vector == {stream(3): Mark(3), A: Mark(3)}


def test_the_front_is_behind_all_that_is_here_holes_included(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 5, 2), record(B, 0, 3)])
    assert store.front() == {A: Mark(7), B: Mark(3)}
    assert store.vector() == {A: Mark(2), B: Mark(3)}


def test_a_batch_says_whether_there_is_more(store: Store) -> None:
    store.append([record(A, 0, 5)])
    assert store.read({}, limit=4).more
    assert not store.read({}, limit=5).more
    assert not store.read({A: Mark(5)}).more


def test_a_vector_never_passes_a_number_that_may_still_come(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 3, 2)])
    assert store.vector() == {A: Mark(2)}
    batch = store.read({})
    assert numbers(batch) == {A: [0, 1]}
    for _ in range(20):
        assert store.read(batch.vector).slices == []
    store.append([record(A, 2)])
    assert numbers(store.read(batch.vector)) == {A: [2, 3, 4]}


def test_a_reader_that_skips_a_number_gets_it_late(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 4, 2)])
    vector = skip(store.read({}).vector, A, 4)
    batch = store.read(vector)
    assert numbers(batch) == {A: [4, 5]}
    assert batch.vector == {A: Mark(6, ((2, 4),))}
    store.append([record(A, 2)])
    batch = store.read(batch.vector)
    assert [(part.late, part.lo, part.hi) for part in batch.slices] == [(True, 2, 3)]
    assert batch.vector == {A: Mark(6, ((3, 4),))}
    assert store.read(batch.vector).slices == []


def test_what_was_skipped_is_let_go_when_it_is_expired(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 4, 2)])
    vector = store.read(skip({}, A, 4)).vector
    store.append([record(A, 6, low=4)])
    assert store.read(vector).vector == {A: Mark(7)}


def test_a_hole_ends_where_the_publisher_vouches_no_longer(store: Store) -> None:
    store.append([record(A, 0, 2), record(A, 5, 2, low=4)])
    assert store.vector() == {A: Mark(4)}
    store.append([record(A, 7, 1, low=5)])
    assert store.vector() == {A: Mark(8)}
    assert numbers(store.read({})) == {A: [0, 1, 5, 6, 7]}


def test_a_hole_ends_when_a_later_number_is_too_old(store: Store) -> None:
    store.append([record(A, 0), record(A, 2, time=NOW + 1), record(A, 4, time=NOW + 9)])
    assert store.vector() == {A: Mark(1)}
    store.show(Window(lo=NOW + 5))
    assert store.vector() == {A: Mark(3)}
    lacks = store.lacks({}, {A: Mark(5)})
    assert lacks.expired == {A: [(0, 3)]}
    assert lacks.coming == {A: [(3, 4)]}


def test_within_one_second_a_count_drops_numbers_but_no_hole(store: Store) -> None:
    """By key the second record may go first: what is missing below it may still be kept."""
    records = [record(A, n, text=f"{x}") for n in (1, 2, 3) for x in range(40)]
    middle = min((r for r in records if r.first == 2), key=lambda r: r.key)
    sides = [max((r for r in records if r.first == n), key=lambda r: r.key) for n in (1, 3)]
    store.show(Window(limit=2))
    store.purge([])
    store.append([middle, *sides])
    assert middle.place not in store
    assert store.vector() == {}
    assert numbers(store.read(skip({}, A, 1))) == {A: [1, 3]}
    store.append([record(A, 4, 2, time=NOW + 1)])
    assert store.vector() == {}, "number 0 could be of the second that is not wholly dropped"
    store.append([record(A, 6, 2, time=NOW + 2)])
    assert store.vector() == {A: Mark(8)}


def test_a_store_says_which_part_of_a_range_it_lacks(store: Store) -> None:
    store.append([record(A, 2, 3), record(A, 7, 2)])
    lacks = store.lacks({A: Mark(1)}, {A: Mark(12), B: Mark(2)})
    assert lacks.coming == {A: [(1, 2), (5, 7), (9, 12)], B: [(0, 2)]}
    assert lacks.expired == {}


def test_reading_resumes_at_another_store_from_the_same_vector(make: Make) -> None:
    one, other = make("one"), make("other")
    records = [record(of, 3 * n, 3) for of in (A, B) for n in range(10)]
    one.append(shuffled(records, 1))
    other.append(shuffled(records, 2))
    vector, got, turn = dict[Stream, Mark](), list[Publication](), 0
    while (batch := (one, other)[turn % 2].read(vector, limit=4)).slices:
        vector, got, turn = batch.vector, got + batch.publications(), turn + 1
    assert [(row.publisher, row.sequence) for row in got] == [
        (who, n) for who in (1, 2) for n in range(30)
    ]


# Retention


@pytest.mark.parametrize(
    "short", [Window(lo=NOW + 50), Window(limit=20), Window(per_publisher=7)], ids=str
)
def test_shortening_hides_and_lengthening_brings_back(store: Store, short: Window) -> None:
    store.append([record(of, n, time=NOW + n) for of in (A, B) for n in range(100)])
    everything, digest = store.read({}), store.digest(0, NOW + 1000)
    store.purge([Window()])
    store.show(short)
    shown = len(store)
    assert 0 < shown < 200
    assert store.digest(0, NOW + 1000).records == shown
    store.show(Window())
    assert store.read({}) == everything
    assert store.digest(0, NOW + 1000) == digest


def test_what_no_window_of_the_grace_shows_is_deleted(store: Store) -> None:
    records = [record(A, n, time=NOW + n) for n in range(100)]
    store.append(records)
    store.purge([Window()])
    store.show(Window(lo=NOW + 50))
    assert records[10].place in store
    store.purge([])
    assert records[10].place not in store
    store.show(Window())
    assert numbers(store.read({})) == {A: list(range(50, 100))}
    assert store.append([records[10]])[0].new == [], "deleted is not undelivered"


def test_quotas_count_what_overlaps(store: Store) -> None:
    store.show(Window(per_publisher=10))
    store.append([record(A, 0, 6, time=NOW), record(A, 0, 6, time=NOW + 1)])
    assert len(store) == 12
    store.append([record(A, 0, 4, time=NOW + 2)])
    assert [r.time for r in store.get(store.places(0, NOW + 9))] == [NOW + 1, NOW + 2]


def test_stores_that_merge_in_any_order_keep_the_same(make: Make) -> None:
    window = Window(NOW + 1, limit=9, per_publisher=6)
    for seed in range(12):
        random = Random(seed)
        records = list({r.place: r for r in (any_record(random) for _ in range(30))}.values())
        kept = []
        for turn in range(4):
            one, other = make(f"one {seed} {turn}"), make(f"other {seed} {turn}")
            mixed = shuffled(records, turn)
            for store, half in ((one, mixed[:15]), (other, mixed[15:])):
                store.show(window)
                store.append(half)
            one.append(shuffled(other.get(other.places(0, NOW + 99)), turn))
            kept.append(one.places(0, NOW + 99))
        assert all(places == kept[0] for places in kept), seed


def test_streams_are_forgotten_when_nothing_is_held_of_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.show(Window(lo=NOW))
    store.append([record(A, 0, time=NOW), record(B, 0, time=NOW + 50)])
    store.show(Window(lo=NOW + 10))
    store.purge([])
    store.forget(NOW + 20)
    assert len(store.delivered) == 1
    assert list(store.vector()) == [B]
    monkeypatch.setattr(positions, "STREAMS_MAX", 3)
    store.append([record(stream(9, n), 0, 100, time=NOW + 20) for n in range(10)])
    store.show(Window(lo=NOW + 10, limit=1))
    store.purge([])
    store.forget(0)
    assert len(store.delivered) == 3


def test_a_topic_refuses_more_records_than_it_can_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "RECORDS_MAX", 3)
    store.append([record(A, n) for n in range(2)])
    with pytest.raises(CapacityExceeded, match="shorten its retention"):
        store.append([record(A, 2), record(A, 3)])
    assert len(store) == 2


# Durability


def test_commit_says_when_all_that_was_appended_is_durable(store: Store) -> None:
    store.append([record(A, 0, 3)])
    assert numbers(store.read({})) == {A: [0, 1, 2]}, "visible before it is durable"
    commit(store)
    assert numbers(store.read({})) == {A: [0, 1, 2]}
    commit(store)


def test_an_audit_finds_nothing_wrong_with_a_sound_store(store: Store) -> None:
    store.append([record(A, n, time=NOW + n) for n in range(30)])
    before = store.read({}), store.digest(0, NOW + 99), store.vector()
    assert [store.audit(7) for _ in range(11)] == [0] * 11
    assert (store.read({}), store.digest(0, NOW + 99), store.vector()) == before
    assert LIMIT_MAX > 2**60


def test_an_audit_mends_what_memory_says_of_records(store: Store) -> None:
    store.append([record(A, 4 * n, 4, time=NOW + n) for n in range(30)])
    before = store.read({}), store.digest(0, NOW + 99), store.vector(), len(store)
    entry = store.index.shown[store.index.order[7]]
    entry.end -= 2
    store.index.sort()
    assert store.vector() != before[2]
    assert sum(store.audit(7) for _ in range(5)) == 1
    assert (store.read({}), store.digest(0, NOW + 99), store.vector(), len(store)) == before


def test_a_stream_of_which_only_expired_records_came_is_forgotten(store: Store) -> None:
    store.show(Window(NOW))
    for number in range(5):
        (arrival,) = store.append([record(stream(number + 10), 3, time=NOW - 1 - number)])
        assert (arrival.new, arrival.disputed) == ([], [])
    assert store.vector()[stream(10)] == Mark(4), "meanwhile it tells what is gone"
    store.forget(NOW - 1)
    assert [*store.index.lanes] == [stream(10)]
    store.forget(NOW)
    assert store.index.lanes == {}
    assert len(store.delivered) == 0
