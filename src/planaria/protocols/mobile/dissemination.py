"""What a layer's node knows of publications: two buffers, a store to replay, a memory of ids.

Table 4 sends on everything it received, for ever (erratum 13). Here a publication has a random id,
is forwarded once, and is remembered for longer than any copy of it can live.
"""

from random import Random

from msgspec import Struct

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Stateful
from planaria.protocols.mobile.messages import (
    GENERATIONS_MAX,
    ITEM_ID_BYTES,
    ITEMS_MAX,
    PAYLOAD_BYTES_MAX,
    Item,
)

REPLAY_TIMEOUTS = 128  # how long a publication is kept for links that come up
# A copy is kept REPLAY_TIMEOUTS by each of at most GENERATIONS_MAX + 1 holders in a row, and needs
# at most as long again to spread from each: after that no copy is left to be taken for a new one.
MEMORY_TIMEOUTS = 2 * (GENERATIONS_MAX + 1) * REPLAY_TIMEOUTS
MEMORY_MAX = 1 << 16  # ids: 16 per timeout for the whole time
STORE_MAX = 4096  # publications kept for replay; the oldest goes first
LOCAL_MAX = 1024  # own publications that wait for a turn; then publishing says no
BATCH_BYTES_MAX = 1 << 19  # one beat stays below the largest frame


class Outbox(Struct):
    """What one neighbour still has to get: not yet sent, and sent but not yet acknowledged."""

    waiting: dict[bytes, int] = {}  # id -> generation it will carry
    sent: dict[bytes, int] = {}
    serial: int | None = None

    def drop(self, id: bytes) -> None:
        """The neighbour has it."""
        self.waiting.pop(id, None)

    def acknowledged(self, serial: int | None) -> None:
        """The neighbour got the beat `serial`."""
        if serial is not None and serial == self.serial:
            self.sent, self.serial = {}, None


class Dissemination(Stateful):
    """Input and local buffers of Table 4, with what the amendments need."""

    variables = ("input", "local", "store", "seen", "now")
    __slots__ = ("echo", "input", "local", "now", "padding", "seen", "store")

    def __init__(self, *, echo: bool = False, padding: int = 0) -> None:
        self.echo = echo
        self.padding = padding
        self.input: dict[bytes, list[NodeId]] = {}  # id -> neighbours that sent it
        self.local: dict[bytes, None] = {}
        self.store: dict[bytes, tuple[Item, int]] = {}  # id -> item, since when; oldest first
        self.seen: dict[bytes, int] = {}  # id -> since when; oldest first
        self.now = 0  # own timeouts

    def repair(self) -> None:
        """A buffer may only name what the store holds."""
        for id in [id for id in self.input if id not in self.store]:
            del self.input[id]
        for id in [id for id in self.local if id not in self.store]:
            del self.local[id]

    def publish(self, payload: bytes, rng: Random) -> Item:
        """Put a publication into the local buffer; it waits for a turn like any other."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise CapacityExceeded(f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}")
        if len(self.local) >= LOCAL_MAX:
            raise CapacityExceeded(f"{LOCAL_MAX} publications wait for a turn: try again later")
        id = rng.getrandbits(8 * ITEM_ID_BYTES).to_bytes(ITEM_ID_BYTES, "big")
        item = Item(id, GENERATIONS_MAX, len(payload), self._padded(payload))
        self.local[id] = None
        self._keep(item)
        return item

    def receive(self, item: Item, sender: NodeId, topic: str) -> list[Deliver]:
        """The first copy is delivered and goes into the input buffer; the others are dropped."""
        known = item.id in self.seen
        senders = self.input.get(item.id)
        if senders is not None and sender not in senders:
            senders.append(sender)
        if known:
            return []
        self.input[item.id] = [sender]
        self._keep(item)
        return [Deliver(topic, item.id, item.payload[: item.length])]

    def collect(self, outboxes: dict[NodeId, Outbox]) -> None:
        """A turn: empty both buffers into what each neighbour is to get (Table 4, R1)."""
        for id in [*self.input, *self.local]:
            senders = [] if self.echo else self.input.get(id, [])
            generation = self.store[id][0].generation
            for peer, outbox in outboxes.items():
                if peer not in senders and id not in outbox.sent:
                    outbox.waiting.setdefault(id, generation)
        self.input, self.local = {}, {}

    def replay(self) -> Outbox:
        """All recent publications, for a link that came up: agreement when a relay left (14)."""
        waiting = {
            id: item.generation - 1
            for id, (item, _) in self.store.items()
            if item.generation and id not in self.input and id not in self.local
        }
        return Outbox(waiting=waiting)

    def batch(self, outbox: Outbox, serial: int) -> tuple[Item, ...]:
        """The items of one beat: first what was sent and never acknowledged, then what waits."""
        items: list[Item] = []
        size = 0
        pending = {**outbox.sent, **outbox.waiting}
        outbox.sent, outbox.waiting, outbox.serial = {}, {}, None
        for id, generation in pending.items():
            if id not in self.store:
                continue
            item = self.store[id][0]
            size += len(item.payload)
            if len(items) == ITEMS_MAX or (items and size > BATCH_BYTES_MAX):
                outbox.waiting[id] = generation
                continue
            outbox.sent[id], outbox.serial = generation, serial
            items.append(Item(id, generation, item.length, item.payload))
        return tuple(items)

    def age(self) -> None:
        """One timeout passed: forget what is old enough, keep what still waits for a turn."""
        self.now += 1
        while self.seen and not self._young(next(iter(self.seen.values())), MEMORY_TIMEOUTS):
            del self.seen[next(iter(self.seen))]
        for _ in range(len(self.store)):
            id, (item, since) = next(iter(self.store.items()))
            if self._young(since, REPLAY_TIMEOUTS):
                return
            del self.store[id]
            if id in self.input or id in self.local:
                self.store[id] = (item, self.now)

    def _young(self, since: int, limit: int) -> bool:
        """A time in the future is a corrupted one, and as good as long ago."""
        return 0 <= self.now - since < limit

    def _keep(self, item: Item) -> None:
        self.seen[item.id] = self.now
        self.store[item.id] = (item, self.now)
        while len(self.seen) > MEMORY_MAX:
            del self.seen[next(iter(self.seen))]
        while len(self.store) > STORE_MAX:
            oldest = next(iter(self.store))
            for table in (self.store, self.input, self.local):
                table.pop(oldest, None)

    def _padded(self, payload: bytes) -> bytes:
        """`payload` up to the next multiple of the padding: sizes then tell nothing."""
        if not self.padding:
            return payload
        blocks = max(1, -(-len(payload) // self.padding))
        return payload.ljust(min(blocks * self.padding, PAYLOAD_BYTES_MAX), b"\0")
