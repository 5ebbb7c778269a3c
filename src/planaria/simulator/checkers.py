"""What must hold at every step of a run, whatever the faults. Liveness is judged in `trial`."""

from planaria.core.ids import NodeId
from planaria.core.node import Deliver
from planaria.simulator.engine import Entry


class SafetyBroken(AssertionError):
    """A checker saw a step that must not be; `trial` adds seed, tick and replay command."""

    def __init__(self, checker: str, tick: int, detail: str) -> None:
        super().__init__(detail)
        self.checker, self.tick, self.detail = checker, tick, detail


class DeliveredOnce:
    """No application is handed one publication twice, not even by two of its subscriptions.

    A node that restarts with no state, or with an old one, is a new application, and so is one
    whose variables a fault has changed: what it was handed before, nobody may remember.
    """

    name = "delivered-once"
    kinds = ("effect", "restart", "fault")

    def __init__(self) -> None:
        self._seen: dict[NodeId, set[bytes]] = {}
        self.delivered = 0

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Look at every delivery to an application."""
        if kind == "fault" or (kind == "restart" and effect != "kept"):
            self._seen.pop(node, None)
        if kind != "effect" or not isinstance(effect, Deliver):
            return
        self.delivered += 1
        seen = self._seen.setdefault(node, set())
        if effect.id in seen:
            raise SafetyBroken(
                self.name, tick, f"node {node} was handed {effect.id.hex()} a second time"
            )
        seen.add(effect.id)
