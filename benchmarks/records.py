"""Records: sealing and decoding, durable appends, reading into Arrow, memory, starting.

    python benchmarks/records.py [--json] [--quick]

Payloads of 128 bytes. CPU figures count all threads of the process.
`durable_per_s`: publications in records of 32, at most 32 records in flight, each counted when its
commit is acknowledged; `row_commit_per_s`: one publication, one record, one commit after the other;
`fdatasync_ms`: what the disk takes to make 4 KiB durable; all three in one run.
`durable_per_s_at_8_ms`: the same as `durable_per_s` with commits that take 8 ms, as on the disk
that the mark speaks of, if this one is faster.
`protocol_us_per_delivery`: CPU of a whole ring of 9 for one delivery, by publications in a record,
encoding and decoding of every message included (`benchmarks/delivery.py` has more).
`reconcile_bytes` and `reconcile_messages`: until two who hold 10^5 publications of 32 bytes, 100 of
them at one end only, hold the same; all on the wire, the mean of some runs, by publications in a
record: of them the differing records themselves are `reconcile_records_bytes`.
`arrow_rows_per_cpu_s`: the whole history from disk in batches, checksums verified.
`bytes_per_publication`: Python's memory after a start, with history on disk.
`start_cpu_s_at_1e6`: from opening to the first answer, 10^6 publications stored in records of 32;
without --quick also 10^7, if there is time for it, and 10^6 in records of one.
`marks`: what issue 18 asks for, and whether this run has it.
"""

import argparse
import json
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from threading import Semaphore
from time import perf_counter, process_time, sleep
from typing import Any
from unittest.mock import patch

from delivery import measure as delivery

from planaria.network.store import database as stores
from planaria.network.store.database import Database
from planaria.network.store.writer import Writer
from planaria.records.arrow import to_arrow
from planaria.records.record import Draft, Record, decode, seal
from planaria.records.store import Store
from planaria.studies.skipring.antientropy import Reconciled, reconcile

STREAM = (1, bytes(12))
PAYLOAD = bytes(range(128))
NOW = 1_700_000_000
SIZES = (1, 8, 32, 128)
PACKED = (1, 2, 8, 32)  # publications in a record, of those that are reconciled
IN_FLIGHT = 32
SLOW_SECONDS = 0.008
LARGE_SECONDS = 200.0  # after which 10^7 publications are not begun: all of it ends in six minutes


