"""A publisher packs what it publishes into records: at once when idle, else after a short linger.

Pure: who drives it hands in the time. A lone publication never waits; under load those of one
millisecond, or a record full, share one key, one hash, one message and one row.
"""

from collections.abc import Iterable, Iterator, Sequence

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.state import State, Stateful
from planaria.records.evidence import Sealer
from planaria.records.record import (
    HEADER_NAME_BYTES_MAX,
    HEADER_VALUE_BYTES_MAX,
    HEADERS_MAX,
    INCARNATION_BYTES,
    PAYLOAD_BYTES_MAX,
    PUBLICATION_KEY_BYTES_MAX,
    RECORD_BYTES_MAX,
    SEQUENCE_MAX,
    Draft,
    MalformedRecord,
    Record,
    Stream,
    decode,
    seal,
)

LINGER_MICROSECONDS = 1_000
PACKED_PUBLICATIONS = 512  # in a record: with 256 a reader that verifies has twice the signatures
PACKED_BYTES = 96 << 10  # by weight, so 64 KiB of 128 each; larger records delay control frames
UNSETTLED_BYTES_MAX = 16 << 20  # published and not acknowledged; then the publisher is refused
DRAFT_BYTES = 64  # what a draft counts beside its own bytes
WEIGHT_MAX = RECORD_BYTES_MAX - 128  # of one draft: a record's head stands beside it


class PackerState(State):
    """How far a publisher has numbered, what waits to be sealed and what to be acknowledged."""

    stream: tuple[int, bytes]
    next: int
    waiting: list[Draft]
    unsettled: list[bytes]
    last: int | None
    time: int


class Packer(Stateful):
    """Numbers the publications of one process on one topic, in an incarnation of its own.

    Drafts wait until `take` seals them; records stay until they are `acknowledge`d, so that a
    retry is the same bytes.
    """

    __slots__ = (
        "bytes", "last", "next", "sign", "stream", "time", "unsettled", "waiting", "weights",
    )  # fmt: skip
    state_type = PackerState

    def __init__(self, publisher: NodeId, incarnation: bytes, sign: Sealer | None = None) -> None:
        """`incarnation`: fresh bytes of the operating system at every start of a process."""
        if len(incarnation) != INCARNATION_BYTES:
            raise UsageError(f"incarnation of {len(incarnation)} bytes: {INCARNATION_BYTES}")
        self.stream: Stream = (publisher, incarnation)
        self.sign = sign  # adds evidence of the publisher
        self.unsettled: list[Record] = []  # sealed and not acknowledged, by number
        self.next = 0  # the number of the first draft that waits
        self.waiting: list[Draft] = []
        self.weights: list[int] = []
        self.bytes = 0  # of drafts and records not acknowledged
        self.last: int | None = None  # when the last record was sealed
        self.time = 0  # of the last record: times of a stream never decrease

    def __len__(self) -> int:
        return len(self.waiting)

    def state(self) -> PackerState:
        """What is numbered, what waits, what is not acknowledged."""
        sealed = [record.data for record in self.unsettled]
        return PackerState(self.stream, self.next, self.waiting, sealed, self.last, self.time)

    def load(self, state: State) -> None:
        """Take this state, but for drafts and records that cannot be."""
        assert isinstance(state, PackerState)
        self.stream, self.next = state.stream, state.next
        self.last, self.time = state.last, state.time
        self.waiting, self.weights, self.unsettled = [], [], []
        for draft in state.waiting:
            try:
                self.weights.append(weigh(draft))
            except UsageError:
                continue
            self.waiting.append(draft)
        for data in state.unsettled:
            try:
                self.unsettled.append(decode(data))
            except MalformedRecord:
                continue
        self.bytes = sum(self.weights) + sum(len(record.data) for record in self.unsettled)

    @property
    def due(self) -> int | None:
        """When the next record is to be taken, in microseconds; None if nothing waits."""
        if not self.waiting:
            return None
        full = len(self.waiting) >= PACKED_PUBLICATIONS or sum(self.weights) >= PACKED_BYTES
        return 0 if self.last is None or full else self.last + LINGER_MICROSECONDS

    def offer(self, *drafts: Draft) -> int:
        """Number publications, and return the first number; they leave with the next record.

        Raises UsageError if no record can hold one, and CapacityExceeded, both with nothing
        numbered, while too much is not acknowledged.
        """
        weights = _weights(drafts)
        weight = sum(weights)
        if self.bytes and self.bytes + weight > UNSETTLED_BYTES_MAX:
            raise CapacityExceeded(f"{self.bytes} bytes are not acknowledged yet: slow down")
        number = self.next + len(self.waiting)
        if number > SEQUENCE_MAX - len(drafts):
            raise CapacityExceeded("this incarnation has no more numbers: start another")
        self.waiting += drafts
        self.weights += weights
        self.bytes += weight
        return number

    def take(self, now: int, *, time: int, low: int = 0) -> Record | None:
        """Seal the next record if one is due at `now`, in microseconds of any steady clock.

        `time` is the present in seconds, `low` the lowest number still vouched for.
        """
        due = self.due
        if due is None or now < due:
            return None
        size, count = sum(self.weights), len(self.weights)
        if count > PACKED_PUBLICATIONS or size > PACKED_BYTES:
            size = count = 0
            for weight in self.weights[:PACKED_PUBLICATIONS]:
                if count and size + weight > PACKED_BYTES:
                    break
                size, count = size + weight, count + 1
        self.time = max(self.time, time)
        drafts, low = self.waiting[:count], min(low, self.next)
        record = seal(self.stream, self.next, drafts, time=self.time, low=low, sign=self.sign)
        del self.waiting[:count], self.weights[:count]
        self.next += count
        self.bytes += len(record.data) - size
        self.last = now
        self.unsettled.append(record)
        return record

    def acknowledge(self, before: int) -> None:
        """All numbers below `before` are where they should be: their records need no retry."""
        while self.unsettled and self.unsettled[0].end <= before:
            self.bytes -= len(self.unsettled.pop(0).data)


