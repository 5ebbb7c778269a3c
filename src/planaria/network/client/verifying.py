"""Whether a node hands a client what publishers signed: where there are keys it is not believed.

A client has the certificate of its authority, and records carry their publisher's, with a
signature. So it judges as members do who published what, on which topic, and whether the
certificate was good then. Charters and revocations it has not heard of, and judges nothing by them.
"""

from collections.abc import Iterable

from planaria.network.client.messages import Piece
from planaria.network.tls import Credentials
from planaria.records.record import MalformedRecord, Record, Stream, decode_unnamed

Place = tuple[str, Stream, int]


class Unsigned(MalformedRecord):
    """A record that its publisher did not sign for this topic; `place` is where it would stand."""

    def __init__(self, topic: str, record: Record) -> None:
        self.place: Place = (topic, record.stream, record.first)
        stream = f"{record.publisher}/{record.incarnation.hex()}"
        super().__init__(f"number {record.first} of {stream} in {topic} is not signed by it")


class Verifier:
    """Reads records as they come from nodes; without credentials it believes what it is given."""

    def __init__(self, credentials: Credentials | None) -> None:
        self._admissions = None
        if credentials is not None:
            from planaria.network.admission import Admissions  # slow to load, and needs keys

            self._admissions = Admissions(credentials)

    @property
    def verifies(self) -> bool:
        """Is there an authority to judge by?"""
        return self._admissions is not None

    def read(self, topic: str, data: bytes) -> Record:
        """The record in these bytes; raises MalformedRecord, Unsigned if it is not its publisher's.

        Costs a signature's verification for each record, however many publications it has.
        """
        record = decode_unnamed(data)  # nobody here asks for its key
        self.check(topic, record)
        return record

    def check(self, topic: str, record: Record) -> None:
        """Raise Unsigned if a record is not its publisher's; it needs no key for that."""
        if self._admissions is not None and not self._admissions(topic).admits(record):
            raise Unsigned(topic, record)

    def flaw(self, pieces: Iterable[tuple[str, Piece]]) -> MalformedRecord | None:
        """What is wrong with the first of these, by topic, that is not its publisher's."""
        try:
            for topic, piece in pieces:
                self.read(topic, piece.record)
        except MalformedRecord as error:
            return error
        return None
