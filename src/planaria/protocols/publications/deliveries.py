"""Parts of records as the application gets them: made into publications when they are looked at."""

from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct as Layout
from typing import overload

from planaria.core.ids import NodeId
from planaria.core.node import Delivery
from planaria.records.batches import Slice
from planaria.records.record import INCARNATION_BYTES, Publication

_POSITION = Layout(f">q{INCARNATION_BYTES}sq")
MILLISECOND = 1000  # in the microseconds that records count


def position_id(publisher: NodeId, incarnation: bytes, sequence: int) -> bytes:
    """The id by which applications know a publication: its position."""
    return _POSITION.pack(publisher, incarnation, sequence)


def split_position(id: bytes) -> tuple[NodeId, bytes, int]:
    """Publisher, incarnation and number of such an id."""
    publisher, incarnation, sequence = _POSITION.unpack(id)
    return publisher, incarnation, sequence


class Deliveries(Sequence[Delivery]):
    """The publications of some slices, in their order."""

    __slots__ = ("slices",)

    def __init__(self, slices: Sequence[Slice]) -> None:
        self.slices = slices

    def __len__(self) -> int:
        count = 0
        for part in self.slices:
            count += part.hi - part.lo
        return count

    def __iter__(self) -> Iterator[Delivery]:
        for part in self.slices:
            if part.record.columns:
                yield from map(_delivery, part.publications())
            else:
                yield from _plain(part)

    @overload
    def __getitem__(self, at: int) -> Delivery: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Delivery]: ...

    def __getitem__(self, at: int | slice) -> Delivery | Sequence[Delivery]:
        if isinstance(at, slice):
            return list(self)[at]
        place = at if at >= 0 else len(self) + at
        for one in islice(self, place, place + 1) if place >= 0 else ():
            return one
        raise IndexError(f"{at} of {len(self)} publications")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Deliveries({list(self)})"


def _plain(part: Slice) -> list[Delivery]:
    """The same of a record of payloads alone, as nearly all are: nothing is made twice."""
    record, lo, hi = part.record, part.lo, part.hi
    publisher, incarnation, pack = record.publisher, record.incarnation, _POSITION.pack
    timestamp = record.time * 1000
    numbered = zip(range(lo, hi), record.payloads(lo, hi), strict=True)
    return [
        Delivery(
            pack(publisher, incarnation, number), payload, publisher, number, timestamp=timestamp
        )
        for number, payload in numbered
    ]


def _delivery(said: Publication) -> Delivery:
    publisher, incarnation, sequence, payload, key, headers, timestamp = said
    return Delivery(
        _POSITION.pack(publisher, incarnation, sequence),
        payload,
        publisher,
        sequence,
        {},
        key,
        {name: value.decode(errors="replace") for name, value in headers},
        timestamp // MILLISECOND,
    )
