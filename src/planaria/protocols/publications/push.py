"""Records to be pushed, cut into frames that a peer accepts."""

from collections.abc import Iterable

from planaria.records.lone import lean, whole
from planaria.records.record import MalformedRecord, Record

PUSH_BYTES_MAX = 1 << 18  # of one frame, so that lists of ids and regions fit beside it
PUSH_FRAMES_MAX = 7  # in answer to one message: the window of a link has room for two such answers
FRAMING_BYTES = 8  # of one record in a list


def frames(records: Iterable[bytes]) -> list[list[bytes]]:
    """The first records in frames of `PUSH_BYTES_MAX`; a larger one has its own, the last.

    They travel `lean`, and count as whole: how many are in a frame bounds the work of who gets it.
    """
    filled: list[list[bytes]] = []
    large: list[list[bytes]] = []
    room = 0
    for record in records:
        size, record = len(record) + FRAMING_BYTES, lean(record)
        if size > PUSH_BYTES_MAX:
            large.append([record])
        elif size > room:
            filled.append([record])
            room = PUSH_BYTES_MAX - size
        else:
            filled[-1].append(record)
            room -= size
        if len(filled) + len(large) > PUSH_FRAMES_MAX:
            break
    return (filled + large)[:PUSH_FRAMES_MAX]


def beside(filled: list[list[bytes]]) -> list[bytes]:
    """Take the first of these frames if other content may travel in one message with it."""
    if not filled or sum(map(len, filled[0][:1])) + FRAMING_BYTES > PUSH_BYTES_MAX:
        return []
    return filled.pop(0)


def sound(bodies: Iterable[bytes]) -> list[Record]:
    """The records in these bytes, each with its key; what is no record is left out."""
    found = []
    for data in bodies:
        try:
            found.append(whole(data))
        except MalformedRecord:
            continue
    return found
