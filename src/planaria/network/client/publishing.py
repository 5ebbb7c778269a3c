"""What a client publishes: numbered and sealed by itself, or, of a one-shot client, by its node.

A long-lived client owns a stream in each topic it publishes on: whatever is sent again, through
whichever node, is the same bytes at the same position, and publishes nothing twice. A one-shot
client has its node number what it publishes, under a token that is drawn once.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from time import time
from typing import NamedTuple

from msgspec import structs

from planaria.core.errors import CapacityExceeded, PlanariaError, UsageError
from planaria.core.ids import NodeId
from planaria.network.client.events import Ack
from planaria.network.client.messages import (
    COPIES,
    TOKEN_BYTES,
    ClientMessage,
    Put,
    PutNew,
    Stored,
)
from planaria.network.client.requests import Requests
from planaria.records.evidence import Sealer
from planaria.records.packing import (
    LINGER_MICROSECONDS,
    PACKED_PUBLICATIONS,
    UNSETTLED_BYTES_MAX,
    Packer,
    weigh,
)
from planaria.records.record import HEADERS_MAX, INCARNATION_BYTES, Draft, Record

TOPICS_MAX = 1 << 16  # that one client publishes on
RESERVED = "$"  # how names of headers begin that applications may not give
TOKEN_HEADER = "$token"  # noqa: S105 - by it readers know what a one-shot client sent twice
SECOND = 1_000_000  # in the microseconds that packers count
LINGERS_MAX = 16  # for which a publication waits behind records that are not acknowledged

Done = Callable[[Stored | None, BaseException | None], None]


class Wish(NamedTuple):
    """How safe a publication must be before it is acknowledged."""

    copies: int = COPIES
    strict: bool = False
    durable: bool = True
    overlay: str = ""  # empty: where its charter lays it down, or `ring`


class Receipt:
    """Whoever waits for some publications: done when all of them are stored."""

    __slots__ = ("ack", "future", "stored_count", "topic", "wanted")

    def __init__(self, topic: str, wanted: int | None = 1) -> None:
        """`wanted`: how many there are; None until `complete` says it."""
        self.topic, self.wanted, self.stored_count = topic, wanted, 0
        self.ack: Ack | None = None
        self.future: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()

    def stored(self, first: int, count: int, stored: Stored) -> None:
        """So many more are stored, with the numbers from `first` on."""
        self.stored_count += count
        ack, copies, members = self.ack, stored.copies, stored.members
        who = (stored.publisher, stored.incarnation)
        if ack is not None:
            who = (ack.publisher, ack.incarnation)
            first, copies = min(first, ack.sequence), min(copies, ack.copies)
            members = min(members, ack.members)
        self.ack = Ack(self.topic, *who, first, 1, copies, members)
        self._finish()

    def complete(self, wanted: int) -> None:
        """So many there are."""
        self.wanted = wanted
        self._finish()

    @property
    def given_up(self) -> bool:
        """Does whoever waited wait no more?"""
        return self.future.cancelled()

    def failed(self, error: BaseException) -> None:
        """At least one of them cannot be stored."""
        if not self.future.done():
            self.future.set_exception(error)

    def _finish(self) -> None:
        if self.stored_count == self.wanted and self.ack is not None and not self.future.done():
            self.future.set_result(structs.replace(self.ack, count=self.wanted))


class Outbox(ABC):
    """What one client publishes on one topic: subclasses number it, or let it be numbered."""

    def __init__(self, topic: str, requests: Requests) -> None:
        self.topic, self.requests = topic, requests
        self.turn = asyncio.Lock()  # of those that wait for room, the first goes first
        self._room = asyncio.Event()

    @abstractmethod
    def offer(self, drafts: Sequence[Draft], receipt: Receipt, wish: Wish) -> None:
        """Take publications; raises CapacityExceeded, with none taken, if there is no room."""

    def flush(self) -> None:  # noqa: B027 - what is numbered elsewhere waits for no company
        """Send all that waits for company."""

    def took(self, drafts: Sequence[Draft], receipt: Receipt, wish: Wish) -> bool:
        """Take publications if there is room and nobody waits for it."""
        if self.turn.locked():
            return False
        try:
            self.offer(drafts, receipt, wish)
        except CapacityExceeded:
            return False
        return True

    async def put(self, drafts: Sequence[Draft], receipt: Receipt, wish: Wish) -> None:
        """Take publications as soon as there is room."""
        if self.took(drafts, receipt, wish):
            return
        async with self.turn:
            while True:
                if self.requests.error is not None:
                    raise self.requests.error
                self._room.clear()
                try:
                    self.offer(drafts, receipt, wish)
                    return
                except CapacityExceeded:
                    await self._room.wait()

    def _send(
        self,
        kind: type[Put | PutNew],
        *fields: object,
        wish: Wish,
        receipts: Sequence[Receipt],
        done: Done,
    ) -> None:
        """Have it stored, then say `done`.

        Once nobody waits for it any more it is asked for again without `strict`: else it would
        take up room, and hold up the end of its client, for as long as there are too few members.
        """

        def answered(answer: asyncio.Future[ClientMessage]) -> None:
            if answer.cancelled():
                return
            self._room.set()
            error = answer.exception()
            stored = None if error else answer.result()
            if isinstance(stored, Stored):
                done(stored, None)
            else:
                done(None, error or UsageError(f"the node answered {type(stored).__name__}"))

        def given_up(_: object) -> None:
            if not asked.done() and all(receipt.given_up for receipt in receipts):
                asked.cancel()
                enough = wish._replace(strict=False)
                self._send(kind, *fields, wish=enough, receipts=receipts, done=done)

        try:
            asked = self.requests.begin(kind, self.topic, *fields, *wish)
        except PlanariaError as error:
            done(None, error)
            return
        asked.add_done_callback(answered)
        for receipt in receipts if wish.strict else ():
            receipt.future.add_done_callback(given_up)


class Many:
    """The publications of one call, which come in packs: one receipt for all."""

    def __init__(self, outbox: Outbox, wish: Wish) -> None:
        self._outbox, self._wish, self._count = outbox, wish, 0
        self._receipt = Receipt(outbox.topic, None)

    async def put(self, drafts: Sequence[Draft]) -> bool:
        """Take more as soon as there is room; False if some could not be stored."""
        await self._outbox.put(drafts, self._receipt, self._wish)
        self._count += len(drafts)
        return not self._receipt.future.done()

    def give_up(self) -> None:
        """Wait for none of them."""
        self._receipt.future.cancel()

    async def finish(self) -> Ack | None:
        """Wait until all that were put are stored; None if there were none."""
        if not self._count:
            return None
        self._receipt.complete(self._count)
        return await self._receipt.future


class Stream(Outbox):
    """The publications of a long-lived client: numbered, packed and sealed here."""

    def __init__(
        self,
        topic: str,
        requests: Requests,
        publisher: NodeId,
        incarnation: bytes,
        sign: Sealer | None = None,
    ) -> None:
        super().__init__(topic, requests)
        self.packer = Packer(publisher, incarnation, sign)
        # Who waits for what the packer has not sealed yet, and for how many; all with one wish.
        self._receipts: deque[tuple[Receipt, int]] = deque()
        self._wish = Wish()
        self._done: dict[int, int] = {}  # records stored out of their order: first to end
        self._settled = 0  # all numbers below are stored
        self._timer: asyncio.TimerHandle | None = None

    def offer(self, drafts: Sequence[Draft], receipt: Receipt, wish: Wish) -> None:
        """Number publications; they leave at once when idle, else with others in a millisecond."""
        if self._receipts and self._wish != wish:
            self._seal(now=None)
        self.packer.offer(*drafts)
        self._wish = wish
        self._receipts.append((receipt, len(drafts)))
        if len(self.packer) >= PACKED_PUBLICATIONS:
            self._seal(now=_microseconds())
        if self._receipts and self._timer is None:
            self._schedule()

    def flush(self) -> None:
        """Seal and send all that waits."""
        self._seal(now=None)

    @property
    def due(self) -> int:
        """When what waits leaves: a linger later for every record that is not acknowledged.

        A network that is slower than its publisher gets fewer and larger ones, and can follow.
        """
        due, behind = self.packer.due or 0, min(len(self.packer.unsettled), LINGERS_MAX)
        return due + behind * LINGER_MICROSECONDS if due else 0

    def _schedule(self) -> None:
        wait = (self.due - _microseconds()) / SECOND
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, wait), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._seal(now=_microseconds())
        if self._receipts:
            self._schedule()

    def _seal(self, now: int | None) -> None:
        """Seal and send the records that are due at `now`; all if it is None."""
        while self._receipts:
            due = self.packer.due or 0
            record = self.packer.take(due if now is None else now, time=int(time()))
            if record is None:
                return
            self._publish(record, self._waiting_for(record.count), self._wish)

    def _waiting_for(self, count: int) -> list[tuple[Receipt, int]]:
        """Who waits for the first `count` publications, and for how many of them each."""
        found = []
        while count:
            receipt, wanted = self._receipts.popleft()
            taken = min(wanted, count)
            found.append((receipt, taken))
            count -= taken
            if taken < wanted:
                self._receipts.appendleft((receipt, wanted - taken))
        return found

    def _publish(self, record: Record, receipts: list[tuple[Receipt, int]], wish: Wish) -> None:
        def done(stored: Stored | None, error: BaseException | None) -> None:
            if stored is None:
                assert error is not None
                self._abandon(record)
                for receipt, _ in receipts:
                    receipt.failed(error)
                return
            self._acknowledge(record)
            number = stored.first
            for receipt, count in receipts:
                receipt.stored(number, count, stored)
                number += count

        waiting = [receipt for receipt, _ in receipts]
        self._send(Put, record.data, wish=wish, receipts=waiting, done=done)

    def _acknowledge(self, record: Record) -> None:
        """Forget all records below the first that is not stored yet."""
        if record.stream == self.packer.stream:
            self._done[record.first] = record.end
            while self._settled in self._done:
                self._settled = self._done.pop(self._settled)
            self.packer.acknowledge(self._settled)

    def _abandon(self, record: Record) -> None:
        """Number in a new incarnation: nobody is to wait for a number that was refused."""
        if record.stream == self.packer.stream:
            waiting, sign = self.packer.waiting, self.packer.sign
            self.packer = Packer(record.publisher, os.urandom(INCARNATION_BYTES), sign)
            self._done, self._settled = {}, 0
            self.packer.offer(*waiting)


class Notes(Outbox):
    """The publications of a one-shot client: numbered by its node."""

    def __init__(self, topic: str, requests: Requests) -> None:
        super().__init__(topic, requests)
        self._bytes = 0

    def offer(self, drafts: Sequence[Draft], receipt: Receipt, wish: Wish) -> None:
        """Send publications, each under a token of its own."""
        most = max(len(draft.headers) for draft in drafts)
        if most >= HEADERS_MAX:
            raise UsageError(
                f"{most} headers: at most {HEADERS_MAX - 1}, a one-shot adds its token"
            )
        token = os.urandom(TOKEN_BYTES)
        marked = [
            draft._replace(headers=(*draft.headers, (TOKEN_HEADER, f"{token.hex()}.{at}".encode())))
            for at, draft in enumerate(drafts)
        ]
        weight = sum(map(weigh, marked))
        if self._bytes and self._bytes + weight > UNSETTLED_BYTES_MAX:
            raise CapacityExceeded(f"{self._bytes} bytes are not acknowledged yet: slow down")
        self._bytes += weight

        def done(stored: Stored | None, error: BaseException | None) -> None:
            self._bytes -= weight
            if stored is not None:
                receipt.stored(stored.first, len(marked), stored)
            elif error is not None:
                receipt.failed(error)

        self._send(PutNew, token, marked, wish=wish, receipts=[receipt], done=done)


def _microseconds() -> int:
    return int(asyncio.get_running_loop().time() * SECOND)
