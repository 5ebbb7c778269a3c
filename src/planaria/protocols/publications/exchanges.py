"""The books of anti-entropy: which exchanges are open, and what is remembered of peers."""

from typing import Any

from planaria.core.ids import NodeId
from planaria.core.state import Stateful
from planaria.protocols.publications.antientropy_messages import AntiEntropyMessage
from planaria.protocols.publications.exchange import AntiEntropyState, Coming, Exchange
from planaria.protocols.publications.holdings import Holdings

EXCHANGES_MAX = 64  # at a time: all neighbours of a large ring's hub, however slow they are
PATIENCE = 12  # own timeouts without a word of the peer: two slow messages and a little
LIFETIME = 64  # own timeouts after which it is given up even if the peer goes on speaking
PEERS_MAX = 64  # peers whose last exchange is remembered: all neighbours of a large ring's hub
STRIKES_MAX = 2  # differing digests after an exchange that changed nothing: one may be old


class Exchanges(Stateful):
    """The exchanges of one subscriber `id` about one topic, on the records in `holdings`.

    The state may be arbitrary: every exchange ends by patience, and every cache is audited.
    """

    __slots__ = (
        "agreed", "coming", "crossing", "exchanges", "holdings", "id", "number", "peers", "topic",
    )  # fmt: skip

    state_type = AntiEntropyState

    def __init__(self, topic: str, id: NodeId, holdings: Holdings) -> None:
        self.topic, self.id, self.holdings = topic, id, holdings
        self.number = 0
        self.exchanges: dict[NodeId, Exchange] = {}
        self.peers: dict[NodeId, tuple[int, int]] = {}  # what both held at the end, strikes
        self.agreed: dict[NodeId, int] = {}  # the cut at which a peer last held what we hold
        self.coming: dict[NodeId, Coming] = {}  # frames of the last answer
        self.crossing: dict[NodeId, bool] = {}  # a full answer is on its way; was a digest let go?

    def link_down(self, peer: NodeId) -> None:
        """A send to `peer` failed: do not wait for it, nor for what was on its way."""
        self.exchanges.pop(peer, None)
        self.crossing.pop(peer, None)

    def agree(self, peer: NodeId, cut: int) -> None:
        """Both hold the same at this cut: nothing is on its way that matters."""
        known: dict[NodeId, Any]
        for known in (self.peers, self.agreed, self.coming, self.crossing):
            known.pop(peer, None)
        self.agreed[peer] = cut

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
        for known in (self.peers, self.agreed, self.coming, self.crossing):
            for peer in list(known)[:-PEERS_MAX]:
                del known[peer]
        self.holdings.on_timeout()

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

    def _cross(self, peer: NodeId) -> None:
        """More records than one frame holds are on their way between us."""
        self.crossing.setdefault(peer, False)

    def _crosses(self, peer: NodeId) -> bool:
        """Does this digest differ for what is on its way? One is let go; the next begins anew."""
        passed = self.crossing.pop(peer, True)
        if not passed:
            self.crossing[peer] = True
        return not passed

    def _doubt(self, peer: NodeId) -> None:
        """Something contradicts: make sketches anew, audit soon, descend with this peer next."""
        self.peers.pop(peer, None)
        self.peers[peer] = (self.holdings.version, STRIKES_MAX)
        self.holdings.doubt()
