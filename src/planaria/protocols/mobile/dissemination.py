"""What a layer's node knows of publications: two buffers, a store to replay, a memory of ids.

Table 4 sends on everything it received, for ever (erratum 13). Here a publication has a random id,
is forwarded once, and is remembered for longer than any copy of it can live.
"""

from itertools import islice
from random import Random

from msgspec import Struct

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.node import Deliver
from planaria.core.state import State, Stateful
from planaria.protocols.mobile.messages import (
    GENERATIONS_MAX,
    ITEM_ID_BYTES,
    ITEMS_MAX,
    PAYLOAD_BYTES_MAX,
    STEM,
    Item,
    padded,
    receipt,
)

# How long a publication is kept for links that come up; longer only while it waits to be sent.
REPLAY_TIMEOUTS = 128
# A copy is kept REPLAY_TIMEOUTS by each of at most GENERATIONS_MAX + 1 holders in a row, and may
# wait as long again to be sent by each: after that no copy is left to be taken for a new one.
MEMORY_TIMEOUTS = 2 * (GENERATIONS_MAX + 1) * REPLAY_TIMEOUTS
MEMORY_MAX = 1 << 17  # ids: 32 per timeout for the whole time, as many as the store takes
# Publications kept for replay, and twice as many within a timeout. The oldest that all neighbours
# have goes first; one that waits only when such fill the store.
STORE_MAX = 4096
LOCAL_MAX = 1024  # own publications that wait for a turn; then publishing says no
# Timeouts, drawn from here to twice as many, that a node which handed a publication over waits for
# its flood. Longer than a flood takes to come back, or who loses patience first began it.
EMBARGO = 64
RECEIPTS_MAX = 8  # turns, one in two timeouts at most: an answer takes ten intervals and a timeout
BATCH_BYTES_MAX = 1 << 19  # one beat stays below the largest frame


class Outbox(Struct):
    """What one neighbour still has to get: not yet sent, and sent but not yet acknowledged."""

    waiting: dict[bytes, int] = {}  # id -> generation it will carry
    sent: dict[bytes, int] = {}
    receipts: dict[int, list[bytes]] = {}  # what acknowledges which of them; the last few

    def owes(self, id: bytes) -> bool:
        """Is the neighbour still to get it, or to say that it has?"""
        return id in self.waiting or id in self.sent

    def drop(self, id: bytes) -> None:
        """The neighbour has it."""
        self.waiting.pop(id, None)

    def flood(self, id: bytes, generation: int) -> None:
        """The neighbour is to get it, unless it already is; a copy handed over does not count."""
        if self.sent.get(id, STEM) != STEM:
            return
        if self.sent.pop(id, None) is not None:
            self.receipts = {}  # they name the copy that does not count
        if self.waiting.get(id, STEM) == STEM:
            self.waiting[id] = generation

    def acknowledged(self, ack: int | None) -> None:
        """The neighbour got the items of which `ack` is the receipt.

        What is sent again before an answer can have come has another receipt: any of them counts.
        """
        for id in self.receipts.pop(ack, ()) if ack is not None else ():
            self.sent.pop(id, None)


class Kept(Struct, frozen=True, gc=False):
    """A publication in the store: what memory holds, perhaps nothing that a neighbour would take.

    `since` is the time at which it was put there.
    """

    generation: int
    body: bytes
    since: int


class DisseminationState(State):
    """The buffers, the store, the memory of ids, and the clock of own timeouts."""

    input: dict[bytes, list[int]]
    local: dict[bytes, None]
    walking: dict[bytes, bool]
    hidden: dict[bytes, int]
    store: dict[bytes, Kept]
    seen: dict[bytes, int]
    now: int


