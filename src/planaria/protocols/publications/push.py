"""Publications to be pushed, cut into frames that a peer accepts."""

from collections.abc import Iterable

from planaria.protocols.publications.publication import HEADER_BYTES_MAX, Publication

PUSH_BYTES_MAX = 1 << 18  # of one frame, so that lists of ids and regions fit beside it
PUSH_FRAMES_MAX = 16  # in answer to one message; what is left waits for the next exchange


def frames(publications: Iterable[Publication]) -> list[list[Publication]]:
    """The first publications in frames of `PUSH_BYTES_MAX`; a larger one has its own, the last."""
    filled: list[list[Publication]] = []
    large: list[list[Publication]] = []
    room = 0
    for publication in publications:
        size = len(publication.payload) + HEADER_BYTES_MAX
        if size > PUSH_BYTES_MAX:
            large.append([publication])
        elif size > room:
            filled.append([publication])
            room = PUSH_BYTES_MAX - size
        else:
            filled[-1].append(publication)
            room -= size
        if len(filled) + len(large) > PUSH_FRAMES_MAX:
            break
    return (filled + large)[:PUSH_FRAMES_MAX]


def fits_beside(frame: list[Publication]) -> bool:
    """May other content travel in one message with `frame`?"""
    return len(frame) != 1 or len(frame[0].payload) + HEADER_BYTES_MAX <= PUSH_BYTES_MAX
