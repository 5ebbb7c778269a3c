"""One workload for anything that delivers: the same topics, wishes, events and faults for all.

Figures are read off the wire and the applications, never asked of a protocol: every event carries a
token that is looked for in the bytes of every message.
"""

import re
from collections.abc import Mapping
from itertools import chain

from msgspec import Struct
from msgspec.msgpack import Encoder

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Deliver
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry

LEVELS = 3  # of one chain of topics: t0, t0/a, t0/a/b, then t1, ...
TOPICS_MAX = 30
NODES_MAX = 200  # everybody is in reach of everybody, also where a node knows few
EVENTS_MAX = 3000
CALM, FAULT, AFTER = "calm", "fault", "after"
PHASES = (CALM, FAULT, AFTER)
EVERY = 2  # intervals between two events

_TOKEN = re.compile(rb"<event (\d{6})>")


class Event(Struct, frozen=True):
    """Something to publish: by the first of `publishers` that is still alive."""

    number: int
    topic: str
    phase: str
    publishers: tuple[NodeId, ...]

    @property
    def payload(self) -> bytes:
        """A token that is found again in any message that carries it."""
        return b"<event %06d>" % self.number


class Workload(Struct, frozen=True):
    """Who wants what, what is published, and who crashes if somebody must."""

    topics: tuple[str, ...]
    wishes: Mapping[NodeId, str]  # one topic each, with all below it
    events: tuple[Event, ...]
    victims: tuple[NodeId, ...]
    halves: tuple[tuple[NodeId, ...], tuple[NodeId, ...]]

    def wanted(self, id: NodeId) -> list[str]:
        """The topics whose events node `id` wants."""
        return [topic for topic in self.topics if below(topic, self.wishes[id])]

    def interested(self, topic: str) -> list[NodeId]:
        """Who wants events of `topic`."""
        return [id for id, wish in self.wishes.items() if below(topic, wish)]


def below(topic: str, wish: str) -> bool:
    """Is `topic` the one wished for, or below it?"""
    return topic == wish or topic.startswith(f"{wish}/")


def make_workload(n: int, topics: int, events: int, seed: int) -> Workload:
    """Drawn from the seed alone, so that it is the same for whatever carries it."""
    for name, value, low, high in (
        ("topics", topics, 1, TOPICS_MAX),
        ("n", n, max(4, topics), NODES_MAX),
        ("events", events, len(PHASES), EVENTS_MAX),
    ):
        if not low <= value <= high:
            raise UsageError(f"{name} {value}: between {low} and {high}")
    rng = stream(seed, "workload")
    levels = ("a", "b")
    names = tuple(
        "/".join((f"t{place // LEVELS}", *levels[: place % LEVELS])) for place in range(topics)
    )
    ids = rng.sample(range(n), n)
    wishes = {id: names[place % topics] for place, id in enumerate(ids)}
    found = []
    for number in range(events):
        topic = names[number % topics]
        first = [id for id in sorted(wishes) if wishes[id] == topic]
        others = [id for id in sorted(wishes) if below(topic, wishes[id]) and id not in first]
        publishers = rng.sample(first, len(first)) + rng.sample(others, len(others))
        phase = PHASES[number * len(PHASES) // events]
        found.append(Event(number, topic, phase, tuple(publishers)))
    mixed = rng.sample(range(n), n)
    # Newcomers ask node 0 for others; so that no contender is left without, it does not crash.
    victims = tuple(sorted(rng.sample(range(1, n), n // 4)))
    return Workload(names, dict(sorted(wishes.items())), tuple(found), victims, _halves(mixed))


def _halves(mixed: list[NodeId]) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
    middle = len(mixed) // 2
    return tuple(sorted(mixed[:middle])), tuple(sorted(mixed[middle:]))


class Ledger:
    """Watches a run: messages, copies of events, hops, deliveries, and who got what twice."""

    kinds = ("send", "deliver", "effect")

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.phase = ""
        self.messages = dict.fromkeys(PHASES, 0)
        self.copies = dict.fromkeys(PHASES, 0)
        self.received: dict[NodeId, int] = {}
        self.hops: dict[tuple[NodeId, int], int] = {}  # of the first copy, 0 at the publisher
        self.published: dict[int, tuple[NodeId, int]] = {}
        self.delivered: dict[tuple[NodeId, int], int] = {}
        self.twice = 0  # deliveries of what an application had
        self.repeats = 0  # copies that came to a node that had one
        self.strays = 0  # copies that came to a node that does not want them
        self._carrying: dict[int, tuple[int, ...]] = {}
        self._encode = Encoder().encode

    def publish(self, event: Event, publisher: NodeId, tick: int) -> None:
        """An event begins at its publisher."""
        self.published[event.number] = (publisher, tick)
        self.hops[publisher, event.number] = 0

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """A message goes out or arrives, or an application is handed something."""
        if kind == "send":
            self._sent(entry)
        elif kind == "deliver":
            self.received[node] = self.received.get(node, 0) + 1
            for number in self._carrying.get(entry.number, ()):
                self._arrived(node, entry.source, number)
        elif isinstance(effect, Deliver):
            for number in chain.from_iterable(_tokens(it.payload) for it in effect.publications):
                if (node, number) in self.delivered:
                    self.twice += 1
                else:
                    self.delivered[node, number] = tick

    def due(self, phase: str, alive: Mapping[NodeId, object]) -> list[tuple[NodeId, int]]:
        """Who of those that live was to get which event of `phase`; publishers have theirs."""
        return [
            (id, event.number)
            for event in self.workload.events
            if event.phase == phase and event.number in self.published
            for id in self.workload.interested(event.topic)
            if id in alive and id != self.published[event.number][0]
        ]

    def delay(self, pair: tuple[NodeId, int]) -> float:
        """Intervals from publication to delivery."""
        return (self.delivered[pair] - self.published[pair[1]][1]) / INTERVAL

    def _sent(self, entry: Entry) -> None:
        carried = self._found(entry.message)
        if carried:
            self._carrying[entry.number] = carried
        if self.phase:
            self.messages[self.phase] += 1
            self.copies[self.phase] += bool(carried)

    def _found(self, message: Message | None) -> tuple[int, ...]:
        known = _tokens(self._encode(message))
        return tuple(number for number in dict.fromkeys(known) if number in self.published)

    def _arrived(self, node: NodeId, source: NodeId, number: int) -> None:
        if (node, number) in self.hops:
            self.repeats += 1
        else:
            self.hops[node, number] = self.hops.get((source, number), 0) + 1
        topic = self.workload.events[number].topic
        self.strays += node in self.workload.wishes and not below(topic, self.workload.wishes[node])


def _tokens(data: bytes) -> list[int]:
    return [int(digits) for digits in _TOKEN.findall(data)]
