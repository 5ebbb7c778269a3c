"""What must hold at every step of a run, and the book that is kept of it. Liveness: `trial`."""

from collections.abc import Callable, Iterable

from planaria.core.book import Book, Handed
from planaria.core.ids import NodeId
from planaria.core.node import Command, Deliver, Effect, Leave, Subscribe
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import ENVIRONMENT, Entry


class SafetyBroken(AssertionError):
    """A checker saw a step that must not be; `trial` adds seed, tick and replay command."""

    def __init__(self, checker: str, tick: int, detail: str) -> None:
        super().__init__(detail)
        self.checker, self.tick, self.detail = checker, tick, detail


class DeliveredOnce:
    """No application is handed one publication twice.

    A node that restarts with no state, or with an old one, has new applications, and so has one
    whose variables a fault has changed: what they were handed before, nobody may remember.
    """

    name = "delivered-once"
    kinds = ("effect", "restart", "fault")

    def __init__(self) -> None:
        self._handed = Handed()
        self.delivered = 0

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Look at every delivery to an application."""
        if forgets(kind, effect):
            self._handed.renew(node)
        if kind != "effect" or not isinstance(effect, Deliver):
            return
        client = self._handed.client(node, effect.client)
        for delivery in effect.publications:
            self.delivered += 1
            if not self._handed.note(tick, client, delivery.id):
                detail = f"node {node} was handed {delivery.id.hex()} a second time"
                raise SafetyBroken(self.name, tick, detail)


class Bookkeeper:
    """Watches a run and enters it in a `Book`, ticks as intervals.

    `subscriptions` are those that a new node begins with; at the start of the run they count as
    `in_force` or as just asked for.
    """

    kinds = ("command", "effect", "start", "stop", "restart", "fault")

    def __init__(
        self,
        book: Book,
        subscriptions: Callable[[NodeId], Iterable[Subscribe]],
        *,
        in_force: bool = False,
    ) -> None:
        self.book, self.subscriptions, self.in_force = book, subscriptions, in_force
        self.left: dict[NodeId, None] = {}  # nodes whose applications said that they leave

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Enter what happened."""
        time = tick / INTERVAL
        if kind == "start":
            self._started(time, node)
        elif kind == "stop":
            self.book.stop(time, node)
        elif isinstance(effect, Command):
            self.book.command(time, node, effect)
            if isinstance(effect, Leave):
                self.left[node] = None
        elif isinstance(effect, Effect):
            self.book.effect(time, node, effect)
        elif forgets(kind, effect) and node != ENVIRONMENT:
            if kind == "restart" and effect != "persisted":
                self.left.pop(node, None)
            self.book.forget(time, node)
            if kind == "fault":
                self.book.excuse(time)

    def _started(self, time: float, node: NodeId) -> None:
        """Whoever comes back with the state of one that has left wants nothing."""
        self.book.start(time, node)
        for command in () if node in self.left else self.subscriptions(node):
            if self.in_force and time == 0:
                self.book.subscribed(node, command)
            else:
                self.book.command(time, node, command)


def forgets(kind: str, effect: object) -> bool:
    """Is this something after which the applications of a node are new ones?"""
    return kind == "fault" or (kind == "restart" and effect != "kept")
