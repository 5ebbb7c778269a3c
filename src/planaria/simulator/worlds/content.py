"""`planaria sim content`: brokers whose clients publish all the time, and the book of the run."""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.book import Book
from planaria.core.chance import derive
from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.core.overlay import Channel, Start, Violation
from planaria.core.state import State
from planaria.core.workload import Ask
from planaria.protocols.content.node import ContentBrokerState
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.registry import PRODUCTS
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.recent import replayed, too_old
from planaria.simulator.worlds.definitions import wants
from planaria.simulator.worlds.registry import Kind, Option

NOBODY = -1  # a neighbour that has no notification yet
PUBLISHED_EACH_INTERVAL = 2  # publications of all brokers together, or
BROKERS_EACH = 4  # of every fourth broker, whichever is fewer


class ContentWorld(ContentOverlay):
    """Subscriptions by content while brokers join, crash and heal: who got what, who missed what.

    `brokers` says how many there are; without it `--n` does.
    """

    def __init__(
        self, brokers: int = 0, subscriptions: int = 100, strategy: str = "covering",
        hierarchical: bool = False, rho: int = 4,
    ) -> None:  # fmt: skip
        super().__init__(brokers, subscriptions, strategy, hierarchical, rho)
        self._book = Book(wants, within=self.reach)

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """A new book for a new run."""
        found = super().start(name, n, rng, protocol)
        self._book = Book(wants, within=self.reach)
        return found

    def subscriptions(self, id: NodeId) -> Sequence[Subscribe]:
        """What the clients of broker `id` want from its beginning."""
        return [Subscribe(where=filter, client=client) for client, filter in self.wishes(id)]

    def everyday(self, interval: int) -> Sequence[Ask]:
        """Somebody publishes something now and then."""
        rng = Random(derive(self.seed, "publications", interval))
        mean = min(self.members / BROKERS_EACH, PUBLISHED_EACH_INTERVAL)
        count = int(mean) + (rng.random() < mean % 1)
        return [Ask(interval + rng.random(), Publish("")) for _ in range(count)]

    def book(self) -> Book:
        """The book of the run that began last."""
        return self._book

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Besides, no broker may remember what nobody published: it could still be delivered."""
        flight = list(channel)
        return super().violations(states, flight) or self._unpublished(states, flight)

    def _unpublished(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        known, period = self._book.published, self.timing.memory
        found = []
        for id, state in states.items():
            if isinstance(state, ContentBrokerState):
                memory = state.memory
                kept = [*replayed(memory.age, memory.recent, period, NOBODY, known)]
                early = [it.body for link in state.links.values() for it in link.early.values()]
                kept += [it for it in early if it.id not in known and not too_old(it, period)]
                found += [
                    Violation("memory", id, f"{it} was never published")
                    for it in kept
                    if not it.gap
                ]
        for target, message in channel:
            forged = isinstance(message, Notify) and not message.gap and message.id not in known
            if forged and target in states:
                found.append(Violation("channel", target, f"{message} was never published"))
        return found


CONTENT = Kind(
    make=ContentWorld,
    options=(
        Option("brokers", 0, "How many brokers; 0 stands for --n."),
        Option("subscriptions", 100, "How many in all, random conjunctions."),
        *PRODUCTS["content"].options,
    ),
)
