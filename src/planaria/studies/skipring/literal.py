"""Runs of the literal skip ring: given states, random states, and how they end."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.literal.skipring.amendments import ALL
from planaria.literal.skipring.labels import label
from planaria.literal.skipring.messages import Ref
from planaria.literal.skipring.overlay import SUPERVISOR, LiteralSkipRing
from planaria.literal.skipring.subscriber import Subscriber
from planaria.literal.skipring.supervisor import Supervisor
from planaria.simulator.engine import Simulator
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial

CALM = 3  # interval ends in a row that must be legitimate
BURST_MAX = 500  # messages in a tenth of an interval; readings that get there never come back
LONG = "0110100110010110100101100110100110010111"  # 40 bits: asked about once in 10^15 intervals

SMALL_MAX = 12  # subscribers in a random state
THIRDS = ("", "at 0 crash share=0.3", "at 0 leave share=0.3")


def without(*errata: str) -> frozenset[str]:
    """Everything amended but `errata`."""
    return ALL - set(errata)


class Run:
    """A literal skip ring in a simulator."""

    def __init__(self, overlay: LiteralSkipRing, simulator: Simulator) -> None:
        self.overlay, self.simulator = overlay, simulator

    @classmethod
    def legitimate(
        cls, amendments: frozenset[str], n: int, seed: int = 1, detection: float = 1.0
    ) -> "Run":
        """SR(n), with everybody where it belongs."""
        overlay = LiteralSkipRing(amendments, detection)
        simulator = Simulator(seed)
        for node in overlay.legitimate(n, simulator.rng):
            simulator.add(node)
        return cls(overlay, simulator)

    @classmethod
    def joining(cls, amendments: frozenset[str], n: int, seed: int = 1) -> "Run":
        """Everybody joins at once."""
        overlay = LiteralSkipRing(amendments)
        simulator = Simulator(seed)
        for node in overlay.fresh(n, simulator.rng):
            simulator.add(node)
        return cls(overlay, simulator)

    @classmethod
    def given(
        cls,
        amendments: frozenset[str],
        database: Mapping[str, NodeId | None],
        subscribers: Mapping[NodeId, Mapping[str, Any]],
        seed: int = 1,
    ) -> "Run":
        """A state written down: the database, and the variables of each subscriber by id."""
        run = cls.joining(amendments, max(subscribers, default=0), seed)
        run.supervisor.database = dict(database)
        for id, variables in subscribers.items():
            for name, value in variables.items():
                setattr(run.simulator.nodes[id], name, value)
        return run

    @classmethod
    def random(cls, amendments: frozenset[str], seed: int, scheduler: str = "fifo") -> "Run":
        """A random state with n = 1..12; a third with crashes, a third with leavers."""
        return cls.arbitrary(amendments, seed, THIRDS[seed // SMALL_MAX % 3], scheduler)

    @classmethod
    def arbitrary(
        cls, amendments: frozenset[str], seed: int, faults: str, scheduler: str = "fifo"
    ) -> "Run":
        """A random state with n = 1..12, after these faults if there are two nodes or more."""
        n = seed % SMALL_MAX + 1
        schedule = parse_schedule(faults if n > 1 else "")
        spec = Spec(n=n, seed=seed, faults=schedule, scheduler=scheduler)
        trial = Trial(LiteralSkipRing(amendments), spec)
        trial.suffer()
        return cls(LiteralSkipRing(amendments), trial.simulator)

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor."""
        node = self.simulator.nodes[SUPERVISOR]
        assert isinstance(node, Supervisor)
        return node

    @property
    def subscribers(self) -> list[Subscriber]:
        """All subscribers that live."""
        return [node for node in self.simulator.nodes.values() if isinstance(node, Subscriber)]

    def holder(self, label: str) -> Subscriber:
        """Who has this label."""
        return next(node for node in self.subscribers if node.label == label)

    def is_legitimate(self) -> bool:
        """Is everything exactly SR(n)?"""
        return not self.overlay.violations(self.simulator.states(), self.simulator.channel())

    def heals(self, intervals: int, burst: int = BURST_MAX) -> int | None:
        """Intervals until it is legitimate and stays so for a while; None if that never happens."""
        calm = 0
        for interval in range(1, intervals + CALM + 1):
            if not self._survives_interval(burst):
                return None
            calm = calm + 1 if self.is_legitimate() else 0
            if calm == CALM:
                return interval - CALM + 1
        return None

    def illegitimate_ends(self, intervals: int) -> int:
        """At how many interval ends it is not legitimate: 0 is closure."""
        found = 0
        for interval in range(intervals):
            if not self._survives_interval(BURST_MAX):
                return found + intervals - interval
            found += not self.is_legitimate()
        return found

    def _survives_interval(self, burst: int) -> bool:
        """Let an interval pass; False if messages multiply without bound."""
        for _ in range(10):
            before = self.simulator.sent
            self.simulator.run(10)
            if self.simulator.sent - before > burst:
                return False
        return True


def ref(label: str, id: NodeId) -> Ref:
    """A reference to a node, under a label."""
    return Ref(label, id)


def expected_requests(amendments: frozenset[str], n: int) -> list[float]:
    """From the node's own rule: expected requests per interval in SR(1), SR(2), ..., SR(n)."""
    node = Subscriber(1, stream(1, "requests"), amendments, SUPERVISOR)
    each = []
    for index in range(n):
        node.label = label(index)
        node.left = None if index == 0 else ref("0", 2)
        each.append(sum(node.request_probabilities()))
    return list(accumulate(each))
