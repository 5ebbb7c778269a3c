"""A few subscribers of one topic who all know each other, with clocks that a test may set."""

from collections import Counter, deque
from collections.abc import Iterable
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Deliver, Effect, Send
from planaria.core.state import decode_state
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.broadcast import View
from planaria.protocols.skipring.history import History, HistoryState
from planaria.records.memory import MemoryStore
from planaria.records.record import Draft, decode

START = 1_700_000_000
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 31_536_000
FOREVER = Retention()


def history(id: NodeId, retention: Retention = FOREVER, *, ordered: bool = False) -> History:
    return History("t", id, Random(id), retention, MemoryStore(), ordered=ordered)


def payloads(bodies: Iterable[bytes]) -> set[bytes]:
    records = [decode(data) for data in bodies]
    return {it.payload for record in records for it in record.publications(0, 1 << 62)}


class Topic:
    """Everybody floods to everybody; an interval is `interval` seconds of true time."""

    def __init__(self, n: int, retention: Retention = FOREVER, interval: int = MINUTE) -> None:
        self.interval = interval
        self.now = START
        self.skew = [0] * n
        self.held_back = False  # are messages kept in flight?
        self.flight: deque[tuple[NodeId, Message]] = deque()
        self.handed: list[Counter[bytes]] = [Counter() for _ in range(n)]
        self.nodes = [history(id, retention) for id in range(n)]
        self.pass_time(3 * interval)

    def view(self, id: NodeId) -> View:
        others = [(other, other) for other in range(len(self.nodes)) if other != id]
        return View(None, id, others, doubt=True)

    def publish(self, id: NodeId, payload: bytes) -> None:
        self.perform(id, self.nodes[id].publish(self.view(id), Draft(payload)))

    def perform(self, id: NodeId, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.flight.append((effect.target, effect.message))
            elif isinstance(effect, Deliver):
                self.handed[id].update(it.payload for it in effect.publications)
        while self.flight and not self.held_back:
            target, message = self.flight.popleft()
            self.perform(target, self.nodes[target].on_message(self.view(target), message))

    def read_clocks(self) -> None:
        for id, node in enumerate(self.nodes):
            self.perform(id, node.read_clock(self.now + self.skew[id]))

    def pass_time(self, seconds: int) -> None:
        for _ in range(-(-seconds // self.interval)):
            self.now += self.interval
            self.read_clocks()
            for id, node in enumerate(self.nodes):
                others = [other for other in range(len(self.nodes)) if other != id]
                self.perform(id, node.on_timeout(others))
            for id, node in enumerate(self.nodes):
                for other in range(len(self.nodes)):
                    if other != id:
                        self.perform(other, self.nodes[other].on_digest(id, node.digest()))

    def shown(self, id: NodeId) -> set[bytes]:
        holdings = self.nodes[id].holdings
        return payloads(record.data for record in holdings.at(holdings.store.index.order))

    def in_memory(self, id: NodeId) -> set[bytes]:
        store = self.nodes[id].holdings.store
        assert isinstance(store, MemoryStore)
        return payloads(store.state().bodies.values())

    def retain(self, retention: Retention) -> None:
        for node in self.nodes:
            node.retain(retention)

    def restart(self, retention: Retention) -> None:
        """All stop and start again from what they stored, with another setting."""
        for id, old in enumerate(self.nodes):
            self.nodes[id] = history(id, retention)
            self.nodes[id].load(decode_state(HistoryState, old.snapshot()))
        self.read_clocks()
