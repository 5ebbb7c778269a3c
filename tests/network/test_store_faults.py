"""Faults in memory, with the store on disk: no record is lost that the disk has."""

from pathlib import Path

import pytest

from antientropy_lab import TOPIC, Channel, bodies, held, record
from planaria.core.chance import stream
from planaria.lab.incidents.disk_ring import commit
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE, _for_reading
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.skipring.arbitrary_history import corrupt_caches
from planaria.records.window import Window


def on_disk(
    path: Path, id: int, numbers: list[int], said: list[str]
) -> tuple[AntiEntropy, Database]:
    database = Database(path, said.append)
    holdings = Holdings(database.topic(TOPIC))
    holdings.append([record(number, time=3 + number % 3) for number in numbers])
    return AntiEntropy(TOPIC, id, holdings), database


@pytest.mark.parametrize("part", range(3))
def test_stores_on_disk_with_corrupted_memory_end_equal_and_lose_nothing(
    part: int, tmp_path: Path
) -> None:
    for seed in range(part, 24, 3):
        chance = stream(seed, "corrupt on disk")
        numbers = [chance.sample(range(200), chance.randrange(1, 120)) for _ in range(2)]
        said: list[str] = []
        (one, first), (two, second) = (
            on_disk(tmp_path / f"{seed}-{id}", id, numbers[id - 1], said) for id in (1, 2)
        )
        with first, second:
            for each in (one, two):
                if chance.random() < 0.8:
                    corrupt_caches(each, (1, 2, 3), chance)
            channel = Channel(one, two)
            for _ in range(60):
                channel.interval()
            wanted = sorted({record(n, time=3 + n % 3).place for n in numbers[0] + numbers[1]})
            assert held(one) == held(two) == wanted, seed
            assert bodies(one) == bodies(two), seed
            assert said == [], seed


@pytest.mark.parametrize("settled", [False, True])
def test_memory_that_names_a_false_place_or_row_costs_no_record_on_disk(
    settled: bool, tmp_path: Path
) -> None:
    said: list[str] = []
    one, database = on_disk(tmp_path, 1, list(range(40)), said)
    database.topic("another").append([record(4711)])
    with database:
        before, store = bodies(one), one.holdings.store
        if settled:
            commit(store)
        entries = list(store.index.shown.values())
        places = {entry.place for entry in entries[:3]}
        for entry in entries[:3]:
            entry.place ^= 1
        assert bodies(one) == before, "mended where it is read"
        entries[5].row, entries[6].row, entries[7].row = entries[20].row, 41, 1 << 70
        for _ in range(20):
            one.on_timeout()
        one.holdings.read({})
        assert places <= {*held(one)}
        assert said == []
    again, database = on_disk(tmp_path, 1, [], said)
    with database:
        assert bodies(again) == before
        assert said == []


@pytest.mark.parametrize("written", [False, True])
def test_retention_with_a_false_row_in_memory_deletes_no_other_record(
    written: bool, tmp_path: Path
) -> None:
    said: list[str] = []
    with Database(tmp_path, said.append) as database:
        store, other = database.topic("news"), database.topic("another")
        other.append([record(4711)])
        store.append([record(number, time=number + 1) for number in range(40)])
        if written:
            commit(store)
        entries = {entry.first: entry for entry in store.index.shown.values()}
        (foreign,) = other.index.shown.values()
        entries[0].row, entries[1].row = entries[30].row, foreign.row
        entries[2].row, entries[3].row = 1 << 70, -1
        store.show(Window(lo=20))
        store.purge([Window(lo=20)])
        commit(store)
        assert said == []
    with Database(tmp_path, said.append) as database:
        store = database.topic("news")
        kept = {entry.first for entry in store.index.shown.values()}
        assert kept >= {*range(19, 40)}, "what retention keeps"
        assert kept <= {*range(19, 40), 0, 1, 2, 3}, "and of what it deletes no more than this"
        assert len(database.topic("another").index.shown) == 1


def test_what_another_topic_has_is_not_read_where_one_is_mended(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        store, other = database.topic("news"), database.topic("another")
        other.append([record(4711)])
        store.append([record(1), record(2)])
        commit(store)
        store.append([record(3)])
        store.index.shown.clear()
        store.mend()
        assert len(store.index.shown) == 3
        seen: list[str] = []
        database.reading.set_trace_callback(seen.append)
        store.mend()
        database.reading.set_trace_callback(None)
        assert all("WHERE substr(head, 1, 8) = " in it for it in seen if "head FROM" in it)
        assert len(other.index.shown) == 1


def test_a_store_whose_schema_is_no_text_starts_anew(tmp_path: Path) -> None:
    """SQLite quotes the damage when it complains, and Python cannot read that: no SQLite error."""
    with Database(tmp_path) as database:
        database.topic(TOPIC)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE records", b"CR\xc1ATE TABLE records"))
    said: list[str] = []
    assert _for_reading(path, said.append, "is read-only").writing is None
    with Database(tmp_path, said.append) as database:
        assert database.writer is not None
    assert "is damaged (its schema is no text); 0 records kept" in said[1]
