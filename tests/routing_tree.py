"""Brokers on a tree that an all-knowing test changes: each end of a link hears of it on its own."""

from collections.abc import Callable
from random import Random

from planaria.core.book import Due
from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Publish, Subscribe
from planaria.protocols.routing.overlay import RoutingOverlay, TreeBroker
from planaria.protocols.routing.workload import TOPIC, random_attributes, random_filter
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.worlds.definitions import keep_book, subscriptions_of

NOTICE = 3 * INTERVAL  # by then both ends of a changed link know of it
REACH = 6 * INTERVAL  # by then a publication is everywhere in a tree of 13 brokers


class ChangingTree:
    """A run in which brokers join and crash; `book` says what was delivered to whom."""

    def __init__(self, overlay: RoutingOverlay, n: int, seed: int, within: int = REACH) -> None:
        """A publication has `within` ticks to arrive."""
        self.overlay = overlay
        self.simulator = Simulator(seed)
        self.rng: Random = stream(seed, "tree")
        self.parents: dict[NodeId, NodeId | None] = {id: overlay.parent(id) for id in range(n)}
        nodes = overlay.legitimate(n, self.simulator.rng)
        for node in nodes:
            self.simulator.add(node)
        self.book = keep_book(self.simulator, within / INTERVAL)
        self.stops: list[tuple[NodeId, int]] = []
        self.published = 0
        self.next = n
        self.make: Callable[..., TreeBroker] = TreeBroker
        self._due: list[tuple[int, NodeId]] = []

    def broker(self, id: NodeId) -> TreeBroker:
        node = self.simulator.nodes[id]
        assert isinstance(node, TreeBroker)
        return node

    def neighbours(self, id: NodeId) -> list[NodeId]:
        parent = self.parents[id]
        children = [it for it, above in self.parents.items() if above == id]
        return [*([] if parent is None else [parent]), *children]

    def join(self) -> NodeId:
        """A new broker between another one and its parent, or below it."""
        id = self.next
        self.next += 1
        below = self.rng.choice(sorted(self.parents))
        if self.rng.random() < 0.5 and self.parents[below] is not None:
            self.parents[id] = self.parents[below]
            self.parents[below] = id
        else:
            self.parents[id] = below
        broker = self.make(
            id, [], None, self.overlay.timing, self.simulator.rng, **self.overlay.options
        )
        self.simulator.add(broker)
        self.simulator.command(id, Subscribe(where=random_filter(self.rng)))
        self._tell([id, *self.neighbours(id), below])
        return id

    def crash(self, victim: NodeId | None = None) -> NodeId:
        """A broker is gone at once; its children find a new parent."""
        id = self.rng.choice(sorted(self.parents)) if victim is None else victim
        touched = self.neighbours(id)
        above = self.parents.pop(id)
        orphans = [it for it in touched if it != above]
        heir = above if above is not None else orphans[0]
        for orphan in orphans:
            self.parents[orphan] = None if orphan == heir else heir
        self.simulator.remove(id)
        self.stops.append((id, self.simulator.tick))
        self._tell(touched)
        return id

    def restart(self) -> NodeId:
        """A broker loses its memory and comes back before anybody noticed."""
        id = self.rng.choice(sorted(self.parents))
        old = self.broker(id)
        self.simulator.remove(id)
        self.stops.append((id, self.simulator.tick))
        broker = self.make(
            id, [], None, self.overlay.timing, self.simulator.rng, **self.overlay.options
        )
        self.simulator.note("restart", id, "none")
        self.simulator.add(broker)
        for command in subscriptions_of(old):
            self.simulator.command(id, command)
        self._tell([id])
        return id

    def publish(self) -> None:
        id = self.rng.choice(sorted(self.simulator.nodes))
        attributes = random_attributes(self.rng)
        self.simulator.command(id, Publish(TOPIC, b"%d" % self.published, attributes))
        self.published += 1

    def run(self, ticks: int, every: int) -> None:
        """Let time pass, with a publication `every` so many ticks."""
        for _ in range(ticks):
            self.simulator.run(1)
            if self.simulator.tick % every == 0:
                self.publish()
            for due, id in [it for it in self._due if it[0] <= self.simulator.tick]:
                self._due.remove((due, id))
                if id in self.parents:
                    broker = self.broker(id)
                    broker.neighbours, broker.upwards = self.neighbours(id), self.parents[id]

    def missed(self) -> list[Due]:
        """What should have arrived by now and did not, unless its publisher's broker ended with
        it: what only it had is gone."""
        return [it for it in self.book.missed(self.now) if not self._just_taken(it)]

    @property
    def now(self) -> float:
        return self.simulator.tick / INTERVAL

    def _just_taken(self, due: Due) -> bool:
        """Had a broker only just taken this from its own client when it crashed or restarted?"""
        it, tick = due.publication, due.publication.time * INTERVAL
        return any(node == it.node and at - INTERVAL < tick <= at for node, at in self.stops)

    def _tell(self, touched: list[NodeId]) -> None:
        for id in dict.fromkeys(touched):
            due = self.simulator.tick + self.rng.randrange(1, NOTICE)
            self._due.append((due, id))
