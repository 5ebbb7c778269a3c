"""Anti-entropy: two subscribers of a topic end up with the same publications (paper, 4.2).

Digests on the periodic messages show a difference (M1), sketches name it (M2, M3) and the
publications cross (M4, M5). Where sketches fail or are in doubt, the region-covering descent of the
tries finds it (errata T2, T3, T6), which needs no cache at all. Nothing a peer says is believed:
publications are stored under keys computed here, all other content only says what to ask for.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import astuple

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.core.state import State, Stateful
from planaria.protocols.publications.antientropy_messages import (
    IDS_MAX,
    RANK_BYTES,
    REGIONS_MAX,
    AntiEntropyMessage,
    Compare,
    Difference,
    Digest,
    Done,
    Estimate,
    Inventory,
    More,
    Push,
    Root,
    Sketch,
)
from planaria.protocols.publications.exchange import Exchange
from planaria.protocols.publications.publication import (
    TIME_MAX,
    Named,
    Publication,
    key,
    rank_of,
    sound,
)
from planaria.protocols.publications.push import fits_beside, frames
from planaria.protocols.publications.regions import Answer, answer_regions, answer_root
from planaria.protocols.publications.sketch import (
    CELL_BYTES,
    CELLS_MAX,
    Cells,
    estimate_difference,
    pack_tug_of_war,
    sketch_size,
)
from planaria.protocols.publications.store import ID_BITS, PublicationStore

STARTS_MAX = 2  # begun in one interval: one is slow at hubs, more make several push the same
EXCHANGES_MAX = 64  # at a time: all neighbours of a large ring's hub, however slow they are
PATIENCE = 12  # own timeouts without a word of the peer: two slow messages and a little
LIFETIME = 64  # own timeouts after which it is given up even if the peer goes on speaking
MORE_MAX = 2  # times that cells are asked for again; then the sketches are in doubt
FIRST_CELLS = 4  # decode differences of one or two ids without an estimate
WANT_BITS = 32  # of an id, in a request
PEERS_MAX = 64  # peers whose last exchange is remembered: all neighbours of a large ring's hub
STRIKES_MAX = 2  # differing digests after an exchange that changed nothing: one may be old
COMPARES_MAX = 16  # messages full of regions in answer to one message
NUMBER_MAX = 2**31 - 1


class AntiEntropyState(State):
    """The clock to advertise, exchanges under way, and what was learned of peers."""

    clock: int
    number: int
    exchanges: dict[int, Exchange]
    peers: dict[int, tuple[int, int]]


class AntiEntropy(Stateful):
    """The exchanges of one subscriber `id` about one topic, on the publications in `store`.

    `clock` is the raw clock to advertise. The state may be arbitrary: every exchange ends
    by patience, and every cache is audited.
    """

    __slots__ = ("clock", "exchanges", "id", "number", "peers", "store", "topic")

    state_type = AntiEntropyState

    def __init__(self, topic: str, id: NodeId, store: PublicationStore) -> None:
        self.topic = topic
        self.id = id
        self.store = store
        self.clock = 0
        self.number = 0
        self.exchanges: dict[NodeId, Exchange] = {}
        self.peers: dict[NodeId, tuple[int, int]] = {}  # store's version at the end, strikes

    def digest(self) -> Digest:
        """M1: what to put on every periodic message."""
        clock, lo = (max(0, min(it, TIME_MAX)) for it in (self.clock, self.store.window.lo))
        return Digest(clock, lo, self.store.digest(lo))

    def on_digest(self, sender: NodeId, digest: Digest) -> list[Effect]:
        """M2: start an exchange if the sender shows other publications than we do."""
        if sender == self.id or digest.lo < self.store.window.lo:
            return []  # the own digest, over a shorter time, will tell them
        if self.store.digest(digest.lo) == digest.digest:
            self.peers.pop(sender, None)
            return []
        if sender in self.exchanges or len(self.exchanges) >= EXCHANGES_MAX:
            return []
        young = sum(one.started and one.life == 0 for one in self.exchanges.values())
        if young >= STARTS_MAX:
            return []  # but slow ones hold up nobody
        self.number = (self.number + 1) % NUMBER_MAX
        exchange = Exchange(self.number, digest.lo, started=True)
        self.exchanges[sender] = exchange
        if self._strike(sender):
            return self._descend(sender, exchange)
        sums, cells = self.store.sketch(digest.lo, FIRST_CELLS)
        state = self._state(digest.lo)
        return [self._send(sender, Estimate, exchange, state, pack_tug_of_war(sums), cells.pack())]

    def on_message(self, message: Message) -> tuple[list[Effect], list[Named]]:
        """What to send in answer, and the publications that are new here, whether kept or not."""
        fresh: list[Named] = []
        if (
            not isinstance(message, AntiEntropyMessage)
            or message.topic != self.topic
            or message.sender == self.id
        ):
            return [], fresh
        exchange = self.exchanges.get(message.sender)
        if exchange is not None and exchange.number == message.exchange:
            exchange.age = 0
        if isinstance(message, Difference | Push | Compare):
            for publication in filter(sound, message.publications):
                name = key(publication)
                if self.store.offer(publication, name):
                    fresh.append((name, publication))
        handler = _HANDLERS.get(type(message))
        return handler(self, message) if handler else [], fresh

    def link_down(self, peer: NodeId) -> None:
        """A send to `peer` failed: do not wait for it."""
        self.exchanges.pop(peer, None)

    def on_timeout(self) -> None:
        """Check a slice of the store, give up exchanges whose peer is silent."""
        for peer, exchange in list(self.exchanges.items()):
            exchange.age += 1
            exchange.life += 1
            fresh = 0 < exchange.age <= PATIENCE and 0 < exchange.life <= LIFETIME
            if not (fresh and exchange.sound):
                del self.exchanges[peer]
        for peer in list(self.exchanges)[EXCHANGES_MAX:]:
            del self.exchanges[peer]
        for peer in list(self.peers)[:-PEERS_MAX]:
            del self.peers[peer]
        self.store.on_timeout()

    def _on_estimate(self, message: Estimate) -> list[Effect]:
        """M3: name the difference if it is tiny, else send as many cells as it needs."""
        state, sender = message.state, message.sender
        rival = self.exchanges.get(sender)
        if rival is not None and rival.started and self.id < sender:
            return []  # both started at once: the one of the lower id goes on
        self.exchanges.pop(sender, None)
        exchange = self._join(message, state.lo)
        theirs = Cells(0).extended(message.cells[: FIRST_CELLS * CELL_BYTES])
        if exchange is None or theirs is None or self.store.digest(state.lo) == state.digest:
            return self._end(message)
        sums, mine = self.store.sketch(state.lo, len(theirs))
        decoded = mine.minus(theirs).decode()
        if decoded is not None:
            return self._name_difference(sender, exchange, state, decoded)
        estimate = estimate_difference(sums, message.tug_of_war) or 0.0
        gap = abs(self.store.count(state.lo) - state.count)
        size = min(sketch_size(max(estimate, gap)), self._cells_max(state))
        if size > CELLS_MAX:
            return self._descend(sender, exchange)
        return self._send_cells(sender, exchange, size)

    def _on_sketch(self, message: Sketch) -> list[Effect]:
        """M4: name the difference, or ask for more cells, or doubt the sketches."""
        sender, state = message.sender, message.state
        exchange = self._current(message)
        if exchange is None or not exchange.started or state.lo != exchange.lo:
            return []
        inventory, cells = astuple(state), exchange.received()
        follows = cells is not None and len(cells) == message.start
        whole = cells.extended(message.cells) if cells is not None and follows else None
        changed = exchange.inventory not in (None, inventory)
        if whole is None or changed or len(whole) > self._cells_max(state):
            return self._end(message)  # the peer changed meanwhile: the next digest begins anew
        if self.store.digest(state.lo) == state.digest:
            return self._end(message)
        _, mine = self.store.sketch(state.lo, len(whole))
        decoded = mine.minus(whole).decode()
        if decoded is not None:
            return self._name_difference(sender, exchange, state, decoded)
        exchange.inventory, exchange.cells = inventory, [*exchange.cells, message.cells]
        exchange.more += 1
        size = min((len(whole) + 1) // 2, min(CELLS_MAX, self._cells_max(state)) - len(whole))
        if exchange.more > MORE_MAX or size <= 0:
            self._doubt(sender)
            return self._descend(sender, exchange)
        return [self._send(sender, More, exchange, len(whole), size)]

    def _on_more(self, message: More) -> list[Effect]:
        """The next cells of the same sequence."""
        exchange = self._current(message)
        if exchange is None or exchange.started or exchange.sent != message.start:
            return []
        exchange.more += 1
        size = exchange.sent + message.size
        if exchange.more > MORE_MAX or message.size > exchange.sent or size > CELLS_MAX:
            return self._end(message)
        return self._send_cells(message.sender, exchange, size)

    def _on_difference(self, message: Difference) -> list[Effect]:
        """M4 or M5: push what was asked for; say which ids nobody has."""
        exchange = self._current(message)
        self._complete(message)
        if not message.want:
            return []
        found, unknown = self.store.by_ids(message.want, message.lo, WANT_BITS)
        if unknown and exchange is not None:
            self._doubt(message.sender)
        return self._push(message.sender, message.exchange, found, unknown)

    def _on_push(self, message: Push) -> list[Effect]:
        """PUBLISH (paper, Alg. 5); an unknown id that we asked for puts the sketches in doubt."""
        exchange = self._current(message)
        self._complete(message)
        if message.unknown and exchange is not None:
            self._doubt(message.sender)
        return []

    def _on_root(self, message: Root) -> list[Effect]:
        """The descent begins, or takes the place of a sketch that helped nobody."""
        if self._current(message) is not None:
            self._doubt(message.sender)
        return self._compare(message, answer_root)

    def _on_compare(self, message: Compare) -> list[Effect]:
        """The descent goes on."""
        return self._compare(message, answer_regions)

    def _on_done(self, message: Done) -> list[Effect]:
        """The peer has no more to say; maybe it said nothing at all."""
        if self._current(message) is not None:
            del self.exchanges[message.sender]
        return []

    def _name_difference(
        self,
        peer: NodeId,
        exchange: Exchange,
        state: Inventory,
        decoded: tuple[list[int], list[int]],
    ) -> list[Effect]:
        """Push what only we have, ask for what only the peer has."""
        ours, theirs = decoded
        found, unknown = self.store.by_ids(ours, exchange.lo)
        if unknown or not (ours or theirs):
            self._doubt(peer)  # a sketch that contradicts log or digest
            return self._descend(peer, exchange)
        floor = int.from_bytes(state.floor, "big")
        filled = frames(p for p in found if rank_of(p) >= floor)
        first = filled.pop(0) if filled and fits_beside(filled[0]) else []
        want = [id >> (ID_BITS - WANT_BITS) for id in theirs[:IDS_MAX]]
        effects = [self._send(peer, Difference, exchange, exchange.lo, first, want)]
        effects += [self._send(peer, Push, exchange, frame, []) for frame in filled]
        if not theirs:
            self._finish(peer)
        return effects

    def _descend(self, peer: NodeId, exchange: Exchange) -> list[Effect]:
        """Begin the descent with the root hash."""
        return [self._send(peer, Root, exchange, exchange.lo, self.store.digest(exchange.lo))]

    def _compare(
        self,
        message: Root | Compare,
        answer: Callable[[PublicationStore, Any, int], Answer],
    ) -> list[Effect]:
        """Answer with regions and publications; no regions end the descent."""
        lo = max(message.lo, self.store.window.lo)  # what the younger window hides is no matter
        exchange = self._join(message, lo)
        if exchange is None:
            return self._end(message)
        regions, missing = answer(self.store, message, lo)
        peer, filled = message.sender, frames(missing)
        if not regions:
            self._finish(peer)
            if not filled:
                return [self._send(peer, Done, exchange)]
            return [self._send(peer, Push, exchange, frame, []) for frame in filled]
        effects: list[Effect] = []
        for start in range(0, min(len(regions), COMPARES_MAX * REGIONS_MAX), REGIONS_MAX):
            first = filled.pop(0) if filled and fits_beside(filled[0]) else []
            part = regions[start : start + REGIONS_MAX]
            effects.append(self._send(peer, Compare, exchange, lo, part, first))
        return effects + [self._send(peer, Push, exchange, frame, []) for frame in filled]

    def _push(
        self, peer: NodeId, number: int, found: list[Publication], unknown: list[int]
    ) -> list[Effect]:
        filled = frames(found)
        first = filled.pop(0) if filled and fits_beside(filled[0]) else []
        pushes = [Push(self.topic, self.id, number, first, unknown)]
        pushes += [Push(self.topic, self.id, number, frame, []) for frame in filled]
        return [Send(peer, push) for push in pushes]

    def _send_cells(self, peer: NodeId, exchange: Exchange, size: int) -> list[Effect]:
        _, cells = self.store.sketch(exchange.lo, size)
        start, exchange.sent = exchange.sent, size
        state = self._state(exchange.lo)
        return [self._send(peer, Sketch, exchange, state, start, cells.pack(start))]

    def _send(
        self, peer: NodeId, kind: Callable[..., Message], exchange: Exchange, *fields: Any
    ) -> Effect:
        return Send(peer, kind(self.topic, self.id, exchange.number, *fields))

    def _state(self, lo: int) -> Inventory:
        floor = self.store.floor
        packed = b"" if floor is None else floor.to_bytes(RANK_BYTES, "big")
        return Inventory(lo, self.store.digest(lo), self.store.count(lo), packed)

    def _cells_max(self, state: Inventory) -> int:
        """More cells than this are dearer than all ids of both."""
        return 2 * (self.store.count(state.lo) + state.count) + 64

    def _current(self, message: AntiEntropyMessage) -> Exchange | None:
        """The exchange to which `message` belongs, if it is still open."""
        exchange = self.exchanges.get(message.sender)
        if exchange is None or exchange.number != message.exchange or not exchange.sound:
            return None
        return exchange

    def _join(self, message: AntiEntropyMessage, lo: int) -> Exchange | None:
        """The exchange of `message`, opened if there is room; None if there is none."""
        exchange = self._current(message)
        if exchange is None and lo >= self.store.window.lo:
            others = [peer for peer in self.exchanges if peer != message.sender]
            if len(others) < EXCHANGES_MAX:
                exchange = Exchange(message.exchange, lo, started=False)
                self.exchanges[message.sender] = exchange
        return exchange

    def _end(self, message: AntiEntropyMessage) -> list[Effect]:
        """Close the exchange of `message`, if there is one, and say so."""
        if self._current(message) is not None:
            del self.exchanges[message.sender]
        return [Send(message.sender, Done(self.topic, self.id, message.exchange))]

    def _complete(self, message: AntiEntropyMessage) -> None:
        if self._current(message) is not None:
            self._finish(message.sender)

    def _finish(self, peer: NodeId) -> None:
        """An exchange came to its end: remember what was held then."""
        self.exchanges.pop(peer, None)
        _, strikes = self.peers.pop(peer, (0, 0))
        self.peers[peer] = (self.store.version, strikes)
        if len(self.peers) > PEERS_MAX:
            del self.peers[next(iter(self.peers))]

    def _strike(self, peer: NodeId) -> bool:
        """Digests differ: has that been so since an exchange that should have ended it?"""
        version, strikes = self.peers.pop(peer, (-1, 0))
        if strikes < STRIKES_MAX:
            strikes = max(0, strikes) + 1 if version == self.store.version else 0
            self.peers[peer] = (version, strikes)
            if strikes < STRIKES_MAX:
                return False
            self._doubt(peer)
        self.peers[peer] = (self.store.version, 0)
        return True

    def _doubt(self, peer: NodeId) -> None:
        """Something contradicts: make sketches anew, audit soon, descend with this peer next."""
        self.peers.pop(peer, None)
        self.peers[peer] = (self.store.version, STRIKES_MAX)
        self.store.doubt()


_HANDLERS: dict[type[Message], Callable[[AntiEntropy, Any], list[Effect]]] = {
    Estimate: AntiEntropy._on_estimate,
    Sketch: AntiEntropy._on_sketch,
    More: AntiEntropy._on_more,
    Difference: AntiEntropy._on_difference,
    Push: AntiEntropy._on_push,
    Root: AntiEntropy._on_root,
    Compare: AntiEntropy._on_compare,
    Done: AntiEntropy._on_done,
}
