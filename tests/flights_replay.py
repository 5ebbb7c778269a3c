"""Real flights through brokers that join, crash and leave, with clients and publishers of theirs.

Which deliveries are due, exactly, with `within` the time in which a publication is everywhere even
if the tree has to heal meanwhile:

    a client of a broker that was there from the beginning to the end: every flight it wants
    a client of a broker that crashed or left: those published at least `within` before that
    a client of a broker that joined: those published at least `within` after that

Earlier and later ones may be delivered or not (a newcomer hears of what is still remembered), but
only what is wanted, and nothing twice. A publisher's broker must stay for two intervals after it
took a flight: what only a crashed broker had is gone with it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

import flights
from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Publish, Subscribe
from planaria.protocols.content.overlay import RECONFIGURATION, ContentOverlay
from planaria.protocols.dht.overlay import CONTACTS
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator

CHANGES = ("join", "crash", "leave", "crash", "join", "leave")
GRACE = 2 * INTERVAL  # before its end a broker takes no flight from its own clients

Client = tuple[NodeId, int]
Numbers = NDArray[np.int64]


class Replay:
    """A run that publishes flights while the tree changes; `got` says who was handed what."""

    kinds = ("effect",)

    def __init__(self, strategy: str, brokers: int, wishes: Sequence[str], seed: int) -> None:
        self.overlay = ContentOverlay(subscriptions=0, strategy=strategy)
        self.simulator, self.rng = Simulator(seed), Random(seed)
        start = self.overlay.start("legitimate", brokers, stream(seed, "start"), self.simulator.rng)
        for node in start.nodes:
            self.simulator.add(node)
        self.simulator.watch(self)
        self.wishes = list(reversed(wishes))
        self.each = -(-len(wishes) // brokers)
        self.within = (self.overlay.reach + RECONFIGURATION) * INTERVAL
        self.got: dict[Client, array[int]] = {}
        self.asked: dict[Client, str] = {}
        self.since: dict[NodeId, int] = {}
        self.until: dict[NodeId, int] = {}
        self.ticks = array("q")
        self.changes: list[str] = []
        self.victim: NodeId | None = None
        for id in range(brokers):
            self._subscribe(id, self.each - (id % 7 == 0))  # some wishes are left for newcomers
        self.simulator.run(self.overlay.reach * INTERVAL)

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        """See what clients are handed."""
        if type(effect) is Deliver:
            self.got[node, effect.client].extend(int(it.payload) for it in effect.publications)

    def run(self, some: Sequence[flights.Row], each_interval: int, between: int) -> None:
        """Publish so many flights in each interval, with a change every `between` intervals."""
        start, self.victim = self.simulator.tick, self._choose()
        due = start + between * INTERVAL
        for number, row in enumerate(some):
            now = start + number * INTERVAL // each_interval
            if now > self.simulator.tick:
                self.simulator.run(now - self.simulator.tick)
            if self.simulator.tick >= due:
                self._change(CHANGES[len(self.changes) % len(CHANGES)])
                due += between * INTERVAL
            self.ticks.append(self.simulator.tick)
            publishers = self._present(ending=due - self.simulator.tick <= GRACE)
            command = Publish("flights", b"%d" % number, flights.attributes(row))
            self.simulator.command(self.rng.choice(publishers), command)
        self.simulator.run(self.within)

    def wrong(self, selected: Callable[[str], Numbers]) -> list[str]:
        """Every client that was handed something else than it should, and what."""
        found = []
        for client, text in self.asked.items():
            wanted, got = selected(text), np.sort(np.array(self.got[client], np.int64))
            first, last = self._due(client[0])
            due = wanted[(wanted >= first) & (wanted < last)]
            missed, unwanted = np.setdiff1d(due, got), np.setdiff1d(got, wanted)
            twice = len(got) - len(np.unique(got))
            if len(missed) or len(unwanted) or twice:
                found.append(
                    f"{client} {text}: missed {missed}, not wanted {unwanted}, {twice} twice"
                )
        return found

    def _due(self, broker: NodeId) -> tuple[int, int]:
        """The numbers of the flights that are due to its clients: from, to."""
        first = self.since[broker] + self.within if self.since[broker] else 0
        last = self.until[broker] - self.within if broker in self.until else self.simulator.tick
        return bisect_left(self.ticks, first), bisect_left(self.ticks, last)

    def due(self, selected: Callable[[str], Numbers], *, partly: bool) -> int:
        """How many deliveries are due, to clients whose broker came or went or to the others."""
        total = 0
        for client, text in self.asked.items():
            if partly == bool(self.since[client[0]] or client[0] in self.until):
                first, last = self._due(client[0])
                wanted = selected(text)
                total += int(((wanted >= first) & (wanted < last)).sum())
        return total

    def _present(self, *, ending: bool) -> list[NodeId]:
        gone = [*self.until, *([self.victim] if ending else [])]
        return [id for id in self.since if id not in gone]

    def _choose(self) -> NodeId:
        return self.rng.choice([it for it in self._present(ending=False) if it not in CONTACTS])

    def _change(self, kind: str) -> None:
        victim = self.victim
        assert victim is not None
        if kind == "join":
            id = max(self.simulator.nodes) + 1
            self.simulator.add(self.overlay.spawn(id, self.simulator.rng))
            self._subscribe(id, self.each)
        elif kind == "crash":
            self.simulator.remove(victim)
            self.until[victim] = self.simulator.tick
        else:
            command = self.overlay.leave(self.simulator.nodes[victim])
            assert command is not None
            self.simulator.command(victim, command)
            self.until[victim] = self.simulator.tick
        self.changes.append(kind)
        self.victim = self._choose()

    def _subscribe(self, id: NodeId, count: int) -> None:
        self.since[id] = self.simulator.tick
        for client in range(min(count, len(self.wishes))):
            self.asked[id, client] = text = self.wishes.pop()
            self.got[id, client] = array("q")
            self.simulator.command(id, Subscribe(where=text, client=client))
