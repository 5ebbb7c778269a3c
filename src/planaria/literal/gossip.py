"""Dissemination of daMulticast as printed (paper 2, Figures 5 and 7), for tests and reports only.

Errata kept: election by RAND() >= p_sel (1), one send too many where ln S + c is whole, and `log`
left open (2), selecting from an empty set (3), a coin per table entry (4), tables and subscription
of the event's topic instead of the forwarder's group (18), a publisher that does not mark its own
event (19) and elects itself like anybody else (20).
"""

from collections.abc import Callable
from math import log
from random import Random

from planaria.core.ids import NodeId
from planaria.protocols.gossip.parameters import Parameters


class LiteralProcess:
    """One process p_l; `tables` and `stables` are by topic, as Table_Ti and sTable_Ti are."""

    def __init__(
        self,
        topic: str,
        tables: dict[str, list[NodeId]],
        stables: dict[str, list[NodeId]],
        sizes: dict[str, int],
        dials: Parameters,
        rng: Random,
        logarithm: Callable[[float], float] = log,
    ) -> None:
        self.topic, self.tables, self.stables, self.sizes = topic, tables, stables, sizes
        self.dials, self.rng, self.logarithm = dials, rng, logarithm
        self.subscribed = [topic]
        self.received: list[bytes] = []
        self.delivered: list[bytes] = []

    def disseminate(self, topic: str) -> tuple[list[NodeId], list[NodeId]]:
        """DISSEMINATE(e_Ti): whom the event of `topic` is sent to, above and within (Figure 7)."""
        if topic not in self.subscribed:
            self.subscribed.append(topic)
        size = self.sizes[topic]
        above: list[NodeId] = []
        within: list[NodeId] = []
        if self.rng.random() >= self.dials.g / size:
            p_a = self.dials.a / self.dials.z
            above = [process for process in self.stables[topic] if self.rng.random() < p_a]
        j = 0
        while j <= self.logarithm(size) + self.dials.c:
            rest = [process for process in self.tables[topic] if process not in within]
            within.append(self.rng.choice(rest))
            j += 1
        return above, within

    def publish(self, topic: str) -> tuple[list[NodeId], list[NodeId]]:
        """A process willing to disseminate an event does so; nothing marks it as received."""
        return self.disseminate(topic)

    def receive(self, topic: str, event: bytes) -> tuple[list[NodeId], list[NodeId]]:
        """RECEIVE(e_Ti): forward and deliver an event not received yet (Figure 5)."""
        if event in self.received:
            return [], []
        self.received.append(event)
        sent = self.disseminate(topic)
        self.delivered.append(event)
        return sent
