"""Records to be pushed, cut into frames that a peer accepts."""

from collections.abc import Iterable

from planaria.records.record import MalformedRecord, Record, decode

PUSH_BYTES_MAX = 1 << 18  # of one frame, so that lists of ids and regions fit beside it
PUSH_FRAMES_MAX = 16  # in answer to one message; what is left waits for the next exchange
FRAMING_BYTES = 8  # of one record in a list


def frames(records: Iterable[bytes]) -> list[list[bytes]]:
    """The first records in frames of `PUSH_BYTES_MAX`; a larger one has its own, the last."""
    filled: list[list[bytes]] = []
    large: list[list[bytes]] = []
    room = 0
    for record in records:
        size = len(record) + FRAMING_BYTES
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


def fits_beside(frame: list[bytes]) -> bool:
    """May other content travel in one message with `frame`?"""
    return len(frame) != 1 or len(frame[0]) + FRAMING_BYTES <= PUSH_BYTES_MAX


def sound(bodies: Iterable[bytes]) -> list[Record]:
    """The records in these bytes, each with its key; what is no record is left out."""
    found = []
    for data in bodies:
        try:
            found.append(decode(data))
        except MalformedRecord:
            continue
    return found
