"""What a broker tells each neighbour of the filters behind it, and keeps telling."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.node import Send
from planaria.core.state import State, Stateful
from planaria.filters.filters import Attributes, Filter, covers, filter_id
from planaria.protocols.routing.leases import Destination, Table, is_sound
from planaria.protocols.routing.link import Link
from planaria.protocols.routing.messages import LEASE_ID_MAX, LEASES_MAX, STAMPS, Update
from planaria.protocols.routing.strategies import reduced

AT_ONCE_MAX = 16  # news of one message that are passed on at once; more wait for the timeout
IDS_MAX = 100_000  # ids of filters kept at hand

Announced = dict[int, Filter]
News = Sequence[tuple[int, Filter]]


class AnnouncerState(State):
    """What neighbours were told and were to be told, and the ids of filters kept at hand."""

    announced: dict[int, Announced]
    stamp: int
    sent: int
    wanted: dict[int, Announced]
    stale: dict[int, None]
    ids: list[tuple[Filter, int]]


class Announcer(Stateful):
    """Keeps `announced`, by neighbour, equal to what the strategy makes of the routing table.

    `announced`, `stamp` and `sent` are its own; the rest is computed from the routing table again
    and again, at the latest when the broker's clock overruns.
    """

    __slots__ = (
        "_sample",
        "announced",
        "id",
        "ids",
        "sent",
        "stale",
        "stamp",
        "strategy",
        "wanted",
        "waste_max",
    )

    state_type = AnnouncerState

    def __init__(
        self,
        id: NodeId,
        strategy: str,
        waste_max: float,
        sample: Callable[[], Sequence[Attributes]],
    ) -> None:
        self.id, self.strategy, self.waste_max = id, strategy, waste_max
        self.announced: dict[NodeId, Announced] = {}
        self.stamp = 0
        self.sent = 0
        self._sample = sample
        self.wanted: dict[NodeId, Announced] = {}
        self.stale: dict[NodeId, None] = {}
        self.ids: dict[Filter, int] = {}

    def changed(self, links: Iterable[NodeId], but: Destination | None = None) -> None:
        """The table changed: what neighbours have to know must be computed anew."""
        for link in links:
            if link != but:
                self.wanted.pop(link, None)
                self.stale[link] = None

    def renew(self, links: Iterable[NodeId]) -> None:
        """A leasing period is over: trust nothing computed before, for a fault may change it."""
        self.ids.clear()
        self.wanted.clear()
        self.changed(links)

    def spread(
        self, audience: Mapping[NodeId, Link], source: Destination, news: News
    ) -> list[Send]:
        """Tell all but the `source` of a few new filters at once; the timeout tidies up."""
        if len(news) > AT_ONCE_MAX:
            return []
        effects = []
        for neighbour, link in audience.items():
            if neighbour == source:
                continue
            announced = self.announced.setdefault(neighbour, {})
            leases = []
            for id, filter in news:
                if id not in announced and not self._hidden(filter, announced):
                    announced[id] = filter
                    leases.append((id, filter))
            if leases:
                effects.append(self._update(neighbour, link, leases, []))
        return effects

    def tell(
        self, neighbour: NodeId, link: Link, table: Table, *,
        everything: bool = False, asks: bool = False,
    ) -> list[Send]:  # fmt: skip
        """Bring what `neighbour` knows in line with the table; `everything` renews the rest too.

        New leases and the cancels they make up for travel in one message: there is no moment at
        which neither holds. A renewal is at least one message, since it brings the session.
        """
        if not everything and neighbour not in self.stale:
            return []
        self.stale.pop(neighbour, None)
        wanted, announced = self._wanted_by(neighbour, table), self.announced.get(neighbour, {})
        fresh = [(id, filter) for id, filter in wanted.items() if announced.get(id) != filter]
        cancels = [id for id in announced if id not in wanted and 0 <= id <= LEASE_ID_MAX]
        old = [it for it in wanted.items() if announced.get(it[0]) == it[1]] if everything else []
        self.announced[neighbour] = dict(wanted)
        if len(fresh) > LEASES_MAX and cancels:
            self.announced[neighbour] |= {id: announced[id] for id in cancels}
            self.stale[neighbour] = None
            cancels = []
        starts = range(0, len(fresh), LEASES_MAX) or range(len(cancels) > 0)
        parts = [fresh[at : at + LEASES_MAX] for at in starts]
        parts += [old[at : at + LEASES_MAX] for at in range(0, len(old), LEASES_MAX)]
        if everything and not parts:
            parts = [[]]
        return [
            self._update(neighbour, link, part, [] if place else cancels, asks=asks)
            for place, part in enumerate(parts)
        ]

    def state(self) -> AnnouncerState:
        """The variables; ids as pairs, since a filter is no key on the wire."""
        ids = list(self.ids.items())
        return AnnouncerState(self.announced, self.stamp, self.sent, self.wanted, self.stale, ids)

    def load(self, state: State) -> None:
        """Take these variables."""
        assert isinstance(state, AnnouncerState)
        self.announced, self.stamp, self.sent = state.announced, state.stamp, state.sent
        self.wanted, self.stale, self.ids = state.wanted, state.stale, dict(state.ids)

    def filter_id(self, filter: Filter) -> int:
        """The id of a filter's set of notifications, from memory if it was asked before."""
        found = self.ids.get(filter)
        if found is None:
            if len(self.ids) >= IDS_MAX:
                self.ids.clear()
            found = self.ids[filter] = filter_id(filter)
        return found

    def repair(self, links: Iterable[NodeId]) -> None:
        """Forget those that are no neighbours, and bring the stamp back into its range."""
        self.stamp %= STAMPS
        present = list(links)
        for link in [it for it in self.announced if it not in present]:
            del self.announced[link]

    def _wanted_by(self, link: NodeId, table: Table) -> Announced:
        """What `link` has to know: all that it did not say itself, reduced by the strategy."""
        found = self.wanted.get(link)
        if found is None:
            everything = {
                id: lease.filter
                for destination, leases in table.items()
                if destination != link
                for id, lease in leases.items()
                if is_sound(id, lease.filter)
            }
            sample = self._sample() if self.waste_max > 0 else ()
            found = reduced(self.strategy, everything, sample, self.waste_max, self.filter_id)
            self.wanted[link] = found
        return found

    def _hidden(self, filter: Filter, announced: Announced) -> bool:
        if self.strategy not in ("covering", "merging"):
            return False
        return any(covers(other, filter) for other in announced.values())

    def _update(
        self, neighbour: NodeId, link: Link, leases: News, cancels: list[int], *,
        asks: bool = False,
    ) -> Send:  # fmt: skip
        self.stamp = (self.stamp + 1) % STAMPS
        self.sent += len(leases) + len(cancels)
        sound = tuple(it for it in leases if is_sound(*it))  # what is cached may be corrupted
        message = Update(self.id, self.stamp, sound, tuple(cancels), link.session, asks)
        return Send(neighbour, message)
