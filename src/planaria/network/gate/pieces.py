"""Parts of records as they go to clients, and positions as they come from them."""

from collections.abc import Mapping, Sequence

from planaria.core.errors import UsageError
from planaria.core.ids import is_node_id
from planaria.network.client.conditions import Condition
from planaria.network.client.messages import (
    LACKS_MAX,
    SAME_RECORD,
    Lack,
    Piece,
    Position,
    from_wire,
)
from planaria.records.batches import Batch, Lacks, Slice
from planaria.records.positions import SKIPPED_MAX, Mark
from planaria.records.record import (
    INCARNATION_BYTES,
    SEQUENCE_MAX,
    TIMESTAMPS,
    Draft,
    Publication,
    Stream,
    seal,
)
from planaria.records.retained import Retained

PIECES_BYTES = 1 << 18  # of records in one frame; a larger record has its own
PIECES_PUBLICATIONS = 8192  # in one frame
READ_BYTES = 3 << 18  # in the answer to one question: a third of the work of a quarter mebibyte


def pieces_of(
    parts: Sequence[Slice],
    condition: Condition | None,
    topic: str,
    retained: Retained | None = None,
    *,
    whole: bool = False,
) -> list[Piece]:
    """What a client gets of these slices: what satisfies a condition, and what was `retained`.

    Either may leave little of a record: that travels sealed anew, at the same positions, or in the
    `whole` record for whoever wants to see its signature.
    """
    if condition is None and retained is None:
        return [Piece(it.record.data, it.lo, it.hi, it.late) for it in parts]
    left = [[part] if retained is None else retained.compacted(part) for part in parts]
    if condition is not None:
        left = [condition.cut(topic, runs) for runs in left]
    if not whole:
        return [Piece(_excerpt(it), it.lo, it.hi, it.late) for runs in left for it in runs]
    if retained is None:  # such a client selects by itself
        return [Piece(it[0].record.data, it[0].lo, it[-1].hi, it[0].late) for it in left if it]
    return [
        Piece(SAME_RECORD if at else it.record.data, it.lo, it.hi, it.late)
        for runs in left
        for at, it in enumerate(runs)
    ]


def within(parts: Sequence[Slice], times: tuple[int, int] | None) -> list[Slice]:
    """Those of these slices that may have a publication of these times, in microseconds."""
    if times is None:
        return list(parts)
    return [part for part in parts if _touches(part, *times)]


def _touches(part: Slice, since: int, before: int) -> bool:
    if not part.record.columns & TIMESTAMPS:
        return since <= part.record.time * 1_000_000 < before
    stamps = part.record.timestamps(part.lo, part.hi)
    return min(stamps) < before and max(stamps) >= since


def _excerpt(part: Slice) -> bytes:
    record, lo, hi = part.record, part.lo, part.hi
    if (lo, hi) == (record.first, record.end):
        return record.data
    return sealed(record.publications(lo, hi), record.time)


def sealed(publications: Sequence[Publication], time: int) -> bytes:
    """Consecutive publications of one stream as the bytes of a record."""
    first = publications[0]
    drafts = [Draft(*one[3:]) for one in publications]
    return seal((first.publisher, first.incarnation), first.sequence, drafts, time=time).data


def moved(before: Mapping[Stream, Mark], after: Mapping[Stream, Mark]) -> list[Position]:
    """The positions that are not where they were."""
    return [
        Position(*stream, mark.next, mark.skipped)
        for stream, mark in after.items()
        if before.get(stream) != mark
    ]


def passed_over(before: Mapping[Stream, Mark], batch: Batch) -> tuple[Lack, ...]:
    """What a reader passes that is not here any more; what was before its beginning is not told."""
    at = {stream: mark.next for stream, mark in before.items() if stream in batch.vector}
    found = list[Lack]()
    for part in batch.slices:
        record, lo, hi = part.record, part.lo, part.hi
        if not part.late:
            if lo > at.get(record.stream, lo):
                found.append(Lack(*record.stream, at[record.stream], lo, True))
            at[record.stream] = hi
    for stream, number in at.items():
        if number < batch.vector[stream].next:
            found.append(Lack(*stream, number, batch.vector[stream].next, True))
    return tuple(found[:LACKS_MAX])


def vector_of(positions: list[Position]) -> dict[Stream, Mark]:
    """The vector that a client sent; raises UsageError if nobody can have read so far."""
    for one in positions:
        flat = [number for pair in one.skipped for number in pair]
        good = is_node_id(one.publisher) and len(one.incarnation) == INCARNATION_BYTES
        ascends = flat == sorted({*flat}) and all(0 <= it <= one.next for it in flat)
        if not (
            good and ascends and 0 <= one.next <= SEQUENCE_MAX and len(flat) <= 2 * SKIPPED_MAX
        ):
            raise UsageError(f"no position: {one}")
    return from_wire(positions)


def lacks_of(lacks: Lacks) -> tuple[Lack, ...]:
    """What of a range is not here, the first of it."""
    found = [
        Lack(*stream, lo, hi, expired)
        for kind, expired in ((lacks.coming, False), (lacks.expired, True))
        for stream, intervals in kind.items()
        for lo, hi in intervals
    ]
    return tuple(found[:LACKS_MAX])
