"""The gossip overlay on the command line, and the paper's experiment on real nodes.

After a trial has healed, `--events` measures dissemination over the tables that the protocol made:
the share `--failed` of the processes fails, links lose the share `--loss`, and no table is repaired
meanwhile ('pessimistically', section VII-A). Every event draws its own failures.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from planaria.core.book import Book
from planaria.core.chance import derive, stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import NOTHING, Effects, Node, Publish, Subscribe
from planaria.core.overlay import Start
from planaria.core.state import State, encode_state
from planaria.core.workload import Ask
from planaria.protocols.gossip.commands import wanted_group
from planaria.protocols.gossip.hierarchy import filter_of
from planaria.protocols.gossip.memory import event_memory
from planaria.protocols.gossip.messages import Event
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.registry import PRODUCTS
from planaria.simulator.applications import put
from planaria.simulator.checkers import Bookkeeper
from planaria.simulator.delays import INTERVAL, fixed
from planaria.simulator.engine import Entry, Simulator
from planaria.simulator.links import Loss, Rule
from planaria.simulator.worlds.reach import GroupReach, summarize
from planaria.simulator.worlds.registry import Kind, Option

FAILURES = ("stillborn", "observer")
ROUNDS_MAX = 200  # an event that still travels after so many hops never ends
EVENTS_MAX = 100_000


class StillNode(GossipNode):
    """A process whose tables stay as they are."""

    def on_timeout(self) -> Effects:
        """The membership algorithm does not replace anybody."""
        return NOTHING


class ObserverFailures(Rule):
    """A process appears failed to one process and alive to another, for a whole event."""

    def __init__(self, share: float, rng: Random) -> None:
        super().__init__()
        self.share, self.rng = share, rng
        self.failed: dict[tuple[NodeId, NodeId], bool] = {}

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Drop what is sent to a process that appears failed."""
        pair = (source, target)
        if pair not in self.failed:
            self.failed[pair] = self.rng.random() < self.share
        return [] if self.failed[pair] else delays


class Copies:
    """Counts the copies of one event that each group sends and receives."""

    kinds = ("send", "deliver")

    def __init__(self, nodes: Mapping[NodeId, GossipNode], rows: dict[str, GroupReach]) -> None:
        self.nodes, self.rows = nodes, rows

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """A copy within a group counts there; one to a supergroup counts where it comes from."""
        message = entry.message
        if isinstance(message, Event):
            source = self.nodes[entry.source].groups
            inside = message.group in source
            row = self.rows[message.group if inside else next(iter(source))]
            name = ("" if inside else "intergroup_") + ("sent" if kind == "send" else "received")
            setattr(row, name, getattr(row, name) + 1)


def disseminate_once(
    nodes: Sequence[GossipNode],
    topics: Sequence[str],
    topic: str,
    *,
    failed: float,
    loss: float,
    failures: str,
    seed: int,
) -> dict[str, GroupReach]:
    """Publish one event on `topic` over the tables of `nodes`; what each group saw of it."""
    rng = stream(seed, "failed")
    dead = set(rng.sample([node.id for node in nodes], round(failed * len(nodes))))
    simulator = Simulator(seed, delay=fixed(1))
    simulator.detects_failed_sends = False
    if failures == "observer":
        dead = set()
        simulator.rules.append(ObserverFailures(failed, stream(seed, "observer")))
    simulator.rules.append(Loss(loss, stream(seed, "loss")))
    rows, known = {name: GroupReach(0, 0) for name in topics}, {node.id: node for node in nodes}
    simulator.watch(Copies(known, rows))
    book = _book_of(simulator, known)
    for node in nodes:
        node.memory, node.parasites = event_memory(), 0  # each event is an experiment of its own
        if node.id not in dead:
            simulator.add(node)
    members = [id for id in simulator.nodes if topic in known[id].groups]
    put(simulator, Ask(0, Publish(topic, b"event")), None, rng, among=members)
    for _ in range(ROUNDS_MAX):
        if not any(True for _ in simulator.channel()):
            break
        simulator.run(1)
    _count(book, nodes, rows, simulator.nodes)
    return rows


def _book_of(simulator: Simulator, nodes: Mapping[NodeId, GossipNode]) -> Book:
    """The book of an event: every process wants what its groups include."""
    includes = next(iter(nodes.values())).configuration.hierarchy.includes

    def subscriptions(id: NodeId) -> list[Subscribe]:
        return [Subscribe(filter_of(name)) for name in nodes[id].groups]

    def wants(subscription: Subscribe, publication: Publish) -> bool:
        return includes(wanted_group(subscription), publication.topic)

    book = Book(wants, within=ROUNDS_MAX / INTERVAL)
    simulator.watch(Bookkeeper(book, subscriptions, in_force=True))
    return book