def packed(drafts: Iterable[Draft]) -> Iterator[list[Draft]]:
    """As many at a time as a record takes. Should one be bad, those before it come first."""
    source, pack, size = iter(drafts), list[Draft](), 0
    while True:
        try:
            draft = next(source)
            weight = weigh(draft)
        except StopIteration:
            break
        except Exception:
            if pack:
                yield pack
            raise
        if len(pack) >= PACKED_PUBLICATIONS or (pack and size + weight > PACKED_BYTES):
            yield pack
            pack, size = [], 0
        pack.append(draft)
        size += weight
    if pack:
        yield pack


def _weights(drafts: Sequence[Draft]) -> list[int]:
    """What each of these weighs; of payloads alone, as nearly always, all at once."""
    if len(drafts) > 1:
        payloads, keys, headers, timestamps = zip(*drafts, strict=True)
        alone = keys.count(None) == timestamps.count(None) == len(drafts) and not any(headers)
        if alone and {*map(type, payloads)} == {bytes}:
            sizes = [*map(len, payloads)]
            if max(sizes) <= PAYLOAD_BYTES_MAX:
                return [DRAFT_BYTES + size for size in sizes]
    return [*map(weigh, drafts)]


def weigh(draft: Draft) -> int:
    """What a draft adds to a record at most; raises UsageError if it is beyond a bound."""
    payload, key, headers, timestamp = draft
    if key is None and timestamp is None and not headers and type(payload) is bytes:
        size = len(payload)
        if size <= PAYLOAD_BYTES_MAX:
            return DRAFT_BYTES + size  # as nearly always
    if timestamp is not None and not (
        isinstance(timestamp, int) and -(1 << 63) <= timestamp < 1 << 63
    ):
        raise UsageError(f"timestamp {timestamp!r}: whole microseconds in 64 bits")
    if not isinstance(payload, bytes) or not isinstance(key, bytes | None):
        kinds = " and ".join(type(it).__name__ for it in (payload, key) if it is not None)
        raise UsageError(f"payload and key of type {kinds or None}: publish bytes")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise UsageError(f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}, split it")
    if key is not None and len(key) > PUBLICATION_KEY_BYTES_MAX:
        raise UsageError(f"key of {len(key)} bytes: at most {PUBLICATION_KEY_BYTES_MAX}")
    if len(headers) > HEADERS_MAX:
        raise UsageError(f"{len(headers)} headers: at most {HEADERS_MAX}")
    weight = DRAFT_BYTES + len(payload) + len(key or b"")
    for name, value in headers:
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise UsageError(f"header {name!r:.40}: its name is text, its value bytes")
        encoded = len(name.encode())
        if encoded > HEADER_NAME_BYTES_MAX or len(value) > HEADER_VALUE_BYTES_MAX:
            bounds = f"{HEADER_NAME_BYTES_MAX} and {HEADER_VALUE_BYTES_MAX}"
            raise UsageError(f"header {name:.40}: name and value have at most {bounds} bytes")
        weight += encoded + len(value) + 8
    if weight > WEIGHT_MAX:
        raise UsageError(
            f"publication of {weight} bytes: payload, key and headers have at most {WEIGHT_MAX}"
        )
    return weight