class Dissemination(Stateful):
    """Input and local buffers of Table 4, with what the amendments need.

    With `walk` a publication walks before it is flooded: its publisher hands it to a neighbour
    drawn at random, who hands it on, and so on, so many times on average. Whoever it walked through
    waits for the flood and takes part as if it had heard nothing before.
    """

    state_type = DisseminationState
    __slots__ = (*DisseminationState.__struct_fields__, "echo", "padding", "walk")

    def __init__(self, *, echo: bool = False, padding: int = 0, walk: int = 0) -> None:
        self.echo = echo
        self.padding = padding
        self.walk = walk
        self.input: dict[bytes, list[NodeId]] = {}  # id -> neighbours that sent it
        self.local: dict[bytes, None] = {}
        self.walking: dict[bytes, bool] = {}  # id -> here for the first time: it must walk on
        self.hidden: dict[bytes, int] = {}  # id -> timeouts to wait for the flood
        self.store: dict[bytes, Kept] = {}  # oldest first
        self.seen: dict[bytes, int] = {}  # id -> since when; oldest first
        self.now = 0  # own timeouts

    def repair(self) -> None:
        """A buffer may only name what the store holds; without walks nothing waits for a flood."""
        for table in (self.input, self.local, self.walking, self.hidden):
            if table and not table.keys() <= self.store.keys():
                for id in [id for id in table if id not in self.store]:
                    del table[id]
        for id in [id for id in self.walking if id not in self.hidden]:
            del self.walking[id]
        if not self.walk:
            self.local.update(dict.fromkeys(self.hidden))
            self.walking, self.hidden = {}, {}

    def publish(self, payload: bytes, rng: Random, outboxes: list[Outbox]) -> Item:
        """Put a publication into the local buffer; it waits for a turn like any other."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise CapacityExceeded(f"payload of {len(payload)} bytes: at most {PAYLOAD_BYTES_MAX}")
        if len(self.local) + len(self.walking) >= LOCAL_MAX:
            raise CapacityExceeded(f"{LOCAL_MAX} publications wait for a turn: try again later")
        if len(self.store) >= STORE_MAX:
            oldest = next(iter(self.store))
            if self._waits(oldest, outboxes):
                raise CapacityExceeded(f"{STORE_MAX} publications wait to be sent: try again later")
            self._forget(oldest)
        id = rng.getrandbits(8 * ITEM_ID_BYTES).to_bytes(ITEM_ID_BYTES, "big")
        item = Item(id, GENERATIONS_MAX, padded(payload, self.padding))
        if self.walk:
            self.walking[id], self.hidden[id] = True, EMBARGO
        else:
            self.local[id] = None
        self._keep(item)
        return item

    def receive(self, item: Item, sender: NodeId | None, topic: str) -> list[Deliver]:
        """The first copy is delivered and goes into the input buffer; the others are dropped.

        `sender` is who has it for sure, so that it is not sent there.
        """
        known = item.id in self.seen
        if item.generation == STEM:
            return self._hand_over(item, topic, known=known)
        senders = self.input.get(item.id)
        if senders is not None and sender is not None and sender not in senders:
            senders.append(sender)
        if known and item.id not in self.hidden:
            return []
        for table in (self.hidden, self.walking):
            table.pop(item.id, None)
        self.input[item.id] = [] if sender is None else [sender]
        self._keep(item)
        return [] if known else [Deliver.one(topic, item.id, item.payload)]

    def _hand_over(self, item: Item, topic: str, *, known: bool) -> list[Deliver]:
        """A publication walks in; it walks on at the next turn, unless its flood was here."""
        if known and item.id not in self.hidden:
            return []
        self.walking[item.id], self.hidden[item.id] = False, EMBARGO
        if known:
            return []
        self._keep(Item(item.id, GENERATIONS_MAX, item.body))
        return [Deliver.one(topic, item.id, item.payload)]

    def collect(self, outboxes: dict[NodeId, Outbox], rng: Random) -> None:
        """A turn: empty the buffers into what each neighbour is to get (Table 4, R1)."""
        self._walk(outboxes, rng)
        for id in [*self.input, *self.local]:
            senders = self.input.get(id, [])
            generation = self.store[id].generation
            for peer, outbox in outboxes.items():
                if peer not in senders:
                    outbox.flood(id, generation)
        self.input, self.local = {}, {}

    def _walk(self, outboxes: dict[NodeId, Outbox], rng: Random) -> None:
        """What walks goes to one neighbour, or has walked enough and is flooded from here."""
        for id, first in self.walking.items():
            if first or rng.random() * self.walk >= 1:
                outboxes[rng.choice(list(outboxes))].waiting[id] = STEM
                self.hidden[id] = rng.randrange(EMBARGO, 2 * EMBARGO)
            else:
                del self.hidden[id]
                self.local[id] = None
        self.walking = {}

    def lose(self, peer: NodeId) -> None:
        """The link is gone: a peer that comes back may have forgotten what it sent."""
        for senders in self.input.values():
            if peer in senders:
                senders.remove(peer)

    def replay(self) -> Outbox:
        """All recent publications, for a link that came up: agreement when a relay left (14).

        The newest first: of a neighbour that was away for a while, they are what it lacks.
        """
        buffers = (self.input, self.local, self.hidden)
        waiting = {
            id: kept.generation - 1
            for id, kept in reversed(self.store.items())
            if kept.generation and not any(id in buffer for buffer in buffers)
        }
        return Outbox(waiting=waiting)

    def batch(self, outbox: Outbox, serial: int) -> tuple[Item, ...]:
        """The items of one beat: first what was sent and never acknowledged, then what waits.

        What is replayed waits longest: the neighbour may have had it before the link went down.
        """
        items: list[Item] = []
        size = 0
        waiting = sorted(outbox.waiting.items(), key=self._replayed)
        pending = {**outbox.sent, **dict(waiting)}
        outbox.sent, outbox.waiting = {}, {}
        for id, generation in pending.items():
            if not self._sound(id):
                continue
            body = self.store[id].body
            size += len(body)
            if len(items) == ITEMS_MAX or (items and size > BATCH_BYTES_MAX):
                outbox.waiting[id] = generation
                continue
            outbox.sent[id] = generation = min(max(generation, 0), STEM)
            items.append(Item(id, generation, body))
        if items:
            outbox.receipts[receipt(serial, outbox.sent)] = [*outbox.sent]
        for old in [*outbox.receipts][: -RECEIPTS_MAX if items else None]:
            del outbox.receipts[old]
        return tuple(items)

    def _replayed(self, waiting: tuple[bytes, int]) -> bool:
        """Is this a copy of an older generation than the store's? Only a replay makes one."""
        id, generation = waiting
        return id in self.store and generation < self.store[id].generation

    def _sound(self, id: bytes) -> bool:
        """Is this in the store, and something that a neighbour will take? If not, forget it."""
        if id in self.store and len(id) == ITEM_ID_BYTES:
            kept = self.store[id]
            if 0 <= kept.generation <= GENERATIONS_MAX and len(kept.body) <= PAYLOAD_BYTES_MAX + 1:
                return True
        self._forget(id)
        return False

    def _forget(self, id: bytes) -> None:
        for table in (self.store, self.input, self.local, self.walking, self.hidden):
            table.pop(id, None)

    def age(self, outboxes: list[Outbox]) -> int:
        """One timeout passed: forget what is old enough and waits neither for a turn nor, behind
        others, in an outbox. Returns how many had to be forgotten that do.

        A time in the future, or so long ago that it should have been forgotten, is a corrupted
        one and becomes the present: to forget what was delivered would be worse than to remember
        it for too long.
        """
        self.now += 1
        for _ in range(len(self.seen)):
            id, since = next(iter(self.seen.items()))
            age = self.now - since
            if 0 <= age < MEMORY_TIMEOUTS:
                break
            del self.seen[id]
            if age != MEMORY_TIMEOUTS:
                self.seen[id] = self.now
        for _ in range(len(self.store)):
            id, kept = next(iter(self.store.items()))
            age = self.now - kept.since
            if 0 <= age < REPLAY_TIMEOUTS:
                break
            del self.store[id]
            if age != REPLAY_TIMEOUTS or self._waits(id, outboxes):
                self.store[id] = Kept(kept.generation, kept.body, self.now)
        self._end_embargo()
        return self._trim(outboxes)

    def _trim(self, outboxes: list[Outbox]) -> int:
        """Forget what is too much: first what all neighbours have; returns how much else."""
        excess = max(0, len(self.store) - STORE_MAX)
        sent = (id for id in [*self.store] if excess and not self._waits(id, outboxes))
        for id in islice(sent, excess):
            self._forget(id)
        lost = [*islice(self.store, max(0, len(self.store) - STORE_MAX))]
        for id in lost:
            self._forget(id)
        return len(lost)

    def unsent(self, outboxes: list[Outbox]) -> int:
        """How many wait for a turn, or for the neighbour that lacks most; replays aside."""
        waiting = [
            len(it.sent) + sum(not self._replayed(one) for one in it.waiting.items())
            for it in outboxes
        ]
        return len(self.input) + len(self.local) + len(self.walking) + max(waiting, default=0)

    def _waits(self, id: bytes, outboxes: list[Outbox]) -> bool:
        buffered = id in self.input or id in self.local or id in self.hidden
        return buffered or any(outbox.owes(id) for outbox in outboxes)

    def _end_embargo(self) -> None:
        """Whoever handed a publication over and never saw its flood begins one: it was lost."""
        for id in self.hidden:
            self.hidden[id] = min(self.hidden[id], 2 * EMBARGO) - (id not in self.walking)
        for id in [id for id, left in self.hidden.items() if left <= 0 and id not in self.walking]:
            del self.hidden[id]
            self.local[id] = None

    def _keep(self, item: Item) -> None:
        self.seen[item.id] = self.now
        self.store[item.id] = Kept(item.generation, item.body, self.now)
        while len(self.seen) > MEMORY_MAX:
            del self.seen[next(iter(self.seen))]
        while len(self.store) > 2 * STORE_MAX:
            self._forget(next(iter(self.store)))