def _count(
    book: Book,
    nodes: Iterable[GossipNode],
    rows: Mapping[str, GroupReach],
    alive: Container[NodeId],
) -> None:
    """Enter who was given the event, and how often again, for each group."""
    again = Counter(it.client[0] for it in book.breaches if it.kind == "twice")
    for node in nodes:
        client = book.handed.client(node.id, 0)
        for name in node.groups:
            row = rows[name]
            row.members += 1
            row.alive += node.id in alive
            row.reached += any(book.handed.when(client, id) is not None for id in book.published)
            row.repeated += again[node.id]
            row.parasites += node.parasites


def still_copy(id: NodeId, state: State, configuration: Configuration, rng: Random) -> GossipNode:
    """A process with the tables of this moment, which do not change any more."""
    copy = StillNode(id, configuration, rng)
    copy.restore(encode_state(state))
    return copy


def still_copies(nodes: Mapping[NodeId, Node], rng: Random) -> list[GossipNode]:
    """Such copies of all processes."""
    return [
        still_copy(id, node.state(), node.configuration, rng)
        for id, node in sorted(nodes.items())
        if isinstance(node, GossipNode)
    ]


class MeasuredGossip(GossipOverlay):
    """Hierarchical topics by gossip; after healing, events are published and counted."""

    def __init__(
        self,
        groups: str = "",
        failed: float = 0.0,
        loss: float = 0.15,
        failures: str = "stillborn",
        events: int = 0,
        level: int = -1,
        g: float = 5.0,
        a: int = 1,
        z: int = 3,
        b: float = 3.0,
        c: float = 5.0,
    ) -> None:
        super().__init__(groups, Parameters(g, a, z, b, c, tau=z))
        if not (0 <= failed <= 1 and 0 <= loss <= 1 and 0 <= events <= EVENTS_MAX):
            raise UsageError(f"--failed and --loss are shares, --events at most {EVENTS_MAX}")
        if not -len(self.topics) <= level < len(self.topics):
            raise UsageError(f"--level {level}: there are {len(self.topics)} groups, 0 is the top")
        if events and not self.topics[level]:
            raise UsageError(f"--level {level}: the root has no topic to publish on; use --groups")
        self.failed, self.loss, self.failures = failed, loss, failures
        self.events, self.topic, self.seed = events, self.topics[level], 0

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """As always; the events of the measurement belong to the same seed."""
        start = super().start(name, n, rng, protocol)
        self.seed = rng.getrandbits(63)
        return start

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """Per group: sizes, messages per event, the three reliabilities with 95 % intervals."""
        found = super().metrics(states)
        if not self.events:
            return found
        events = stream(self.seed, "events")
        still = [
            still_copy(id, state, self.configuration, events)
            for id, state in sorted(states.items())
        ]
        runs = [
            disseminate_once(
                still,
                self.topics,
                self.topic,
                failed=self.failed,
                loss=self.loss,
                failures=self.failures,
                seed=derive(self.seed, "event", number),
            )
            for number in range(self.events)
        ]
        for topic, row in zip(self.topics, found["groups"], strict=True):
            reaches = [run[topic] for run in runs]
            row["members"] = reaches[0].members
            row["alive"] = sum(reach.alive for reach in reaches) / len(reaches)
            for name, estimate in summarize(reaches).items():
                row[name] = estimate.mean
                row[f"{name}_95"] = estimate.half
            row["parasites"] = sum(reach.parasites for reach in reaches)
        return {**found, "published_on": filter_of(self.topic), "events": self.events}


GOSSIP = Kind(
    make=MeasuredGossip,
    options=(
        Option("groups", "", "Sizes of a chain of topics from the top down: 10,100,1000."),
        Option("events", 0, "Events to publish and count once it is legitimate."),
        Option("failed", 0.0, "Share of the processes that fail during the events."),
        Option("failures", "stillborn", "For everybody, or per observer.", FAILURES),
        Option("loss", 0.15, "Share of the messages of events that links lose."),
        Option("level", -1, "The group to publish on: 0 is the top, -1 the bottom."),
        *PRODUCTS["gossip"].options,
    ),
)
