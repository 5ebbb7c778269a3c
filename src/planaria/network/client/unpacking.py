"""What is new in a parcel, as events: by positions, or, where there are none, by ids."""

from planaria.network.client.events import Event, anonymous
from planaria.network.client.parcels import Ids, Parcel, Tokens
from planaria.network.client.places import Places
from planaria.records.record import MalformedRecord, Record, decode


class Unpacking:
    """Remembers what an application must not get twice, besides its places."""

    __slots__ = ("_seen", "_tokens")

    def __init__(self) -> None:
        self._seen, self._tokens = Ids(), Tokens()

    def unpack(self, parcel: Parcel, places: Places) -> tuple[list[Event], MalformedRecord | None]:
        """Take what is new: the places move as if the application had all of it.

        What follows bytes that are no record is not taken, and the error says so.
        """
        events: list[Event] = []
        record: Record | None = None
        for piece in parcel.pieces:
            try:
                if record is None or record.data != piece.record:
                    record = decode(piece.record)
            except MalformedRecord as error:
                return events, error
            lo, hi = max(piece.lo, record.first), min(piece.hi, record.end)
            if parcel.passing is not None:
                events += self._passed(parcel, record, lo, hi)
            elif parcel.retained:
                events += self._tokens.events(parcel.topic, record, lo, hi)
            else:
                events += self._read(parcel.topic, places, record, lo, hi)
        for position in parcel.after:
            places.move(parcel.topic, position)
        return events, None

    def _read(self, topic: str, places: Places, record: Record, lo: int, hi: int) -> list[Event]:
        events, stream = list[Event](), record.stream
        for start, end, late in places.unread(topic, stream, lo, hi):
            events += self._tokens.events(topic, record, start, end, late=late)
        if lo < hi:
            places.take(topic, stream, lo, hi)
        return events

    def _passed(self, parcel: Parcel, record: Record, lo: int, hi: int) -> list[Event]:
        """What came in an overlay without positions: new unless its id was seen before."""
        assert parcel.passing is not None
        events = self._tokens.events(parcel.topic, record, lo, hi)
        if parcel.passing.anonymous:
            events = [*map(anonymous, events)]
        return [it for it in events if self._seen.is_new((it.topic, it.id))]
