"""A process that appends to a store until it is killed, and says what was acknowledged.

    python store_child.py DIRECTORY INCARNATION

Each append is one or more records; `+ END` on standard output: all numbers below END are durable.
"""

import os
import sys

from planaria.network.store import opening
from planaria.network.store.database import Database
from planaria.records.record import Draft, Record, Stream, seal
from planaria.records.window import Window

COUNTS = (1, 5, 32, 2, 9)  # publications in a record
TIME = 1_700_000_000
LIMIT = 2_000  # publications kept


def records(stream: Stream, first: int) -> list[Record]:
    """The records that an append from this number on consists of: three, or one.

    Each incarnation, whose first bytes count processes, is later than the one before.
    """
    found = []
    for turn in range(1 + 2 * (first % 2)):
        drafts = [
            Draft(f"{number} of {stream[1].hex()}".encode() * 20)
            for number in range(first, first + COUNTS[(first + turn) % len(COUNTS)])
        ]
        time = TIME + 1000 * int.from_bytes(stream[1][:4], "big") + first // 500
        found.append(seal(stream, first, drafts, time=time))
        first += len(drafts)
    return found


def main() -> None:
    opening.CHECKPOINT_PAGES = 64  # so that a kill meets many checkpoints
    directory, incarnation = sys.argv[1:]
    stream = 1, bytes.fromhex(incarnation)
    store = Database(directory).topic("news")
    store.show(Window(limit=LIMIT))
    store.purge([])
    first = 0
    while True:
        batch = records(stream, first)
        store.append(batch)
        first = end = batch[-1].end

        def committed(error: Exception | None, end: int = end) -> None:
            assert error is None
            os.write(1, f"+ {end}\n".encode())

        store.commit(committed)


if __name__ == "__main__":
    main()
