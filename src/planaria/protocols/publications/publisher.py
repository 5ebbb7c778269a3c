"""Who numbers publications: each start of a process in an incarnation of its own."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import MODULUS, NodeId, mixed
from planaria.core.state import State, Stateful
from planaria.records.evidence import Sealer
from planaria.records.packing import LINGER_MICROSECONDS, Packer, PackerState
from planaria.records.record import (
    INCARNATION_BYTES,
    SEQUENCE_MAX,
    TIMESTAMPS,
    Draft,
    MalformedRecord,
    Record,
    Stream,
    decode,
    seal,
)

REJECTABLE_BYTES_MAX = 16 << 20  # of own records that may still be rejected
REJECTABLE_MAX = 1 << 12  # of them
RESTAMPS_MAX = 3  # per record: who is rejected more often met more than one liar
AHEAD_SECONDS = 60  # a stream whose times are so far ahead was numbered by a wrong clock


class PublisherState(State):
    """The packer, a check of its numbers, and own records that may be rejected, with how often."""

    packer: PackerState | None
    check: int
    rejectable: dict[bytes, tuple[bytes, int]]
    rejectable_bytes: int


class Publisher(Stateful):
    """Numbers and seals the publications of one node on one topic.

    Numbers that are not intact (corrupted, another node's, of a process before this one) are never
    continued: a new incarnation begins.
    """

    __slots__ = ("_random", "_sign", "check", "id", "packer", "rejectable", "rejectable_bytes")
    state_type = PublisherState

    def __init__(self, id: NodeId, random: Random, sign: Sealer | None = None) -> None:
        """`sign` adds to each record the evidence of who published it."""
        self.id = id
        self._random, self._sign = random, sign
        self.packer: Packer | None = None  # None until something is published
        self.check = 0
        self.rejectable: dict[bytes, tuple[bytes, int]] = {}
        self.rejectable_bytes = 0

    def state(self) -> PublisherState:
        """How far it has numbered."""
        packer = None if self.packer is None else self.packer.state()
        return PublisherState(packer, self.check, self.rejectable, self.rejectable_bytes)

    def load(self, state: State) -> None:
        """Go on as this state has it, if its numbers are intact."""
        assert isinstance(state, PublisherState)
        self.check, self.rejectable = state.check, state.rejectable
        self.rejectable_bytes = state.rejectable_bytes
        self.packer = None
        if state.packer is not None:
            self.packer = Packer(self.id, bytes(INCARNATION_BYTES), self._sign)
            self.packer.load(state.packer)

    def restart(self) -> None:
        """The process began anew: what it numbers it numbers in another incarnation."""
        self.packer = None

    def publish(self, time: int, *drafts: Draft) -> tuple[Stream, int]:
        """Number publications, to be sealed with the next record; returns the first number.

        Raises UsageError, with nothing numbered, if no record can hold one.
        """
        packer = self.packer
        if (
            packer is None
            or not self._intact(packer, time)
            or packer.next + len(packer) > SEQUENCE_MAX - len(drafts)
        ):
            bits = 8 * INCARNATION_BYTES
            incarnation = self._random.getrandbits(bits).to_bytes(INCARNATION_BYTES, "big")
            packer = Packer(self.id, incarnation, self._sign)
        number = packer.offer(*drafts)
        fresh, self.packer = packer is not self.packer, packer
        # How many wait stands last in the check, with weight one.
        self.check = self._check(packer) if fresh else (self.check + len(drafts)) % MODULUS
        return packer.stream, number

    def seal(self, time: int, low: int | None) -> list[Record]:
        """Seal what waits."""
        packer = self.packer
        if packer is None or not len(packer) or not self._intact(packer, time):
            return []
        found: list[Record] = []
        vouched = packer.next if low is None else low
        while len(packer):
            record = packer.take(_now(packer), time=time, low=max(0, vouched))
            if record is None:
                break
            packer.acknowledge(record.end)  # it is in the store, where a retry finds it
            self._remember(record, 0)
            found.append(record)
        self.check = self._check(packer)
        return found

    def withdraw(self, records: Sequence[Record]) -> None:
        """Take the numbers back of records just sealed, of which nobody has heard."""
        packer = self.packer
        if packer is not None and records and packer.stream == records[0].stream:
            packer.next = records[0].first
            self.check = self._check(packer)
        for record in records:
            self.rejectable.pop(record.key, None)

    def restamp(self, name: bytes, time: int, lo: int) -> Record | None:
        """The record of that key with a new time, if it is older than `lo` and still known here."""
        data, restamps = self.rejectable.get(name, (b"", 0))
        try:
            record = decode(data)
        except MalformedRecord:
            return None
        mine = record.key == name and record.publisher == self.id
        if not mine or not record.time < lo <= time or not 0 <= restamps < RESTAMPS_MAX:
            return None
        del self.rejectable[name]
        drafts = [Draft(*one[3:]) for one in record.publications(record.first, record.end)]
        if not record.columns & TIMESTAMPS:
            drafts = [draft._replace(timestamp=None) for draft in drafts]
        how = {"time": time, "low": record.low}
        again = seal(record.stream, record.first, drafts, **how, sign=self._sign)
        self._remember(again, restamps + 1)
        return again

    def _remember(self, record: Record, restamps: int) -> None:
        known = self.rejectable
        known[record.key] = (record.data, restamps)
        self.rejectable_bytes += len(record.data)
        if len(known) > REJECTABLE_MAX or not 0 <= self.rejectable_bytes <= REJECTABLE_BYTES_MAX:
            self._forget()

    def _forget(self) -> None:
        """Make room for some more at once, so that it is seldom counted how much there is."""
        known = self.rejectable
        size = sum(len(data) for data, _ in known.values())
        count, most = 3 * REJECTABLE_MAX // 4, 3 * REJECTABLE_BYTES_MAX // 4
        while len(known) > 1 and (len(known) > count or size > most):
            size -= len(known.pop(next(iter(known)))[0])
        self.rejectable_bytes = size

    def _intact(self, packer: Packer, time: int) -> bool:
        return self.check == self._check(packer) and packer.time <= time + AHEAD_SECONDS

    def _check(self, packer: Packer) -> int:
        """A number that numbers changed by a fault hardly have; the same on every machine."""
        publisher, incarnation = packer.stream
        start = int.from_bytes(incarnation, "big")
        return mixed(self.id, publisher, start, packer.next, packer.time, len(packer))


def _now(packer: Packer) -> int:
    """The packer's clock: who publishes has waited for others already: the linger is over."""
    return (packer.last or 0) + LINGER_MICROSECONDS
