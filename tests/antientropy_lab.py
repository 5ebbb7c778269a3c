"""Two subscribers joined by a channel that loses what a test wants lost."""

from collections import deque
from collections.abc import Callable

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.message import Message, tag_of
from planaria.core.node import Effect, Send
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.publication import Publication
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.skipring.overlay import RingOverlay

TOPIC = "news"
CODEC = Codec(RingOverlay.messages)


def publication(number: int, *, time: int = 3, size: int = 8) -> Publication:
    return Publication(number % 5, 2**40, number, 0, time, bytes(size))


def peer(id: NodeId, numbers: list[int], *, limit: int = 10**6) -> AntiEntropy:
    store = PublicationStore(limit)
    for number in numbers:
        store.insert(publication(number, time=3 + number % 3))
    return AntiEntropy(TOPIC, id, store)


def held(subscriber: AntiEntropy) -> list[bytes]:
    return list(subscriber.store.keys())


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
        self.delivered: dict[NodeId, list[Publication]] = {each.id: [] for each in peers}

    def send(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Send)
            data = CODEC.encode(effect.message)
            self.tags.append(tag_of(effect.message))
            self.size += len(data)
            self.pushed += len(getattr(effect.message, "publications", ()))
            if not self.lost(effect.message):
                self.waiting.append((effect.target, data))

    def run(self, limit: int = 10_000) -> None:
        for _ in range(limit):
            if not self.waiting:
                return
            target, data = self.waiting.popleft()
            if target in self.peers:
                effects, fresh = self.peers[target].on_message(CODEC.decode(data))
                self.delivered[target] += [publication for _, publication in fresh]
                self.send(effects)
        raise AssertionError(f"still talking after {limit} messages: {self.tags[-10:]}")

    def interval(self) -> None:
        for each in self.peers.values():
            each.on_timeout()
        for each in self.peers.values():
            for other in self.peers.values():
                if other is not each:
                    self.send(other.on_digest(each.id, each.digest()))
        self.run()

    def heal(self, intervals: int) -> int:
        """Intervals until all peers hold and show the same."""
        first, *others = self.peers.values()
        for interval in range(intervals):
            if all(
                held(first) == held(other) and first.digest() == other.digest() for other in others
            ):
                return interval
            self.interval()
        raise AssertionError(f"no agreement after {intervals} intervals")
