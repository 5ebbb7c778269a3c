"""One workload for anything that delivers: the same topics, wishes, events and faults for all.

Figures are read off the wire and the applications, never asked of a protocol: a `Book` knows who
was given what, and every event carries a token that is looked for in the bytes of every message.
"""

import re
from collections.abc import Container, Mapping

from msgspec import Struct, structs
from msgspec.msgpack import Encoder

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Publish, Subscribe
from planaria.core.workload import Ask
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry

LEVELS = 3  # of one chain of topics: t0, t0/a, t0/a/b, then t1, ...
TOPICS_MAX = 30
NODES_MAX = 200  # everybody is in reach of everybody, also where a node knows few
EVENTS_MAX = 3000
CALM, FAULT, AFTER = "calm", "fault", "after"
PHASES = (CALM, FAULT, AFTER)
EVERY = 2  # intervals between two events
HURRY = 2  # intervals in which all events of the fault are published

_TOKEN = re.compile(rb"<event (\d{6})>")


class Event(Struct, frozen=True):
    """Something to publish in a phase, by the first of `publishers` that is still alive."""

    phase: str
    ask: Ask  # `at` counts from the beginning of the phase, `node` is the first of `publishers`
    publishers: tuple[NodeId, ...]

    def asked(self, since: float, alive: Container[NodeId]) -> Ask | None:
        """The same in a run where the phase began at `since`; None if no publisher is alive."""
        node = next((id for id in self.publishers if id in alive), None)
        return (
            None if node is None else structs.replace(self.ask, at=since + self.ask.at, node=node)
        )


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

    def subscriptions(self, id: NodeId) -> list[Subscribe]:
        """What the application at node `id` is subscribed to; those who only serve have none."""
        return [Subscribe(self.wishes[id])] if id in self.wishes else []

    def phase(self, name: str) -> list[Event]:
        """The events of one phase, in their order."""
        return [event for event in self.events if event.phase == name]

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
    found: list[Event] = []
    for number in range(events):
        topic = names[number % topics]
        first = [id for id in sorted(wishes) if wishes[id] == topic]
        others = [id for id in sorted(wishes) if below(topic, wishes[id]) and id not in first]
        publishers = rng.sample(first, len(first)) + rng.sample(others, len(others))
        phase = PHASES[number * len(PHASES) // events]
        ask = Ask(0, Publish(topic, payload_of(number)), publishers[0])
        found.append(Event(phase, ask, tuple(publishers)))
    mixed = rng.sample(range(n), n)
    # Newcomers ask node 0 for others; so that no contender is left without, it does not crash.
    victims = tuple(sorted(rng.sample(range(1, n), n // 4)))
    return Workload(names, dict(sorted(wishes.items())), _timed(found), victims, _halves(mixed))


def _timed(events: list[Event]) -> tuple[Event, ...]:
    """When each is published in its phase: one after the other, those of the fault in a hurry."""
    made = []
    for name in PHASES:
        here = [event for event in events if event.phase == name]
        for place, event in enumerate(here):
            hurried = place * HURRY * INTERVAL // len(here) / INTERVAL
            at = hurried if name == FAULT else place * EVERY
            made.append(structs.replace(event, ask=structs.replace(event.ask, at=at)))
    return tuple(made)


def _halves(mixed: list[NodeId]) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
    middle = len(mixed) // 2
    return tuple(sorted(mixed[:middle])), tuple(sorted(mixed[middle:]))


class Ledger:
    """Watches the wire: messages, copies of events, hops, repeats and strays."""

    kinds = ("command", "send", "deliver")

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.phase = ""
        self.messages = dict.fromkeys(PHASES, 0)
        self.copies = dict.fromkeys(PHASES, 0)
        self.received: dict[NodeId, int] = {}
        self.hops: dict[tuple[NodeId, int], int] = {}  # of the first copy, 0 at the publisher
        self.published: set[int] = set()
        self.repeats = 0  # copies that came to a node that had one
        self.strays = 0  # copies that came to a node that does not want them
        self._carrying: dict[int, tuple[int, ...]] = {}
        self._encode = Encoder().encode

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """An event is published, or a message goes out or arrives."""
        if kind == "send":
            self._sent(entry)
        elif kind == "deliver":
            self.received[node] = self.received.get(node, 0) + 1
            for number in self._carrying.get(entry.number, ()):
                self._arrived(node, entry.source, number)
        elif isinstance(effect, Publish):
            number = number_of(effect)
            self.published.add(number)
            self.hops[node, number] = 0

    def _sent(self, entry: Entry) -> None:
        carried = self._found(entry.message)
        if carried:
            self._carrying[entry.number] = carried
        if self.phase:
            self.messages[self.phase] += 1
            self.copies[self.phase] += bool(carried)

    def _found(self, message: Message | None) -> tuple[int, ...]:
        known = map(int, _TOKEN.findall(self._encode(message)))
        return tuple(number for number in dict.fromkeys(known) if number in self.published)

    def _arrived(self, node: NodeId, source: NodeId, number: int) -> None:
        if (node, number) in self.hops:
            self.repeats += 1
        else:
            self.hops[node, number] = self.hops.get((source, number), 0) + 1
        wish, publish = self.workload.wishes.get(node), self.workload.events[number].ask.command
        assert isinstance(publish, Publish)
        self.strays += wish is not None and not below(publish.topic, wish)


def payload_of(number: int) -> bytes:
    """A token that is found again in any message that carries it."""
    return b"<event %06d>" % number


def number_of(command: Publish) -> int:
    """Which event this publishes."""
    return int(command.payload.removeprefix(b"<event ").removesuffix(b">"))
