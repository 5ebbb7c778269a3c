"""Trials of the content overlay with a book that forgives nothing, and its layers told apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from planaria.core.book import Book
from planaria.core.ids import NodeId
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.protocols.content.overlay import RECONFIGURATION, ContentOverlay
from planaria.simulator.checkers import Bookkeeper
from planaria.simulator.engine import Observer
from planaria.simulator.trial import Outcome, Spec, Trial
from planaria.simulator.worlds.content import ContentWorld
from planaria.simulator.worlds.definitions import wants


class WatchedWorld(ContentWorld):
    """Counts how long the routing took after the tree below it was right."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.judged = self.last_wrong = 0
        self.tree_right: int | None = None

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        flight = list(channel)
        self.judged += 1
        if self.tree_violations(states, flight):
            self.tree_right = None
        elif self.tree_right is None:
            self.tree_right = self.judged
        wrong = ContentOverlay.violations(self, states, flight)
        if wrong:
            self.last_wrong = self.judged
        return wrong or self._unpublished(states, flight)

    @property
    def within_bound(self) -> bool:
        """Was the routing right 2 pi + d*dmax after the tree?"""
        if self.tree_right is None:
            return False
        return self.last_wrong - self.tree_right + 1 <= self.timing.delta


def run(
    overlay: WatchedWorld, spec: Spec, observers: Sequence[Observer] = ()
) -> tuple[Outcome, Book]:
    """A trial that must heal, and a book that forgives nothing."""
    trial = Trial(overlay, spec, observers)
    book = Book(wants, within=overlay.reach + RECONFIGURATION)
    for id in trial.simulator.nodes:
        for command in overlay.subscriptions(id):
            book.subscribed(id, command)
    trial.simulator.watch(Bookkeeper(book, overlay.subscriptions))
    outcome = trial.run()
    assert outcome.failure is None, spec.command(overlay)
    assert outcome.metrics["tree"]
    assert outcome.metrics["degree_max"] <= 3
    assert overlay.within_bound, spec.command(overlay)
    return outcome, book
