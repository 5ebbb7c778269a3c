"""Small networks of gossip processes for tests: who wants what, given tables, time, crashes."""

from collections.abc import Mapping, Sequence

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Publish, Subscribe
from planaria.core.overlay import Violation
from planaria.protocols.gossip.hierarchy import Hierarchy, filter_of
from planaria.protocols.gossip.legitimacy import violations
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.gossip.tables import give_tables
from planaria.simulator.checkers import DeliveredOnce
from planaria.simulator.engine import Entry, Simulator


class Deliveries:
    """Who was handed which payload on which topic."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.of: dict[bytes, list[NodeId]] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        if isinstance(effect, Deliver):
            for it in effect.publications:
                self.of.setdefault(it.payload, []).append(node)


class World:
    """Processes in a simulator; `wishes` maps each id to the topics it subscribes to."""

    def __init__(
        self,
        wishes: Mapping[NodeId, Sequence[str]],
        *,
        seed: int = 0,
        tables: bool = True,
        supertopics: Mapping[str, Sequence[str]] | None = None,
        parameters: Mapping[str, Parameters] | None = None,
        default: Parameters | None = None,
        contacts: tuple[NodeId, ...] = (0, 1, 2),
    ) -> None:
        self.simulator = Simulator(seed)
        self.configuration = Configuration(
            Hierarchy(supertopics), parameters or {}, default or Parameters(), contacts
        )
        nodes = [self.make(id, topics) for id, topics in wishes.items()]
        if tables:
            give_tables(nodes, stream(seed, "tables"))
        self.deliveries = Deliveries()
        self.simulator.watch(self.deliveries)
        self.simulator.watch(DeliveredOnce())
        for node in nodes:
            self.simulator.add(node)

    def make(self, id: NodeId, topics: Sequence[str]) -> GossipNode:
        node = GossipNode(id, self.configuration, self.simulator.rng)
        for topic in topics:
            node.on_command(Subscribe(filter_of(topic)))
        return node

    def __getitem__(self, id: NodeId) -> GossipNode:
        node = self.simulator.nodes[id]
        assert isinstance(node, GossipNode)
        return node

    @property
    def processes(self) -> list[GossipNode]:
        return [self[id] for id in sorted(self.simulator.nodes)]

    def members(self, topic: str) -> list[NodeId]:
        return [node.id for node in self.processes if topic in node.groups]

    def wrong(self) -> list[Violation]:
        hierarchy = self.configuration.hierarchy
        return violations(
            self.simulator.states(),
            self.simulator.channel(),
            lambda topic: self.configuration.of(topic).z,
            hierarchy.supers,
        )

    def run(self, intervals: int) -> None:
        for _ in range(intervals):
            self.simulator.run_interval()

    def heal(self, intervals: int = 200) -> int:
        """Run until legitimate; how many intervals it took."""
        for passed in range(intervals):
            if not self.wrong():
                return passed
            self.simulator.run_interval()
        raise AssertionError(f"not legitimate: {[str(it) for it in self.wrong()[:5]]}")

    def crash(self, ids: Sequence[NodeId]) -> None:
        for id in ids:
            self.simulator.remove(id)

    def publish(self, id: NodeId, topic: str, payload: bytes, intervals: int = 4) -> list[NodeId]:
        """Publish and wait; who was handed it."""
        self.simulator.command(id, Publish(topic, payload))
        self.run(intervals)
        return sorted(self.deliveries.of.get(payload, []))

    def parasites(self) -> int:
        return sum(node.parasites for node in self.processes)


def chain_wishes(*sizes: int, names: Sequence[str] = ("a", "a/b", "a/b/c")) -> dict[int, list[str]]:
    """The first `sizes[0]` processes want `names[0]`, and so on."""
    wishes: dict[int, list[str]] = {}
    for name, size in zip(names, sizes, strict=False):
        for _ in range(size):
            wishes[len(wishes)] = [name]
    return wishes
