"""Faults in memory, with the store on disk: no record is lost that the disk has."""

from pathlib import Path

import pytest

from antientropy_lab import TOPIC, Channel, bodies, held, record
from planaria.core.chance import stream
from planaria.network.store.database import Database
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.skipring.arbitrary_history import corrupt_caches
from records_lab import settle


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
            settle(store)
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
