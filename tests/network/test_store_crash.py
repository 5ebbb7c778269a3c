"""kill -9 in the middle of commits: acknowledged means on disk, the rest wholly or not at all."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import sleep

import store_child
from planaria.network.store.database import Database
from planaria.records.record import Record, Stream
from store_child import LIMIT, TIME

CHILD = Path(store_child.__file__)
KILLS, KILLS_CAMPAIGN = 10, 200


def killed(directory: Path, stream: Stream, random: Random) -> int:
    """Run a process that appends and kill it in the midst; returns the last number acknowledged."""
    command = [sys.executable, str(CHILD), str(directory), stream[1].hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = 0
        for _ in range(random.randrange(1, 60)):
            acknowledged = int(child.stdout.readline().split()[1])
        sleep(random.random() * 0.02)
        child.kill()
        rest = child.stdout.read().splitlines()
    assert child.returncode == -SIGKILL, "it was at work until then"
    whole = [line for line in rest if line.startswith("+ ")]
    return int(whole[-1].split()[1]) if whole else acknowledged


def appended(stream: Stream, before: int) -> list[list[Record]]:
    """All appends that the process can have made, in order, up to one beyond `before`."""
    batches, first = [], 0
    while first < before:
        batches.append(store_child.records(stream, first))
        first = batches[-1][-1].end
    return batches


def test_acknowledged_is_on_disk_and_the_rest_is_whole_or_absent(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    said: list[str] = []
    for seed in range(seeds(KILLS, KILLS_CAMPAIGN)):
        random = Random(seed)
        stream = 1, seed.to_bytes(4, "big") + random.randbytes(8)
        acknowledged = killed(tmp_path, stream, random)
        with Database(tmp_path, said.append) as database:
            store = database.topic("news")
            held = [store.index.shown[place] for place in store.places(0, TIME + 10**6)]
            mine = [entry for entry in held if entry.stream == stream]
            found = store.get([entry.place for entry in mine])
            assert len(found) == len(mine), "every head has its body"
            end = max(one.end for one in found)
            assert end >= acknowledged
            assert store.vector()[stream].next == end
            written = [one for batch in appended(stream, end) for one in batch]
            assert written[-1].end == end, "the last append is whole"
            lowest = held[0].place if len(store) >= LIMIT else 0
            assert {*found} == {one for one in written if one.place >= lowest}
            assert all(arrival.new == [] for arrival in store.append(written))
    assert said == []
