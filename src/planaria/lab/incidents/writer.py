"""A process that appends to a store until it is killed, and says what is on disk.

python -m planaria.lab.incidents.writer DIRECTORY
"""

import os
import sys
from itertools import count

from planaria.network.store.database import Database
from planaria.protocols.skipring.overlay import TOPIC
from planaria.records.record import INCARNATION_BYTES, Draft, seal


def main() -> None:
    """Append numbers, one after the other; write each to standard output once it is on disk."""
    store = Database(sys.argv[1]).topic(TOPIC)
    for number in count():
        store.append([seal((1, bytes(INCARNATION_BYTES)), number, [Draft(b"%d" % number)], time=1)])

        def committed(error: Exception | None, number: int = number) -> None:
            if error is None:
                os.write(1, b"%d\n" % number)

        store.commit(committed)


if __name__ == "__main__":
    main()
