"""Two subscribers joined by a channel that loses what a test wants lost."""

from collections import deque
from collections.abc import Callable

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.message import Message, tag_of
from planaria.core.node import Effect, Send
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.records.window import LIMIT_MAX, Window

TOPIC = "news"
CODEC = Codec(RingOverlay.messages)


ALL = TIME_MAX  # the cut of a digest that leaves nothing alone


def record(number: int, *, time: int = 3, size: int = 8) -> Record:
    return seal((number % 5, bytes(12)), number, [Draft(bytes(size))], time=time)


def peer(id: NodeId, numbers: list[int], *, limit: int = LIMIT_MAX) -> AntiEntropy:
    holdings = Holdings(MemoryStore())
    holdings.show(Window(limit=limit))
    holdings.append([record(number, time=3 + number % 3) for number in numbers])
    return AntiEntropy(TOPIC, id, holdings)


def held(subscriber: AntiEntropy) -> list[int]:
    return subscriber.holdings.places(0, ALL)


def bodies(subscriber: AntiEntropy) -> list[bytes]:
    return [record.data for record in subscriber.holdings.at(held(subscriber))]


class Channel:
    """Carries encoded messages among peers; counts them; loses those that `lost` selects."""

    def __init__(
        self, *peers: AntiEntropy, lost: Callable[[Message], bool] = lambda _: False
    ) -> None:
        self.peers = {each.id: each for each in peers}
        self.lost = lost
        self.waiting: deque[tuple[NodeId, bytes]] = deque()
        self.tags: list[str] = []
        self.size = self.pushed = 0
        self.delivered: dict[NodeId, list[Record]] = {each.id: [] for each in peers}

    def send(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Send)
            data = CODEC.encode(effect.message)
            self.tags.append(tag_of(effect.message))
            self.size += len(data)
            self.pushed += len(getattr(effect.message, "records", ()))
            if not self.lost(effect.message):
                self.waiting.append((effect.target, data))

    def run(self, limit: int = 10_000) -> None:
        for _ in range(limit):
            if not self.waiting:
                return
            target, data = self.waiting.popleft()
            if target in self.peers:
                self.send(self.peers[target].on_message(CODEC.decode(data), self.take(target)))
        raise AssertionError(f"still talking after {limit} messages: {self.tags[-10:]}")

    def take(self, target: NodeId) -> Callable[[list[Record]], None]:
        def store(records: list[Record]) -> None:
            arrivals = self.peers[target].holdings.append(records)
            self.delivered[target] += [one.record for one in arrivals if one.new]

        return store

    def interval(self) -> None:
        for each in self.peers.values():
            each.on_timeout()
        for each in self.peers.values():
            for other in self.peers.values():
                if other is not each:
                    self.send(other.on_digest(each.id, each.digest(0, ALL)))
        self.run()

    def heal(self, intervals: int) -> int:
        """Intervals until all peers hold and show the same."""
        first, *others = self.peers.values()
        for interval in range(intervals):
            if all(
                held(first) == held(other) and first.digest(0, ALL) == other.digest(0, ALL)
                for other in others
            ):
                return interval
            self.interval()
        raise AssertionError(f"no agreement after {intervals} intervals")
