"""What a broker tells each neighbour of the filters behind it, and keeps telling."""

from collections.abc import Callable, Iterable, Sequence

from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send
from planaria.filters.filters import Attributes, Filter, covers, filter_id
from planaria.protocols.routing.leases import Destination, Table, is_sound
from planaria.protocols.routing.messages import LEASE_ID_MAX, LEASES_MAX, STAMPS, Update
from planaria.protocols.routing.strategies import reduced

AT_ONCE_MAX = 16  # news of one message that are passed on at once; more wait for the timeout
IDS_MAX = 100_000  # ids of filters kept at hand

Told = dict[int, Filter]
News = Sequence[tuple[int, Filter]]


class Announcer:
    """Keeps `told`, by neighbour, equal to what the strategy makes of the routing table.

    `told` and `stamp` are protocol state; the rest is computed from the routing table again and
    again, at the latest when the broker's clock overruns.
    """

    __slots__ = (
        "_ids",
        "_sample",
        "_stale",
        "_wanted",
        "id",
        "sent",
        "stamp",
        "strategy",
        "told",
        "waste_max",
    )

    def __init__(
        self,
        id: NodeId,
        strategy: str,
        waste_max: float,
        sample: Callable[[], Sequence[Attributes]],
    ) -> None:
        self.id, self.strategy, self.waste_max = id, strategy, waste_max
        self.told: dict[NodeId, Told] = {}
        self.stamp = 0
        self.sent = 0
        self._sample = sample
        self._wanted: dict[NodeId, Told] = {}
        self._stale: dict[NodeId, None] = {}
        self._ids: dict[Filter, int] = {}

    def changed(self, links: Iterable[NodeId], but: Destination | None = None) -> None:
        """The table changed: what neighbours have to know must be computed anew."""
        for link in links:
            if link != but:
                self._wanted.pop(link, None)
                self._stale[link] = None

    def renew(self, links: Iterable[NodeId]) -> None:
        """A leasing period is over: trust nothing computed before, for a fault may change it."""
        self._ids.clear()
        self._wanted.clear()
        self.changed(links)

    def spread(self, audience: Iterable[NodeId], source: Destination, news: News) -> list[Effect]:
        """Tell all but the `source` of a few new filters at once; the timeout tidies up."""
        if len(news) > AT_ONCE_MAX:
            return []
        effects: list[Effect] = []
        for link in audience:
            if link == source:
                continue
            told = self.told.setdefault(link, {})
            leases = []
            for id, filter in news:
                if id not in told and not self._hidden(filter, told):
                    told[id] = filter
                    leases.append((id, filter))
            if leases:
                effects.append(self._update(link, leases, []))
        return effects

    def tell(
        self,
        link: NodeId,
        table: Table,
        *,
        everything: bool = False,
        hello: bool = False,
    ) -> list[Effect]:
        """Bring what `link` knows in line with the table; `everything` renews the rest too.

        New leases and the cancels they make up for travel in one message: there is no moment at
        which neither holds.
        """
        if not everything and link not in self._stale:
            return []
        self._stale.pop(link, None)
        wanted, told = self._wanted_by(link, table), self.told.get(link, {})
        fresh = [(id, filter) for id, filter in wanted.items() if told.get(id) != filter]
        cancels = [id for id in told if id not in wanted and 0 <= id <= LEASE_ID_MAX]
        old = [it for it in wanted.items() if told.get(it[0]) == it[1]] if everything else []
        self.told[link] = dict(wanted)
        if len(fresh) > LEASES_MAX and cancels:
            self.told[link] |= {id: told[id] for id in cancels}
            self._stale[link] = None
            cancels = []
        effects: list[Effect] = []
        if fresh or cancels or hello:
            effects.append(self._update(link, fresh[:LEASES_MAX], cancels, hello=hello))
        rest = fresh[LEASES_MAX:] + old
        starts = range(0, len(rest), LEASES_MAX)
        return effects + [self._update(link, rest[at : at + LEASES_MAX], []) for at in starts]

    def filter_id(self, filter: Filter) -> int:
        """The id of a filter's set of notifications, from memory if it was asked before."""
        found = self._ids.get(filter)
        if found is None:
            if len(self._ids) >= IDS_MAX:
                self._ids.clear()
            found = self._ids[filter] = filter_id(filter)
        return found

    def repair(self, links: Iterable[NodeId]) -> None:
        """Forget those that are no neighbours, and bring the stamp back into its range."""
        self.stamp %= STAMPS
        present = list(links)
        for link in [it for it in self.told if it not in present]:
            del self.told[link]

    def _wanted_by(self, link: NodeId, table: Table) -> Told:
        """What `link` has to know: all that it did not say itself, reduced by the strategy."""
        found = self._wanted.get(link)
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
            self._wanted[link] = found
        return found

    def _hidden(self, filter: Filter, told: Told) -> bool:
        if self.strategy not in ("covering", "merging"):
            return False
        return any(covers(other, filter) for other in told.values())

    def _update(
        self, link: NodeId, leases: News, cancels: list[int], *, hello: bool = False
    ) -> Send:
        self.stamp = (self.stamp + 1) % STAMPS
        self.sent += len(leases) + len(cancels)
        sound = tuple(it for it in leases if is_sound(*it))  # what is cached may be corrupted
        return Send(link, Update(self.id, self.stamp, sound, tuple(cancels), hello))
