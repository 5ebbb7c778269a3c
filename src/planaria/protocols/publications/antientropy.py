"""Anti-entropy: two subscribers of a topic end up with the same records (paper, 4.2).

Digests on the periodic messages show a difference (M1), sketches name it (M2, M3) and the records
cross (M4, M5). Where sketches fail or are in doubt, the region-covering descent of the tries finds
it (errata T2, T3, T6), which trusts no sum. Nothing a peer says is believed: records are stored
under keys computed here, all other content only says what to ask for. A digest names its cut:
what is younger may still be on its way, and is left alone.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import astuple

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send
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
from planaria.protocols.publications.exchange import (
    WANT_BITS,
    Coming,
    Exchange,
    begin_of,
    count_frame,
)
from planaria.protocols.publications.exchanges import EXCHANGES_MAX, Exchanges
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.push import PUSH_FRAMES_MAX, beside, frames, sound
from planaria.protocols.publications.regions import Answer, answer_regions, answer_root
from planaria.protocols.publications.sketch import (
    CELL_BYTES,
    CELLS_MAX,
    TUG_OF_WAR_BYTES,
    Cells,
    estimate_difference,
    pack_tug_of_war,
    sketch_size,
)
from planaria.records.record import TIME_MAX, Place, Record

STARTS_MAX = 2  # begun in one interval: one is slow at hubs, more make several push the same
MORE_MAX = 2  # times that cells are asked for again; then the sketches are in doubt
FIRST_CELLS = 4  # decode differences of one or two ids without an estimate
COMPARES_MAX = 16  # messages full of regions in answer to one message
NUMBER_MAX = 2**31 - 1

Take = Callable[[list[Record]], object]


class AntiEntropy(Exchanges):
    """What one subscriber says in its exchanges about one topic, and what it makes of answers."""

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
            self.agree(sender, digest.cut)
            return []
        if self._crosses(sender):
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
        return [self._send(peer, Estimate, exchange, *self._estimate(lo, cut))]

    def _estimate(self, lo: int, cut: int) -> tuple[Inventory, bytes, bytes]:
        """What tells a peer how far apart we are: of nothing zeros, before numpy is loaded."""
        inventory = self.holdings.inventory(lo, cut)
        if not inventory.count:
            return inventory, bytes(TUG_OF_WAR_BYTES), bytes(FIRST_CELLS * CELL_BYTES)
        sums, cells = self.holdings.sketch(lo, cut, FIRST_CELLS)
        return inventory, pack_tug_of_war(sums), cells.pack()

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
        cut = None
        if isinstance(message, Difference | Push | Compare) and message.records:
            records = sound(message.records)
            current, held = self._current(message), self.holdings.version
            cut = count_frame(self.coming, message, current, records, held)
            if message.sender in self.coming and self.coming[message.sender].want:
                self._cross(message.sender)
            (take or self.holdings.append)(records)
        handler = _HANDLERS.get(type(message))
        effects = handler(self, message) if handler else []
        if cut is None or self.holdings.version == cut.held:
            return effects  # who pushes what is here is not asked
        return effects + self._go_on(message.sender, cut)

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
        places = [] if state.count else self.holdings.places(state.lo, state.cut)
        if places:  # the peer is a newcomer: it lacks all, and need not be told what that is
            return self._exchange_named(sender, exchange, state, places, [])
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
        """A sketch was decoded: push what only we have, ask for what only the peer has."""
        ours, theirs = decoded
        places, unknown = self.holdings.by_ids(ours, exchange.lo, exchange.cut)
        if unknown or not (ours or theirs):
            self._doubt(peer)  # a sketch that contradicts log or digest
            return self._descend(peer, exchange)
        return self._exchange_named(peer, exchange, state, places, theirs)

    def _exchange_named(
        self,
        peer: NodeId,
        exchange: Exchange,
        state: Inventory,
        places: list[Place],
        theirs: list[int],
    ) -> list[Effect]:
        """Push what is at these places, ask for what the peer has."""
        floor = int.from_bytes(state.floor, "big")
        filled = self._answer(peer, (place for place in places if place >= floor))
        want = [begin_of(id) for id in theirs[:IDS_MAX]]
        if want:
            coming = Coming(exchange.number, exchange.lo, exchange.cut, exchange.started)
            self.coming[peer] = coming
            coming.ask(want, self.holdings.version)
        content = (exchange.lo, exchange.cut, beside(filled), want)
        effects = [self._send(peer, Difference, exchange, *content)]
        effects += [self._send(peer, Push, exchange, frame, []) for frame in filled]
        if not theirs:
            self._finish(peer)
        return effects

    def _go_on(self, peer: NodeId, cut: Coming) -> list[Effect]:
        """An answer was cut: ask for the rest of it, or for what there is to ask."""
        want = cut.rest()
        if not want or peer in self.exchanges:  # one that began meanwhile will name the rest
            return self.begin(peer, cut.lo, cut.cut)
        cut.ask(want, self.holdings.version)
        return [Send(peer, Difference(self.topic, self.id, cut.number, cut.lo, cut.cut, [], want))]

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
        peer = message.sender
        filled = self._answer(peer, missing)
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

    def _answer(self, peer: NodeId, places: Iterable[Place]) -> list[list[bytes]]:
        """The first of what is at these places, in frames; more than that goes on for a while."""
        filled = frames(self.holdings.bodies(places))
        if len(filled) == PUSH_FRAMES_MAX:
            self._cross(peer)
        return filled

    def _push(
        self, peer: NodeId, number: int, places: list[Place], unknown: list[int]
    ) -> list[Effect]:
        filled = self._answer(peer, places)
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

    def _end(self, message: AntiEntropyMessage) -> list[Effect]:
        """Close the exchange of `message`, if there is one, and say so."""
        if self._current(message) is not None:
            del self.exchanges[message.sender]
        return [Send(message.sender, Done(self.topic, self.id, message.exchange))]


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
