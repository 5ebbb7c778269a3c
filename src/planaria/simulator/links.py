"""How links and schedulers misbehave. Each rule counts what it did, so no fault can be a no-op
unnoticed.

Adversarial schedulers are rules too: they may delay any message up to a stated fairness
bound, never for ever. Timeouts are out of their reach: the driver's clock is fair.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from random import Random

from planaria.core.errors import unknown
from planaria.core.ids import NodeId
from planaria.core.message import Message, tag_of
from planaria.core.node import Busy, Ready
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry, Simulator

FAIRNESS_TICKS = 4 * INTERVAL  # no scheduler holds a message longer than this
SCHEDULERS = ("fifo", "lifo", "newest", "starve", "priority", "constant", "alternating")


class Rule(ABC):
    """A rule on all links, with the number of messages it touched."""

    def __init__(self) -> None:
        self.affected = 0

    def apply(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """The delays of the copies that still arrive."""
        changed = self.change(source, target, message, delays)
        self.affected += changed is not delays and changed != delays
        return changed

    @abstractmethod
    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """What the rule does to the copies of one message."""

    def delay_max(self, ticks: int) -> int:
        """The longest that a message takes with this rule, if it took at most `ticks` without."""
        return ticks


class Loss(Rule):
    """Loses each copy with probability `rate`."""

    def __init__(self, rate: float, rng: Random) -> None:
        super().__init__()
        self.rate, self.rng = rate, rng

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Drop copies."""
        return [ticks for ticks in delays if self.rng.random() >= self.rate]


class Duplication(Rule):
    """Delivers a second copy with probability `rate`, up to an interval later."""

    def __init__(self, rate: float, rng: Random) -> None:
        super().__init__()
        self.rate, self.rng = rate, rng

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Add copies."""
        if delays and self.rng.random() < self.rate:
            return [*delays, delays[0] + self.rng.randrange(INTERVAL)]
        return delays

    def delay_max(self, ticks: int) -> int:
        """A second copy comes up to an interval later."""
        return ticks + INTERVAL


class Reordering(Rule):
    """Holds back each message with probability `rate` so that later ones overtake it."""

    def __init__(self, rate: float, rng: Random, ticks: int = 2 * INTERVAL) -> None:
        super().__init__()
        self.rate, self.rng, self.ticks = rate, rng, ticks

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Delay copies."""
        if self.rng.random() < self.rate:
            return [ticks + self.rng.randrange(1, self.ticks) for ticks in delays]
        return delays

    def delay_max(self, ticks: int) -> int:
        """Held back at most so long."""
        return ticks + self.ticks


class Partition(Rule):
    """Nothing passes between two groups; `one_way`: nothing passes to a lower-numbered group."""

    def __init__(self, groups: Sequence[Sequence[NodeId]], *, one_way: bool = False) -> None:
        super().__init__()
        self.group = {id: number for number, group in enumerate(groups) for id in group}
        self.one_way = one_way

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Drop what crosses the cut; nodes that joined later are in the first group."""
        from_group, to_group = self.group.get(source, 0), self.group.get(target, 0)
        cut = from_group > to_group if self.one_way else from_group != to_group
        return [] if cut else delays


class SlowNodes(Rule):
    """Everything to and from `nodes` takes `factor` times as long."""

    def __init__(self, nodes: Sequence[NodeId], factor: float) -> None:
        super().__init__()
        self.nodes, self.factor = frozenset(nodes), factor

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Stretch delays."""
        if source in self.nodes or target in self.nodes:
            return [round(ticks * self.factor) for ticks in delays]
        return delays

    def delay_max(self, ticks: int) -> int:
        """As slow as the slow ones."""
        return round(ticks * self.factor)


class FullLinks(Rule):
    """The links to `nodes` are full: who sends is told so, and what it sends then is dropped."""

    def __init__(self, nodes: Sequence[NodeId], simulator: Simulator) -> None:
        super().__init__()
        self.nodes, self.simulator = frozenset(nodes), simulator
        self.full: dict[tuple[NodeId, NodeId], None] = {}

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Let one message pass, the one that fills the link."""
        if target not in self.nodes:
            return delays
        if (source, target) in self.full:
            return []
        self.full[source, target] = None
        self.simulator.tell(source, Busy(target))
        return delays

    def end(self) -> None:
        """The links take messages again."""
        for source, target in self.full:
            self.simulator.tell(source, Ready(target))


class Starve(Rule):
    """One victim hears everything as late as fairness allows."""

    def __init__(self, victim: NodeId) -> None:
        super().__init__()
        self.victim = victim

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Delay to the bound."""
        return [FAIRNESS_TICKS for _ in delays] if target == self.victim else delays

    def delay_max(self, ticks: int) -> int:
        """The victim waits until the bound, the others do not."""
        return max(ticks, FAIRNESS_TICKS)