def records(publications: int, size: int, first: int = 0) -> Iterator[Record]:
    drafts = [Draft(PAYLOAD)] * size
    for number in range(first, first + publications, size):
        yield seal(STREAM, number, drafts, time=NOW + number // 10_000)


def codec(size: int) -> dict[str, float]:
    """CPU microseconds per publication to seal, and to decode and take the payloads out."""
    rounds = max(1, 60_000 // size)
    before = process_time()
    sealed = list(records(rounds * size, size))
    between = process_time()
    for one in sealed:
        decode(one.data).payloads(one.first, one.end)
    after = process_time()
    each = 1e6 / (rounds * size)
    return {
        "seal": round((between - before) * each, 2),
        "decode": round((after - between) * each, 2),
    }


class SlowWriter(Writer):
    """Commits as on a disk that takes 8 ms to make something durable."""

    def _transaction(self) -> Exception | None:
        begin = perf_counter()
        error = super()._transaction()
        sleep(max(0.0, begin + SLOW_SECONDS - perf_counter()))
        return error


def durable(store: Store, publications: int, size: int, in_flight: int) -> float:
    """Publications acknowledged in a second."""
    room = Semaphore(in_flight)
    failed: list[Exception] = []

    def done(error: Exception | None) -> None:
        if error is not None:
            failed.append(error)
        room.release()

    begin = perf_counter()
    for one in records(publications, size):
        room.acquire()
        store.append([one])
        store.commit(done)
    for _ in range(in_flight):
        room.acquire()
    if failed:
        raise failed[0]
    return publications / (perf_counter() - begin)


def fdatasync_ms(directory: Path) -> float:
    with (directory / "sync").open("wb", buffering=0) as file:
        begin = perf_counter()
        for _ in range(50):
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
        return (perf_counter() - begin) / 50 * 1e3


def appends(root: Path, quick: bool) -> dict[str, int]:
    """Publications a second: in groups, one by one, and in groups on a slow disk."""
    publications = 32 * 1_000 if quick else 32 * 10_000
    with Database(root / "appends") as database:
        many = durable(database.topic("many"), publications, 32, IN_FLIGHT)
        one = durable(database.topic("one"), 200 if quick else 1_000, 1, 1)
    with patch.object(stores, "Writer", SlowWriter), Database(root / "slow") as database:
        slow = durable(database.topic("many"), publications, 32, IN_FLIGHT)
    return {
        "durable_per_s": round(many),
        "row_commit_per_s": round(one),
        "durable_per_s_at_8_ms": round(slow),
    }


def fill(directory: Path, publications: int, size: int) -> None:
    with Database(directory) as database:
        durable(database.topic("news"), publications, size, 4096)


def start_cpu_s(directory: Path) -> float:
    before = process_time()
    with Database(directory) as database:
        database.topic("news").vector()
        return process_time() - before


def memory(directory: Path) -> float:
    """Bytes of Python's memory per publication that is on disk."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    with Database(directory) as database:
        store = database.topic("news")
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return used / len(store)


def arrow_rows_per_cpu_s(directory: Path) -> float:
    with Database(directory) as database:
        store = database.topic("news")
        to_arrow(store.read({}, limit=1).slices)  # imports
        rows, vector = 0, store.read({}, limit=1).vector
        before = process_time()
        while (batch := store.read(vector, limit=32_768)).slices:
            rows += to_arrow(batch.slices).num_rows
            vector = batch.vector
        return rows / (process_time() - before)


def reconciled(size: int, seeds: int) -> list[Reconciled]:
    """10^5 publications in records of `size`, about 100 of them at one end only."""
    runs = [
        reconcile("sketch", 100_000 // size, -(-100 // size), seed, size) for seed in range(seeds)
    ]
    assert all(run.equal for run in runs)
    return runs


def measure(quick: bool) -> dict[str, Any]:
    begin = perf_counter()
    found: dict[str, Any] = {"codec_us_per_publication": {size: codec(size) for size in SIZES}}
    repeat = 2 if quick else 5
    found["protocol_us_per_delivery"] = {
        size: delivery(9, 2048, len(PAYLOAD), size, repeat)["us"] for size in SIZES
    }
    runs = {size: reconciled(size, 1 if quick else 5) for size in PACKED}
    for name, of in (
        ("reconcile_bytes", "bytes"),
        ("reconcile_records_bytes", "payload"),
        ("reconcile_messages", "messages"),
    ):
        found[name] = {
            size: round(mean(getattr(run, of) for run in each)) for size, each in runs.items()
        }
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        found["fdatasync_ms"] = round(fdatasync_ms(root), 2)
        found |= appends(root, quick)
        fill(root / "small", 32 * 2_000, 32)
        found["bytes_per_publication"] = round(memory(root / "small"), 1)
        fill(root / "million", 1_000_000, 32)
        size = sum(file.stat().st_size for file in (root / "million").iterdir())
        found["disk_bytes_per_publication"] = round(size / 1_000_000, 1)
        found["arrow_rows_per_cpu_s"] = round(arrow_rows_per_cpu_s(root / "million"))
        found["start_cpu_s_at_1e6"] = round(start_cpu_s(root / "million"), 2)
        if not quick:
            fill(root / "single", 1_000_000, 1)
            found["start_cpu_s_at_1e6_records_of_1"] = round(start_cpu_s(root / "single"), 2)
            if perf_counter() - begin < LARGE_SECONDS:
                fill(root / "large", 10_000_000, 32)
                found["start_cpu_s_at_1e7"] = round(start_cpu_s(root / "large"), 2)
    return found


def marks(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What is asked for, each with what was measured."""
    us, durable = found["protocol_us_per_delivery"], found["durable_per_s"]
    slow = found["durable_per_s_at_8_ms"]
    asked = [
        ("protocol us per delivery, records of 32", us[32], "<=", 5),
        ("the same, records of one", us[1], "<=", 30),
        ("records of one, in those of 32", round(us[1] / us[32], 1), ">=", 20),
        ("durable per s, commits of 8 ms", slow, ">=", 30_000),
        ("durable, in single commits", round(durable / found["row_commit_per_s"], 1), ">=", 10),
        ("rows to Arrow per CPU s", found["arrow_rows_per_cpu_s"], ">=", 1_000_000),
        ("bytes of memory per publication", found["bytes_per_publication"], "<=", 40),
        ("start with 10^6, CPU s", found["start_cpu_s_at_1e6"], "<=", 3),
    ]
    for size, messages in found["reconcile_messages"].items():
        bytes_ = found["reconcile_bytes"][size]
        asked.append((f"reconciling bytes, records of {size}", bytes_, "<=", 10_000))
        asked.append((f"reconciling messages, records of {size}", messages, "<=", 7))
    return [
        {
            "what": what,
            "measured": measured,
            "mark": f"{sign} {bound}",
            "met": measured <= bound if sign == "<=" else measured >= bound,
        }
        for what, measured, sign, bound in asked
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    options = parser.parse_args()
    found = measure(options.quick)
    asked = marks(found)
    if options.json:
        print(json.dumps({**found, "marks": asked}, indent=1))
        return
    print(__doc__)
    for name, value in found.items():
        print(f"{name:34} {value}")
    print()
    for mark in asked:
        met = "met" if mark["met"] else "NOT met"
        print(f"{mark['what']:45} {mark['measured']:>12} {mark['mark']:>12}  {met}")


if __name__ == "__main__":
    main()
