"""The audit: whatever a fault makes of a store's variables, a pass puts it right, step by step."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.ids import mixed
from planaria.records.index import Index
from planaria.records.lanes import Drops, Entry
from planaria.records.memory import MemoryStore
from planaria.records.positions import Intervals
from planaria.records.record import Record, Stream
from planaria.records.retained import Retained
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import NOW, A, B, record, shuffled, stream

pytest_plugins = ("record_stores",)

WINDOWS = (
    Window(),
    Window(limit=25),
    Window(NOW + 2, 30, 12),
    Window(NOW + 4),
)
ROOMY = Window(NOW - 10, 40, 30)  # what is hidden is kept for it


def filled(store: Store, window: Window) -> None:
    """Three streams, overlaps, a hole, records hidden and records dropped."""
    store.show(Window(limit=60))
    store.purge([])
    records = [record(A, n, 2, time=NOW + n // 4, low=n // 2) for n in range(0, 24, 2)]
    records += [record(B, n, 3, time=NOW + n // 6) for n in range(0, 30, 3) if n != 9]
    records += [record(B, 4, 5, time=NOW + 3, text="!")]
    records += [record(stream(3), n, 1, time=NOW + n) for n in range(12)]
    for one in shuffled(records, 4):
        store.append([one])
    store.show(window)
    store.purge([ROOMY])


def said(store: Store) -> list[object]:
    """All that a store says of what it holds, shows and waits for."""
    index = store.index
    return [
        list(index.order), sorted(index.hidden), len(store), index.bytes, store.vector(),
        store.read({}).publications(), store.lacks({}, store.vector()),
        store.digest(0, NOW + 100), [store.digest(NOW + n, NOW + 100) for n in range(12)],
        index.capped, {who: ([*it[0]], it[1]) for who, it in index.quotas.items()},
        {name: (lane.floor, [*lane.covered]) for name, lane in index.lanes.items()},
        store.retained(), store.low(A), store.low(B),
    ]  # fmt: skip


def passes(store: Store, limit: int, times: int = 1) -> int:
    """So many passes, in calls of `limit`; the repairs."""
    repairs = 0
    for _ in range(times):
        for _ in range(10_000):
            repairs += store.audit(limit)
            if store._audit.begins:
                break
        else:
            raise AssertionError("a pass does not end")
    return repairs


def _drop_order(index: Index, random: Random) -> None:
    index.order.pop(random.randrange(len(index.order)))


def _swap_order(index: Index, random: Random) -> None:
    at = random.randrange(len(index.order) - 1)
    index.order[at : at + 2] = reversed(index.order[at : at + 2])


def _invent_order(index: Index, random: Random) -> None:
    index.order[random.randrange(len(index.order))] ^= 1


def _publications(index: Index, random: Random) -> None:
    index.publications += random.choice([-1, 1, 7])


def _bytes(index: Index, random: Random) -> None:
    index.bytes += random.choice([-1, 1, 1 << 40])


def _capped(index: Index, random: Random) -> None:
    index.capped -= random.choice([-1, 1, 7])


def _quota_sums(index: Index, random: Random) -> None:
    """Sums that are false but add up."""
    if len(index.quotas) < 2:
        _capped(index, random)
        return
    (a, (places, one)), (b, (others, two)) = random.sample(sorted(index.quotas.items()), 2)
    index.quotas[a], index.quotas[b] = (places, one + 1), (others, two - 1)


def _quota_places(index: Index, random: Random) -> None:
    if not index.quotas:
        _publications(index, random)
        return
    places, _ = index.quotas[random.choice(sorted(index.quotas))]
    places[random.randrange(len(places))] -= 1


def _total(index: Index, random: Random) -> None:
    keys, count = index.sums._total
    index.sums._total = random.choice([(keys + 1, count), (keys, count + 1)])


def _second(index: Index, random: Random) -> None:
    """One second too much and another too little: the total is right."""
    a, b = random.sample(sorted(index.sums._seconds), 2)
    for name, by in ((a, 1), (b, -1)):
        keys, count = index.sums._seconds[name]
        index.sums._seconds[name] = (keys + by, count)


def _times(index: Index, random: Random) -> None:
    index.sums._times.pop(random.randrange(len(index.sums._times)))


def _covered(index: Index, random: Random) -> None:
    lane = index.lanes[random.choice(index.names)]
    lo, hi = random.choice([*lane.covered])
    if random.randrange(2):
        lane.covered.remove(random.choice([lo, hi - 1]), hi)
    else:
        lane.covered.add(*random.choice([(hi, hi + 1), (90, 95)]))


def _entries(index: Index, random: Random) -> None:
    lane = index.lanes[random.choice([A, B])]
    lane.entries.pop(random.randrange(len(lane.entries)))


def _foreign_entry(index: Index, random: Random) -> None:
    index.lanes[A].entries.append(Entry(5, A, 100, 101, 9))


def _lane_order(index: Index, random: Random) -> None:
    index.lanes[B].entries.reverse()


def _lane_stream(index: Index, random: Random) -> None:
    index.lanes[A].stream = B


def _names(index: Index, random: Random) -> None:
    index.names.pop(random.randrange(len(index.names)))


def _hid(index: Index, random: Random) -> None:
    index.lanes[random.choice([A, B])].hid.firm += random.choice([-1, 7, 1 << 40])


def _hide(index: Index, random: Random) -> None:
    """Shown and hidden at once."""
    place = random.choice(index.order)
    index.hidden[place] = index.shown[place]


def _entry_place(index: Index, random: Random) -> None:
    index.shown[random.choice(index.order)].place += 1


def _entry_numbers(index: Index, random: Random) -> None:
    entry = index.shown[random.choice(index.order)]
    entry.first, entry.end = entry.first + 50, entry.end + 50


def _entry_negative(index: Index, random: Random) -> None:
    entry = index.shown[random.choice(index.order)]
    entry.first, entry.end = -(1 << 31), -(1 << 62)
    index.sort()  # by which it looks as if it belonged there


def _entry_huge(index: Index, random: Random) -> None:
    index.shown[random.choice(index.order)].end = 1 << 70
    index.sort()


def _entry_stream(index: Index, random: Random) -> None:
    index.shown[random.choice(index.order)].stream = stream(9)


def _hidden_place(index: Index, random: Random) -> None:
    held = index.hidden or index.shown
    held[random.choice(sorted(held))].place -= 1


FAULTS = (
    _drop_order, _swap_order, _invent_order, _publications, _bytes, _capped, _quota_sums,
    _quota_places, _total, _second, _times, _covered, _entries, _foreign_entry, _lane_order,
    _lane_stream, _names,
    _hid, _hide, _entry_place, _entry_numbers, _entry_negative, _entry_huge, _entry_stream,
    _hidden_place,
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pass_puts_right_what_a_fault_changed(
    fault: Callable[[Index, Random], None], make: Callable[[str], Store]
) -> None:
    for turn, window in enumerate(WINDOWS):
        store = make(f"{fault.__name__}/{turn}")
        filled(store, window)
        before = said(store)
        random = Random(turn)
        for limit in (1, 3, 1000):
            fault(store.index, random)
            assert passes(store, limit, 2) > 0, (window, limit)
            assert said(store) == before, (window, limit)
            assert passes(store, limit) == 0


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_nothing_is_repaired_where_nothing_is_wrong(
    limit: int, make: Callable[[str], Store]
) -> None:
    for turn, window in enumerate(WINDOWS):
        store = make(f"sound/{turn}")
        filled(store, window)
        assert passes(store, limit, 3) == 0
        for number in range(24, 60, 2):  # and while records come and go
            store.append([record(A, number, 2, time=NOW + number // 4, low=number // 2)])
            assert store.audit(limit) == 0


@pytest.mark.parametrize("firm", [0, 3, 1 << 70, -(1 << 63)])
def test_false_memory_of_what_is_gone_is_forgotten(firm: int, make: Callable[[str], Store]) -> None:
    """Where nothing is dropped it settles nothing; elsewhere readers begin at what is shown."""
    for turn, window in enumerate((Window(), Window(limit=6))):
        store = make(f"gone/{turn}")
        store.show(window)
        store.purge([])
        held = [record(A, n, 1, time=NOW + n) for n in range(10) if n != 7]
        store.append(held)
        true = store.vector()
        assert true[A].next == 7
        lane = store.index.lanes[A]
        lane.gone.firm = firm
        lane.gone.last = Intervals([(7, 8)])
        assert passes(store, 4) > 0
        assert store.vector() == true
        assert store.read({}).vector == true


def test_a_false_memory_is_not_made_true_by_what_comes_next(make: Callable[[str], Store]) -> None:
    store = make("laundered")
    store.show(Window(limit=4))
    store.purge([])
    store.append([record(A, n, 1, time=NOW + n) for n in (0, 1, 2, 3, 4, 6)])
    store.index.lanes[A].gone.firm = 1 << 40
    store.append([record(A, 7, 1, time=NOW + 7)])  # drops another
    assert store.vector()[A].next == 5
    store.show(Window(limit=9))
    store.purge([])
    store.index.lanes[A].gone = Drops(1)
    store.index.lanes[A].gone.check += 1
    store.append([record(A, 8, 1, time=NOW + 8, low=2)])  # vouches
    assert store.vector()[A].next == 5


def test_what_publishers_vouched_away_comes_back_after_a_fault(
    make: Callable[[str], Store],
) -> None:
    store = make("vouched")
    store.append([record(A, 5, 2, low=5), record(A, 7, 1, low=3)])
    store.index.lanes[A].gone = Drops(2)
    assert store.vector()[A].next == 2
    passes(store, 1, 2)
    assert store.vector()[A].next == 8


def test_false_entries_of_what_is_last_are_made_anew() -> None:
    store = MemoryStore()
    store.append([record(A, n, 1, time=NOW + n, keys=[b"x"]) for n in range(4)])
    store.retained(b"x")
    store._retained = Retained([])
    passes(store, 2, 2)
    found = store.retained(b"x")
    assert found is not None
    assert found.sequence == 3


def test_a_call_looks_at_few_records_whatever_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call divides all anew while nothing is wrong, and none reads more than it may."""
    store = MemoryStore()
    streams = [stream(number) for number in range(7)]
    store.append([record(of, n, 1, time=NOW + n // 9) for n in range(150) for of in streams])
    read: list[int] = []
    load = store._load

    def counted(entries: list[Entry]) -> list[Record | None]:
        read.append(len(entries))
        return load(entries)

    def never(_: Index) -> None:
        raise AssertionError("all entries were divided anew")

    monkeypatch.setattr(store, "_load", counted)
    monkeypatch.setattr(Index, "sort", never)
    seen: set[tuple[Stream, int]] = set()
    for _ in range(200):
        store.audit(8)
        seen.add((store._audit.stream, store._audit.number))
    assert max(read) == 8
    assert sum(read) >= 1050
    assert len(seen) > 100, "it goes on from where it was"


@pytest.mark.parametrize("power", [31, 61, 62, 63, 64, 100])
def test_a_check_shows_numbers_that_are_wrong_in_their_high_bits(power: int) -> None:
    for small in range(200):
        for wrong in (small + (1 << power), small - (1 << power), (1 << power) - small):
            assert mixed(7, small, 9) != mixed(7, wrong, 9)
            assert all(mixed(7, near, 9) != mixed(7, wrong, 9) for near in range(200))
