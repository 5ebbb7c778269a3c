"""A skip ring in a simulator: states written down, faults by hand, and books of what was sent."""

from collections.abc import Sequence

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Node
from planaria.core.overlay import Violation
from planaria.protocols.skipring.labels import position
from planaria.protocols.skipring.messages import Ref, speaker
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.subscriber import Subscriber
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import TopicSupervisor
from planaria.simulator.engine import Simulator
from planaria.studies.skipring.traffic import Traffic

LONG_LABEL = (1 << 39) + 0x1234567  # 40 bits: action (ii) comes once in 10^15 intervals


class RingLab:
    """One topic's ring; `overlay` may have several supervisors."""

    def __init__(self, overlay: RingOverlay, nodes: Sequence[Node], simulator: Simulator) -> None:
        self.overlay, self.simulator = overlay, simulator
        for node in nodes:
            simulator.add(node)
        self.traffic = Traffic(overlay.supervisors)

    @classmethod
    def legitimate(cls, n: int, seed: int = 1, supervisors: int = 1) -> "RingLab":
        overlay, simulator = RingOverlay(supervisors), Simulator(seed)
        return cls(overlay, overlay.legitimate(n, simulator.rng), simulator)

    @classmethod
    def unrecorded(cls, n: int, seed: int = 1) -> "RingLab":
        """Subscribers that know nobody, and a supervisor that knows nobody."""
        overlay, simulator = RingOverlay(), Simulator(seed)
        return cls(overlay, overlay.fresh(n, simulator.rng), simulator)

    @property
    def peers(self) -> list[NodeId]:
        return [id for id in sorted(self.simulator.nodes) if id not in self.overlay.supervisors]

    @property
    def members(self) -> list[Subscriber]:
        return [self.member(id) for id in self.peers]

    @property
    def served(self) -> TopicSupervisor:
        """The database of the supervisor that should serve the topic."""
        served = self.overlay.serving(list(self.simulator.nodes.values()))
        assert isinstance(served, TopicSupervisor)
        return served

    @property
    def recorded(self) -> list[NodeId | None]:
        return list(self.served.database.entries)

    def member(self, id: NodeId) -> Subscriber:
        return self.overlay.subscriber(self.simulator.nodes[id])

    def supervisor(self, id: NodeId) -> Supervisor:
        node = self.simulator.nodes[id]
        assert isinstance(node, Supervisor)
        return node

    def place(self, id: NodeId, label: int, pred: Ref | None, succ: Ref | None) -> None:
        """Let a member believe in this place, and that nothing is wrong with it."""
        one = self.member(id)
        one.label, one.pred, one.succ, one.shortcuts = label, pred, succ, {}
        one.inquiry.calm()

    def place_ring(self, labels: Sequence[int]) -> None:
        """A closed sorted ring of peers 0, 1, ... with these labels, without shortcuts."""
        order = sorted(range(len(labels)), key=lambda one: position(labels[one]))
        for rank, id in enumerate(order):
            before, after = order[rank - 1], order[(rank + 1) % len(order)]
            self.place(id, labels[id], (labels[before], before), (labels[after], after))

    def broken(self) -> set[str]:
        """The invariants that do not hold."""
        return {violation.invariant for violation in self.violations()}

    def violations(self) -> list[Violation]:
        return self.overlay.violations(self.simulator.states(), self.simulator.channel())

    def run(self, intervals: int = 1) -> None:
        for _ in range(intervals):
            self.simulator.run_interval()

    def heal(self, within: int) -> int:
        """The interval after which the ring is legitimate for good; fails if there is none."""
        healed, calm, found = 0, 0, self.violations()
        for interval in range(1, within + self.overlay.calm):
            self.run()
            now = self.violations()
            if now or (found and not calm):
                healed = interval
            found, calm = now or found, 0 if now else calm + 1
            if calm == self.overlay.calm:
                return healed
        raise AssertionError(f"not legitimate after {within} intervals: {found[:3]}")

    def count(self, intervals: int) -> Traffic:
        """Run, and return what was sent meanwhile."""
        traffic = Traffic(self.overlay.supervisors)
        self.simulator.watch(traffic)
        self.run(intervals)
        for observers in self.simulator._observers.values():
            if traffic in observers:
                observers.remove(traffic)
        return traffic

    def send(self, target: NodeId, message: Message, delay: int = 1) -> None:
        """Leave a message on the link of whom it names, or of the first peer."""
        self.simulator.inject(target, message, delay, speaker(message) or 0)


def ring_order(members: Sequence[Subscriber]) -> list[tuple[NodeId, NodeId, NodeId]]:
    """Each member between its two neighbours, in the order of positions."""
    order = sorted(members, key=lambda one: (position(one.label or 0), one.id))
    before = [order[-1], *order[:-1]]
    after = [*order[1:], order[0]]
    return [(b.id, one.id, a.id) for b, one, a in zip(before, order, after, strict=True)]


def hear(node: Node, message: Message) -> Effects:
    """Give a node a message from whom it names, or from node 0."""
    return node.on_message(message, speaker(message) or 0)