class NewestFirst(Rule):
    """Within each window of time the message sent last arrives first."""

    def __init__(self, simulator: Simulator, window: int = INTERVAL) -> None:
        super().__init__()
        self.simulator, self.window = simulator, window

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Mirror the sending time at the end of its window."""
        until_end = self.window - self.simulator.tick % self.window
        return [2 * until_end for _ in delays]

    def delay_max(self, ticks: int) -> int:
        """What is sent first in a window arrives last, at the end of the next one."""
        return 2 * self.window


class TypePriorities(Rule):
    """Message types have ranks drawn from the seed; the lower the rank, the later it arrives."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng
        self.rank: dict[str, float] = {}

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Delay by rank."""
        tag = tag_of(message)
        if tag not in self.rank:
            self.rank[tag] = self.rng.random()
        held = round(self.rank[tag] * FAIRNESS_TICKS)
        return [ticks + held for ticks in delays]

    def delay_max(self, ticks: int) -> int:
        """The lowest rank waits until the bound."""
        return ticks + FAIRNESS_TICKS


class ConstantDelays(Rule):
    """Every link has one delay for ever, drawn from the seed; in one run of four all are alike.

    Timeouts keep their phases where clocks do not drift, so the same order of events comes round
    in every interval: beliefs that confirm each other survive what random delays would break.
    """

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng
        self.high = rng.choice((INTERVAL // 2, INTERVAL, FAIRNESS_TICKS))
        self.common = 1 + rng.randrange(self.high) if rng.random() < 0.25 else None
        self.ticks: dict[tuple[NodeId, NodeId], int] = {}

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Take the link's own time."""
        link = (source, target)
        if link not in self.ticks:
            self.ticks[link] = self.common or 1 + self.rng.randrange(self.high)
        return [self.ticks[link] for _ in delays]

    def delay_max(self, ticks: int) -> int:
        """The slowest link."""
        return self.common or self.high


class AlternatingDelays(Rule):
    """Every link has two delays, drawn from the seed, and takes them in turn.

    Where they are far apart every other message is overtaken by the next, again and again: what is
    true of a link's newest message is believed after what was true of the one before.
    """

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng
        self.high = rng.choice((INTERVAL, 2 * INTERVAL, FAIRNESS_TICKS))
        self.turns: dict[tuple[NodeId, NodeId], tuple[int, int]] = {}  # the next one first

    def change(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """Take the one whose turn it is."""
        link = (source, target)
        if link not in self.turns:
            self.turns[link] = (
                1 + self.rng.randrange(self.high),
                1 + self.rng.randrange(self.high),
            )
        now, then = self.turns[link]
        self.turns[link] = (then, now)
        return [now for _ in delays]

    def delay_max(self, ticks: int) -> int:
        """The slower of the slowest link."""
        return self.high


def last_in_first_out(bucket: list[Entry]) -> list[Entry]:
    """Within a tick the newest input comes first."""
    return bucket[::-1]


def use_scheduler(simulator: Simulator, name: str, rng: Random) -> None:
    """Give the run one of the `SCHEDULERS`; `starve` picks its victim among the present nodes."""
    makers: dict[str, Callable[[], Rule]] = {
        "newest": lambda: NewestFirst(simulator),
        "starve": lambda: Starve(rng.choice(sorted(simulator.nodes))),
        "priority": lambda: TypePriorities(rng),
        "constant": lambda: ConstantDelays(rng),
        "alternating": lambda: AlternatingDelays(rng),
    }
    if name == "lifo":
        simulator.order = last_in_first_out
    elif name in makers:
        simulator.rules.append(makers[name]())
    elif name != "fifo":
        raise unknown("scheduler", name, SCHEDULERS)
