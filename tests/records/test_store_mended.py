"""What is derived from records is mended; what a setting hides comes back with another."""

import pytest

from planaria.lab.incidents.disk_ring import commit
from planaria.protocols.publications.holdings import Holdings
from planaria.records.memory import MemoryStore
from planaria.records.positions import Mark
from planaria.records.record import RECORD_KEY_BITS
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import NOW, A, B, numbers, record

pytest_plugins = ("record_stores",)


def test_an_audit_mends_what_is_derived(store: Store) -> None:
    store.append([record(A, 4 * n, 4, time=NOW + n) for n in range(30)])
    before = store.read({}), store.digest(0, NOW + 99), store.vector(), len(store)
    store.index.order.reverse()
    store.index.sums.add(12345, 1)
    store.index.lanes[A].covered.remove(3, 50)
    store.index.publications = -1
    store.audit(1)
    assert (store.read({}), store.digest(0, NOW + 99), store.vector(), len(store)) == before


def test_what_a_shorter_setting_pushes_out_comes_back_with_the_longer_one(store: Store) -> None:
    """A full topic goes on while the setting is short: nothing of the longer one is deleted."""
    store.show(Window(limit=10))
    store.append([record(A, number, time=NOW + number) for number in range(10)])
    store.show(Window(limit=3))
    store.purge([Window(limit=10)])
    store.append([record(A, number, time=NOW + number) for number in range(10, 15)])
    assert numbers(store.read({})) == {A: [12, 13, 14]}
    store.show(Window(limit=10))
    assert numbers(store.read({})) == {A: list(range(5, 15))}


def test_an_entry_that_is_not_where_it_says_is_told_instead_of_read_for_ever() -> None:
    store = MemoryStore()
    store.append([record(A, 0), record(A, 1)])
    next(iter(store.index.shown.values())).place ^= 1  # a fault in memory
    with pytest.raises(ValueError, match="not where it says"):
        store.read({})
    store.mend()
    assert numbers(store.read({})) == {A: [0, 1]}


def test_what_arrived_before_a_contradiction_is_told_when_it_is_mended(store: Store) -> None:
    store.append([record(A, 0), record(B, 0)])
    store.index.lanes[B].covered._ends.clear()  # a fault in memory
    holdings = Holdings(store)
    batch = [record(A, 1), record(B, 1), record(A, 2)]
    arrivals = holdings.append(batch)
    assert holdings.mended == 1
    new = [(it.record.stream, it.new) for it in arrivals if it.new]
    assert new == [(A, [(1, 2)]), (B, [(1, 2)]), (A, [(2, 3)])]
    assert [it.new for it in holdings.append(batch)] == [[], [], []]
    assert numbers(store.read({})) == {A: [0, 1, 2], B: [0, 1]}


@pytest.mark.parametrize("change", [-1, 1, 1 << 40])
def test_what_an_entry_says_falsely_of_its_record_is_not_read(store: Store, change: int) -> None:
    """A reader would be given numbers that the record does not have."""
    store.append([record(A, 0, 4), record(A, 4, 4), record(A, 8, 4)])
    entry = store.index.lanes[A].entries[1]
    commit(store)

    def falsify() -> None:
        entry.end += change
        store.index.sort()

    falsify()
    assert numbers(store.read({})) == {A: list(range(12))}
    falsify()
    slices, mark = store.follow(A, Mark(0))
    assert [(it.lo, it.hi) for it in slices] == [(0, 4), (4, 8), (8, 12)]
    assert mark == Mark(12)
    falsify()
    found = store.at(A, 6)
    assert found is not None
    assert found.sequence == 6
    falsify()
    assert store.at(A, 12) is None


@pytest.mark.parametrize("window", [Window(limit=4), Window(lo=NOW + 5), Window(per_publisher=4)])
@pytest.mark.parametrize("hidden", [True, False])
def test_numbers_that_a_fault_gave_an_entry_are_not_taken_for_gone(
    store: Store, window: Window, *, hidden: bool
) -> None:
    """Readers would pass all that its publisher has yet to say."""
    holdings = Holdings(store)
    holdings.append([record(A, 4 * n, 4, time=NOW + n) for n in range(8)])
    commit(store)
    entry = store.index.lanes[A].entries[1]
    if hidden:
        holdings.purge([Window()])
        holdings.show(window)
        entry.end += 1 << 40
    else:
        entry.end += 1 << 40
        holdings.show(window)
    holdings.purge([])
    assert holdings.mended == 1
    assert holdings.ask(Store.vector) == {A: Mark(32)}
    holdings.append([record(A, 32, 4, time=NOW + 9)])
    assert holdings.read({A: Mark(32)}).vector == {A: Mark(36)}


@pytest.mark.parametrize("hidden", [True, False])
def test_an_entry_that_a_fault_made_older_is_not_taken_for_aged(
    store: Store, *, hidden: bool
) -> None:
    holdings = Holdings(store)
    holdings.append([record(A, n, time=NOW + n) for n in range(8)])
    commit(store)
    entry = store.index.lanes[A].entries[0 if hidden else 6]
    if hidden:
        holdings.purge([Window()])
        holdings.show(Window(lo=NOW - 9, limit=7))
    entry.place -= 100 << RECORD_KEY_BITS
    holdings.show(Window(lo=NOW - 9, limit=7))
    assert holdings.mended == (not hidden)  # what is hidden is not read: it is seen when it goes
    holdings.purge([])
    assert holdings.mended == 1
    assert numbers(holdings.read({A: Mark(1)})) == {A: [*range(1, 8)]}
