"""Which publications a later one with the same key replaced: rare turns, one by one."""

from collections.abc import Sequence

import pytest

from planaria.network.client.messages import SAME_RECORD
from planaria.network.gate.pieces import pieces_of
from planaria.records import retained
from planaria.records.batches import Slice
from planaria.records.lanes import Entry
from planaria.records.record import RECORD_KEY_BITS, Record
from planaria.records.retained import Retained
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import NOW, A, B, record

pytest_plugins = ("record_stores",)


def whole(one: Record) -> Slice:
    return Slice(one, one.first, one.end)


def last(store: Store, key: bytes) -> tuple[int, int] | None:
    found = store.retained(key)
    return found and (found.publisher, found.sequence)


def test_what_nothing_is_known_of_is_not_left_out() -> None:
    part = whole(record(A, 0, 3, keys=[b"x", None, b"x"]))
    assert Retained([]).compacted(part) == [part]


def test_of_a_key_whose_last_one_is_gone_nothing_is_left_out() -> None:
    """Another of its second may be the last, though a lower one came since."""
    known = Retained([])
    held, gone = (record(A, n, time=NOW + 2, keys=[b"x"]) for n in (4, 5))
    low = record(B, 0, time=NOW + 1, keys=[b"x"])
    for one in (held, gone):
        known.take(one, one.first, one.end)
    known.without([gone.place], gone.place >> RECORD_KEY_BITS)
    known.take(low, 0, 1)
    assert not known.knows(b"x")
    assert known.compacted(whole(held)) == [whole(held)]


def test_a_quota_takes_the_last_word_from_a_record_that_is_not_the_lowest(store: Store) -> None:
    store.show(Window(per_publisher=2))
    store.append([record(B, 0, time=NOW + 1, keys=[b"x"]), record(A, 0, time=NOW + 2, keys=[b"x"])])
    assert last(store, b"x") == (A[0], 0)
    store.append([record(A, n, time=NOW + 2 + n, keys=[b"y"]) for n in (1, 2)])
    assert last(store, b"x") == (B[0], 0)


def test_another_body_with_another_key_counts(store: Store) -> None:
    bodies = [record(A, 0, keys=[key], text=text) for key in (b"x", b"y") for text in "abcdef"]
    low = min((it for it in bodies if it.publications(0, 1)[0].key == b"x"), key=lambda r: r.place)
    high = max((it for it in bodies if it.publications(0, 1)[0].key == b"y"), key=lambda r: r.place)
    assert low.place < high.place
    store.append([low])
    assert last(store, b"x") == (A[0], 0)
    store.append([high])
    assert (last(store, b"x"), last(store, b"y")) == (None, (A[0], 0))


@pytest.mark.parametrize("first", ["low", "high"])
@pytest.mark.parametrize("text", ["a", "b", "d", "e"])  # of which either key wins two
def test_of_two_bodies_one_counts_and_nothing_is_made_anew(
    store: Store, first: str, text: str
) -> None:
    """Else a publisher that never stops to contradict itself would have its readers wait."""
    other = record(B, 0, time=NOW - 1, keys=[b"x"])
    pair = sorted(
        (record(A, 0, keys=[b"x"], text=text), record(A, 0, keys=[b"y"], text=text)),
        key=lambda it: it.place,
    )
    store.append([other, pair[first == "high"]])
    known = store.retaining()
    assert known is not None
    store.append([pair[first == "low"]])
    assert store.retaining() is known
    parts = [Slice(it, it.first, it.end) for it in (other, pair[1])]
    winner = pair[1].publications(0, 1)[0].key
    left = [run for part in parts for run in known.compacted(part)]
    assert left == parts[1:] if winner == b"x" and first == "low" else left == parts
    assert last(store, b"x") == ((A if winner == b"x" else B)[0], 0)
    assert last(store, b"y") == ((A[0], 0) if winner == b"y" else None)


def test_who_finds_damage_while_it_takes_up_the_last_record_begins_anew(store: Store) -> None:
    store.append([record(A, 0, 2, keys=[b"x", b"y"])])
    store.index.lanes[A].entries[0].end += 1
    store.index.sort()
    assert store.retaining() is None
    known = store.retaining()
    assert known is not None
    assert known.position(b"y") == (A, 1)


def test_steps_are_bounded_and_leave_out_no_record(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "STEP_RECORDS", 3)
    store.append([record(of, n, keys=[b"%d" % n]) for of in (A, B) for n in range(8)])
    sizes = list[int]()
    described = store._described

    def counted(entries: Sequence[Entry]) -> list[Record | None] | None:
        sizes.append(len(entries))
        return described(entries)

    monkeypatch.setattr(store, "_described", counted)
    while (known := store.retaining()) is None:
        pass
    assert sizes == [3, 3, 3, 3, 3, 1]
    assert [known.position(b"%d" % n) for n in range(8)] == [(B, n) for n in range(8)]


def test_a_stream_may_go_before_it_is_taken_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "STEP_RECORDS", 2)
    store.append([record(of, n, time=NOW + n, keys=[b"x"]) for of in (A, B) for n in range(2)])
    assert store.retaining() is None
    store.drop(B)
    assert last(store, b"x") == (A[0], 1)


def test_too_many_keys_are_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "RETAINED_KEYS_MAX", 2)
    store.append([record(A, n, keys=[b"%d" % n]) for n in range(9)])
    known = store.retaining()
    assert known is not None
    store.append([record(A, 9, keys=[b"9"])])
    assert (known._keys, known._owned) == ({}, {})


@pytest.mark.parametrize("signed", [False, True])
def test_what_is_left_of_a_record_travels_once(signed: bool) -> None:
    """As records of their own, or in the whole record, which is not repeated."""
    one = record(A, 0, 5, keys=[b"x", b"y", b"x", b"y", b"x"])
    other = record(A, 5, 2, keys=[b"y", None])
    known = Retained([])
    for it in (one, other):
        known.take(it, it.first, it.end)
    found = pieces_of([whole(one), whole(other)], None, "t", known, whole=signed)
    assert [(piece.lo, piece.hi) for piece in found] == [(4, 5), (5, 7)]
    more = record(A, 0, 5, keys=[b"x", b"a", b"x", b"b", b"x"])
    known = Retained([])
    known.take(more, 0, 5)
    found = pieces_of([whole(more)], None, "t", known, whole=signed)
    assert [(piece.lo, piece.hi) for piece in found] == [(1, 2), (3, 5)]
    assert (found[0].record == more.data) == signed
    assert (found[1].record == SAME_RECORD) == signed
