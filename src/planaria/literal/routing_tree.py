"""Leased routing as printed, put on a tree that changes (ERRATA, end of section 3).

Readings between 'one entry for each id, newer replaces older, wait for the refresh' and ours.
"""

from typing import Any

from planaria.core.ids import NodeId
from planaria.core.node import Effect
from planaria.filters.filters import Filter
from planaria.protocols.routing.leases import Destination, LeaseTable
from planaria.protocols.routing.link import Link
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.overlay import TreeBroker


class ReplacingTable(LeaseTable):
    """One entry for each id: a newer one replaces what came over another link."""

    def insert(self, destination: Destination, id: int, filter: Filter, stamp: int = 0) -> bool:
        """Remove all entries with this id, whatever their destination; then insert."""
        for other in list(self.entries):
            if other != destination and other >= 0:
                self.remove(other, id)
        return super().insert(destination, id, filter, stamp)


class PrintedTreeBroker(TreeBroker):
    """`replaces`: one entry per id. `exchanges`: both ends of a new link send their tables.

    `cancels`: what was behind a lost link is unsubscribed. `replays`: as the broker of this
    project does.
    """

    def __init__(
        self,
        *arguments: Any,
        replaces: bool,
        exchanges: bool,
        cancels: bool,
        replays: bool,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.exchanges, self.cancels, self.replays = exchanges, cancels, replays
        if replaces:
            self.table = ReplacingTable(self.timing.pi)

    def link_up(self, neighbour: NodeId, *, parent: bool = False) -> list[Effect]:
        """A new link, with or without an exchange of tables."""
        effects = super().link_up(neighbour, parent=parent)
        if self.exchanges:
            return effects
        self.announcer.announced.pop(neighbour, None)
        return []

    def _meet(self, neighbour: NodeId, link: Link, session: int) -> list[Effect]:
        effects = super()._meet(neighbour, link, session)
        return effects if self.exchanges else []

    def link_down(self, neighbour: NodeId) -> list[Effect]:
        """A lost link, with or without unsubscribing what was behind it."""
        effects = super().link_down(neighbour)
        if self.cancels:
            for id in list(self.table.of(neighbour)):
                self.table.remove(neighbour, id)
            self.announcer.changed(self.links)
        return effects

    def _replay(self, link: NodeId, filters: Any = None) -> list[Effect]:
        return Broker._replay(self, link, filters) if self.replays else []
