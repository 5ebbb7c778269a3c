"""What is new in a parcel, as events: by positions, or, where there are none, by ids."""

from functools import partial

from planaria.network.client.events import Event, anonymous
from planaria.network.client.messages import SAME_RECORD, Piece
from planaria.network.client.parcels import Ids, Parcel, Tokens
from planaria.network.client.places import Places
from planaria.network.client.verifying import Verifier
from planaria.records.batches import Slice
from planaria.records.record import MalformedRecord, Record, decode_unnamed


class Unpacking:
    """Remembers what an application must not get twice, besides its places.

    Where records are verified they come whole, and what of them satisfies `where` is selected here;
    so is what is retained, for which nodes ask no condition.
    """

    __slots__ = ("_condition", "_seen", "_tokens", "_verifier", "whole")

    def __init__(self, verifier: Verifier, where: str | None, *, compacted: bool = False) -> None:
        self._seen, self._tokens, self._verifier = Ids(), Tokens(), verifier
        self._condition = None
        if where is not None:
            from planaria.network.client.conditions import Condition  # slow to load

            self._condition = Condition(where)
        # Must records come whole, however little of them is asked for?
        self.whole = verifier.verifies and (where is not None or compacted)

    def unpack(self, parcel: Parcel, places: Places) -> tuple[list[Event], MalformedRecord | None]:
        """Take what is new: the places move as if the application had all of it.

        What follows bytes that are no record, or not its publisher's, is not taken, and the error
        says so. Overlays that keep nothing pass on no signatures.
        """
        events: list[Event] = []
        record: Record | None = None
        for piece in parcel.pieces:
            try:
                if record is None or piece.record not in (SAME_RECORD, record.data):
                    verified = partial(self._verifier.read, parcel.topic)
                    record = (decode_unnamed if parcel.passed else verified)(piece.record)
            except MalformedRecord as error:
                return events, error
            lo, hi = max(piece.lo, record.first), min(piece.hi, record.end)
            if parcel.passed:
                events += self._passed(parcel, places, record, lo, hi)
            elif parcel.retained:
                events += self._chosen(parcel.topic, [Slice(record, lo, hi)])
            else:
                events += self._read(parcel.topic, places, record, lo, hi)
        for position in parcel.after:
            places.move(parcel.topic, position)
        return events, None

    def is_read(self, topic: str, piece: Piece, places: Places) -> bool:
        """Is this before the places? What is not comes with the tail."""
        return not places.unread(topic, decode_unnamed(piece.record).stream, piece.lo, piece.hi)

    def _read(self, topic: str, places: Places, record: Record, lo: int, hi: int) -> list[Event]:
        stream = record.stream
        new = [Slice(record, *it) for it in places.unread(topic, stream, lo, hi)]
        events = self._chosen(topic, new)
        if lo < hi:
            places.take(topic, stream, lo, hi)
        return [it for it in events if (topic, it.id) not in self._seen] if self._seen else events

    def _chosen(self, topic: str, parts: list[Slice]) -> list[Event]:
        events = list[Event]()
        for part in parts if self._condition is None else self._condition.cut(topic, parts):
            events += self._tokens.events(topic, part.record, part.lo, part.hi, late=part.late)
        return events

    def _passed(
        self, parcel: Parcel, places: Places, record: Record, lo: int, hi: int
    ) -> list[Event]:
        """What came in an overlay without positions: new unless its id was seen before.

        Or it was read in a ring in which the topic was before: a client that had no answer there
        publishes the same in the other overlay.
        """
        unread = [it[:2] for it in places.unread(parcel.topic, record.stream, lo, hi)]
        events = [it for of in unread for it in self._tokens.events(parcel.topic, record, *of)]
        if parcel.anonymous:
            events = [*map(anonymous, events)]
        return [it for it in events if self._seen.is_new((it.topic, it.id))]
