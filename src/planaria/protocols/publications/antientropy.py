"""Anti-entropy: two subscribers of a topic end up with the same records (paper, 4.2).

Digests on the periodic messages show a difference (M1), sketches name it (M2, M3) and the records
cross (M4, M5). Where sketches fail or are in doubt, the region-covering descent of the tries finds
it (errata T2, T3, T6), which trusts no sum. Nothing a peer says is believed: records are stored
under keys computed here, all other content only says what to ask for. A digest names its cut:
what is younger may still be on its way, and is left alone.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import astuple

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.core.state import Stateful
from planaria.protocols.publications.antientropy_messages import (
    IDS_MAX,
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
from planaria.protocols.publications.descent import short_hash
from planaria.protocols.publications.exchange import AntiEntropyState, Coming, Exchange, count_frame
from planaria.protocols.publications.holdings import ID_BITS, Holdings
from planaria.protocols.publications.push import beside, frames, sound
from planaria.protocols.publications.regions import Answer, answer_regions, answer_root
from planaria.protocols.publications.sketch import (
    CELL_BYTES,
    CELLS_MAX,
    Cells,
    estimate_difference,
    pack_tug_of_war,
    sketch_size,
)
from planaria.records.record import TIME_MAX, Place, Record

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

Take = Callable[[list[Record]], object]


class AntiEntropy(Stateful):
    """The exchanges of one subscriber `id` about one topic, on the records in `holdings`.

    The state may be arbitrary: every exchange ends by patience, and every cache is audited.
    """

    __slots__ = ("agreed", "coming", "exchanges", "holdings", "id", "number", "peers", "topic")

    state_type = AntiEntropyState

    def __init__(self, topic: str, id: NodeId, holdings: Holdings) -> None:
        self.topic, self.id, self.holdings = topic, id, holdings
        self.number = 0
        self.exchanges: dict[NodeId, Exchange] = {}
        self.peers: dict[NodeId, tuple[int, int]] = {}  # what both held at the end, strikes
        self.agreed: dict[NodeId, int] = {}  # the cut at which a peer last held what we hold
        self.coming: dict[NodeId, Coming] = {}  # frames of the last answer

    def digest(self, clock: int, cut: int) -> Digest:
        """M1: what to put on every periodic message; `clock` is the raw clock to advertise."""
        lo = self.holdings.window.lo
        clock, lo, cut = (max(0, min(it, TIME_MAX)) for it in (clock, lo, cut))
        return Digest(clock, lo, cut, self.holdings.digest(lo, cut))

    def on_digest(self, sender: NodeId, digest: Digest) -> list[Effect]:
        """M2: start an exchange if the sender shows other records than we do, both at its cut."""
        if sender == self.id or digest.lo < self.holdings.window.lo:
            return []  # the own digest, over a shorter time, will tell them
        if self.holdings.digest(digest.lo, digest.cut) == digest.digest:
            self.peers.pop(sender, None)
            self.agreed.pop(sender, None)
            self.agreed[sender] = digest.cut
            return []
        young = sum(one.started and one.life == 0 for one in self.exchanges.values())
        if young >= STARTS_MAX:
            return []  # but slow ones hold up nobody
        return self.begin(sender, digest.lo, digest.cut, digest.digest)

    def begin(self, peer: NodeId, lo: int, cut: int, theirs: int = 0) -> list[Effect]:
        """Start an exchange, if there is room for one."""
        if peer in self.exchanges or len(self.exchanges) >= EXCHANGES_MAX:
            return []
        self.number = (self.number + 1) % NUMBER_MAX
        exchange = Exchange(self.number, lo, cut, started=True, theirs=theirs)
        self.exchanges[peer] = exchange
        if self._strike(peer, theirs):
            return self._descend(peer, exchange)
        sums, cells = self.holdings.sketch(lo, cut, FIRST_CELLS)
        content = (self.holdings.inventory(lo, cut), pack_tug_of_war(sums), cells.pack())
        return [self._send(peer, Estimate, exchange, *content)]

    def on_message(self, message: Message, take: Take | None = None) -> list[Effect]:
        """What to send in answer; `take` stores the records that came, each named once, here."""
        if (
            not isinstance(message, AntiEntropyMessage)
            or message.topic != self.topic
            or message.sender == self.id
        ):
            return []
        exchange = self.exchanges.get(message.sender)
        if exchange is not None and exchange.number == message.exchange:
            exchange.age = 0
        cut, before = None, 0
        if isinstance(message, Difference | Push | Compare) and message.records:
            cut = count_frame(self.coming, message, self._current(message))
            before = self.holdings.version if cut else 0
            (take or self.holdings.append)(sound(message.records))
        handler = _HANDLERS.get(type(message))
        effects = handler(self, message) if handler else []
        if cut is None or self.holdings.version == before:  # who pushes what is here is not asked
            return effects
        return effects + self.begin(message.sender, cut.lo, cut.cut)

    def link_down(self, peer: NodeId) -> None:
        """A send to `peer` failed: do not wait for it."""
        self.exchanges.pop(peer, None)

    def on_timeout(self) -> None:
        """Check a slice of what is held, give up exchanges whose peer is silent."""
        for peer, exchange in list(self.exchanges.items()):
            exchange.age += 1
            exchange.life += 1
            fresh = 0 < exchange.age <= PATIENCE and 0 < exchange.life <= LIFETIME
            if not (fresh and exchange.sound):
                del self.exchanges[peer]
        for peer in list(self.exchanges)[EXCHANGES_MAX:]:
            del self.exchanges[peer]
        known: dict[NodeId, Any]
        for known in (self.peers, self.agreed, self.coming):
            for peer in list(known)[:-PEERS_MAX]:
                del known[peer]
        self.holdings.on_timeout()

    def _on_estimate(self, message: Estimate) -> list[Effect]:
        """M3: name the difference if it is tiny, else send as many cells as it needs."""
        state, sender = message.state, message.sender
        rival = self.exchanges.get(sender)
        if rival is not None and rival.started and self.id < sender:
            return []  # both started at once: the one of the lower id goes on
        self.exchanges.pop(sender, None)
        exchange = self._join(message, state.lo, state.cut)
        theirs = Cells(0).extended(message.cells[: FIRST_CELLS * CELL_BYTES])
        if exchange is None or theirs is None or self._agrees(state):
            return self._end(message)
        exchange.theirs = state.digest
        sums, mine = self.holdings.sketch(state.lo, state.cut, len(theirs))
        decoded = mine.minus(theirs).decode()
        if decoded is not None:
            return self._name_difference(sender, exchange, state, decoded)
        estimate = estimate_difference(sums, message.tug_of_war) or 0.0
        gap = abs(self.holdings.count(state.lo, state.cut) - state.count)
        size = min(sketch_size(max(estimate, gap)), self._cells_max(state))
        if size > CELLS_MAX:
            return self._descend(sender, exchange)
        return self._send_cells(sender, exchange, size)

    def _on_sketch(self, message: Sketch) -> list[Effect]:
        """M4: name the difference, or ask for more cells, or doubt the sketches."""
        sender, state = message.sender, message.state
        exchange = self._current(message)
        part = (state.lo, state.cut)
        if exchange is None or not exchange.started or part != (exchange.lo, exchange.cut):
            return []
        inventory, cells = astuple(state), exchange.received()
        follows = cells is not None and len(cells) == message.start
        whole = cells.extended(message.cells) if cells is not None and follows else None
        changed = exchange.inventory not in (None, inventory)
        if whole is None or changed or len(whole) > self._cells_max(state):
            return self._end(message)  # the peer changed meanwhile: the next digest begins anew
        if self._agrees(state):
            return self._end(message)
        _, mine = self.holdings.sketch(state.lo, state.cut, len(whole))
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
        places, unknown = self.holdings.by_ids(message.want, message.lo, message.cut, WANT_BITS)
        if unknown and exchange is not None:
            self._doubt(message.sender)
        return self._push(message.sender, message.exchange, places, unknown)

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
        places, unknown = self.holdings.by_ids(ours, exchange.lo, exchange.cut)
        if unknown or not (ours or theirs):
            self._doubt(peer)  # a sketch that contradicts log or digest
            return self._descend(peer, exchange)
        floor = int.from_bytes(state.floor, "big")
        filled = frames(self.holdings.bodies(place for place in places if place >= floor))
        want = [id >> (ID_BITS - WANT_BITS) for id in theirs[:IDS_MAX]]
        content = (exchange.lo, exchange.cut, beside(filled), want)
        effects = [self._send(peer, Difference, exchange, *content)]
        effects += [self._send(peer, Push, exchange, frame, []) for frame in filled]
        if not theirs:
            self._finish(peer)
        return effects

    def _descend(self, peer: NodeId, exchange: Exchange) -> list[Effect]:
        """Begin the descent with the root hash."""
        root = short_hash(self.holdings.trie(exchange.lo, exchange.cut).root_hash)
        return [self._send(peer, Root, exchange, exchange.lo, exchange.cut, root)]

    def _compare(
        self,
        message: Root | Compare,
        answer: Callable[[Holdings, Any, int], Answer],
    ) -> list[Effect]:
        """Answer with regions and records; no regions end the descent."""
        lo = max(message.lo, self.holdings.window.lo)  # what the younger window hides is no matter
        exchange = self._join(message, lo, message.cut)
        if exchange is None:
            return self._end(message)
        regions, missing = answer(self.holdings, message, lo)
        peer, filled = message.sender, frames(self.holdings.bodies(missing))
        if not regions:
            self._finish(peer)
            if not filled:
                return [self._send(peer, Done, exchange)]
            return [self._send(peer, Push, exchange, frame, []) for frame in filled]
        effects: list[Effect] = []
        for start in range(0, min(len(regions), COMPARES_MAX * REGIONS_MAX), REGIONS_MAX):
            content = (lo, message.cut, regions[start : start + REGIONS_MAX], beside(filled))
            effects.append(self._send(peer, Compare, exchange, *content))
        return effects + [self._send(peer, Push, exchange, frame, []) for frame in filled]

    def _push(
        self, peer: NodeId, number: int, places: list[Place], unknown: list[int]
    ) -> list[Effect]:
        filled = frames(self.holdings.bodies(places))
        pushes = [Push(self.topic, self.id, number, beside(filled), unknown)]
        pushes += [Push(self.topic, self.id, number, frame, []) for frame in filled]
        return [Send(peer, push) for push in pushes]

    def _send_cells(self, peer: NodeId, exchange: Exchange, size: int) -> list[Effect]:
        _, cells = self.holdings.sketch(exchange.lo, exchange.cut, size)
        start, exchange.sent = exchange.sent, size
        state = self.holdings.inventory(exchange.lo, exchange.cut)
        return [self._send(peer, Sketch, exchange, state, start, cells.pack(start))]

    def _send(
        self, peer: NodeId, kind: Callable[..., Message], exchange: Exchange, *fields: Any
    ) -> Effect:
        return Send(peer, kind(self.topic, self.id, exchange.number, *fields))

    def _agrees(self, state: Inventory) -> bool:
        return self.holdings.digest(state.lo, state.cut) == state.digest

    def _cells_max(self, state: Inventory) -> int:
        """More cells than this are dearer than all ids of both."""
        return 2 * (self.holdings.count(state.lo, state.cut) + state.count) + 64

    def _current(self, message: AntiEntropyMessage) -> Exchange | None:
        """The exchange to which `message` belongs, if it is still open."""
        exchange = self.exchanges.get(message.sender)
        current = exchange is not None and exchange.number == message.exchange and exchange.sound
        return exchange if current else None

    def _join(self, message: AntiEntropyMessage, lo: int, cut: int) -> Exchange | None:
        """The exchange of `message`, opened if there is room; None if there is none."""
        exchange = self._current(message)
        if exchange is None and lo >= self.holdings.window.lo:
            others = [peer for peer in self.exchanges if peer != message.sender]
            if len(others) < EXCHANGES_MAX:
                exchange = Exchange(message.exchange, lo, cut, started=False)
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
        """An exchange came to its end: remember what both held then."""
        exchange = self.exchanges.pop(peer, None)
        theirs = 0 if exchange is None else exchange.theirs
        _, strikes = self.peers.pop(peer, (0, 0))
        self.peers[peer] = (self.holdings.version ^ theirs, strikes)
        if len(self.peers) > PEERS_MAX:
            del self.peers[next(iter(self.peers))]

    def _strike(self, peer: NodeId, theirs: int) -> bool:
        """Digests differ: have both been the same since an exchange that should have ended it?

        Who holds much more than the peer changes nothing of its own for many exchanges.
        """
        version, strikes = self.peers.pop(peer, (-1, 0))
        if strikes < STRIKES_MAX:
            strikes = max(0, strikes) + 1 if version == self.holdings.version ^ theirs else 0
            self.peers[peer] = (version, strikes)
            if strikes < STRIKES_MAX:
                return False
            self._doubt(peer)
        self.peers[peer] = (self.holdings.version, 0)
        return True

    def _doubt(self, peer: NodeId) -> None:
        """Something contradicts: make sketches anew, audit soon, descend with this peer next."""
        self.peers.pop(peer, None)
        self.peers[peer] = (self.holdings.version, STRIKES_MAX)
        self.holdings.doubt()


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

EXCHANGED: tuple[type[Message], ...] = tuple(_HANDLERS)  # what `on_message` takes
