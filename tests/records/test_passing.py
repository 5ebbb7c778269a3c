"""What a reader has passed it never asks for again: no fault in memory may make it pass anything.

Found by `planaria chaos`: a node with arbitrary memory told its clients positions that it had not
given them, and they never got what lay between.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from planaria.network.store.database import Database
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.skipring.arbitrary_holdings import corrupt_holdings, invent
from planaria.records.memory import MemoryStore
from planaria.records.positions import START, Intervals, Mark
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import A, record

COUNT = 12
RECORDS = [record(A, number) for number in range(COUNT)]


def covers(store: Store) -> None:
    store.index.lanes[A].covered = Intervals([(0, 1 << 62)])


def gone(store: Store) -> None:
    store.index.lanes[A].gone.firm = 1 << 40


def gone_last(store: Store) -> None:
    lane = store.index.lanes[A]
    lane.covered, lane.gone.last = Intervals([(0, 3)]), Intervals([(3, 1 << 40)])


def hidden(store: Store) -> None:
    store.index.lanes[A].hid.firm = 7


def longer(store: Store) -> None:
    store.index.lanes[A].entries[4].end = 1 << 40


def elsewhere(store: Store) -> None:
    store.index.lanes[A].entries[4].first = 9


def forgotten(store: Store) -> None:
    store.index.lanes[A].entries = store.index.lanes[A].entries[:5]


def expired(store: Store) -> None:
    store.index.window = Window(1 << 40)
    store.index.lanes[A].covered = Intervals()


FAULTS: list[Callable[[Store], None]] = [
    covers, gone, gone_last, hidden, longer, elsewhere, forgotten, expired,
]  # fmt: skip


@pytest.fixture(params=["memory", "disk"])
def holdings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Holdings]:
    with Database(tmp_path, lambda _: None) as database:
        store = MemoryStore() if request.param == "memory" else database.topic("news")
        yield Holdings(store)


def numbers(holdings: Holdings, after: Mark | None = None) -> tuple[list[int], int]:
    batch = holdings.read({} if after is None else {A: after})
    given = [one.sequence for one in batch.publications() if (one.publisher, one.incarnation) == A]
    return given, batch.vector.get(A, START).next


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_reader_is_given_all_that_it_passes(
    holdings: Holdings, fault: Callable[[Store], None]
) -> None:
    holdings.append(RECORDS)
    fault(holdings.store)
    given, upto = numbers(holdings)
    assert given == [*range(upto)]
    for _ in range(2 * COUNT):
        holdings.on_timeout()
    assert numbers(holdings) == ([*range(COUNT)], COUNT)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_who_follows_one_stream_is_given_all_that_it_passes(
    holdings: Holdings, fault: Callable[[Store], None]
) -> None:
    holdings.append(RECORDS)
    fault(holdings.store)
    slices, mark = holdings.follow(A, Mark(0))
    assert [number for it in slices for number in range(it.lo, it.hi)] == [*range(mark.next)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_arrives_after_a_fault_is_held(
    holdings: Holdings, fault: Callable[[Store], None]
) -> None:
    holdings.append(RECORDS[: COUNT // 2])
    fault(holdings.store)
    holdings.append(RECORDS)
    for _ in range(2 * COUNT):
        holdings.on_timeout()
    holdings.append(RECORDS)  # peers bring what memory lost
    assert numbers(holdings) == ([*range(COUNT)], COUNT)


def test_arbitrary_memory_costs_a_store_on_disk_nothing(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    """Nothing raises, and at the end all is read again from the file, without any peer."""
    for seed in range(seeds(30, 3000)):
        rng = Random(seed)
        with Database(tmp_path / str(seed), lambda _: None) as database:
            holdings = Holdings(database.topic("news"))
            holdings.append(RECORDS)
            for _ in range(3):
                corrupt_holdings(holdings, [2, 3], rng)
                invent(holdings, [2, 3], rng)
                mark = Mark(0)
                given, upto = numbers(holdings)
                assert {*range(upto)} == {*given}, seed
                holdings.follow(A, mark)
                for _ in range(40):
                    holdings.show(Window())
                    holdings.purge([Window()])
                    holdings.on_timeout()
            assert numbers(holdings) == ([*range(COUNT)], COUNT), seed
