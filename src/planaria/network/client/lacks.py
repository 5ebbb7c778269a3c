"""What a subscription's node says that it lacks: asked of the other nodes, in the end skipped.

A node's cursor stops at a number that may still come. Mostly it comes at once. If not, another node
may have it, or may have seen it expire: a node that joined later cannot know. If none has it for
long (its publisher died before it reached anyone) the subscription goes on after it, says so, and
takes the number as late should it come after all.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planaria.core.errors import PlanariaError
from planaria.core.node import Notice
from planaria.network.client.access import Access
from planaria.network.client.messages import Lack, Pieces, Position, Read
from planaria.network.client.parcels import Parcel
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers
from planaria.network.client.verifying import Verifier
from planaria.records.record import Stream

if TYPE_CHECKING:
    from planaria.network.client.subscription import Subscription

ASK_SECONDS = 2.0  # before others are asked: what is on its way comes sooner
GIVE_UP_SECONDS = 60.0  # after which a number is skipped that no node has
LACKING_MAX = 256  # holes that are looked for at a time


class Hole:
    """Numbers of one stream that the node lacks."""

    __slots__ = ("asked", "hi", "lo", "since")

    def __init__(self, lo: int, hi: int, now: float) -> None:
        self.lo, self.hi, self.since, self.asked = lo, hi, now, now


class Lacking:
    """The holes that one subscription waits at."""

    def __init__(
        self, owner: "Subscription[Any]", servers: Servers, access: Access, verifier: Verifier
    ) -> None:
        self.owner, self.servers, self.access, self._verifier = owner, servers, access, verifier
        self._holes: dict[tuple[str, Stream], Hole] = {}
        self._search: asyncio.Task[None] | None = None

    def note(self, topic: str, lacks: Sequence[Lack]) -> None:
        """The node lacks these now; what is expired nobody has."""
        now = asyncio.get_running_loop().time()
        for lack in lacks:
            name = (topic, (lack.publisher, lack.incarnation))
            hole = self._holes.get(name)
            known = hole is not None and hole.lo == lack.lo
            if not lack.expired and not known and len(self._holes) < LACKING_MAX:
                self._holes[name] = Hole(lack.lo, lack.hi, now)

    def tick(self, now: float) -> None:
        """Look for a hole that is old enough, one at a time."""
        if self._search is not None and not self._search.done():
            return
        for (topic, stream), hole in list(self._holes.items()):
            wanted = self.owner.mark(topic, stream).next
            if wanted > hole.lo:
                del self._holes[topic, stream]
            elif wanted == hole.lo and now - hole.asked > ASK_SECONDS:
                hole.asked = now
                self._search = asyncio.create_task(self._fill(topic, stream, hole))
                return

    async def close(self) -> None:
        """Look for nothing more."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)

    async def _fill(self, topic: str, stream: Stream, hole: Hole) -> None:
        """Ask all other nodes for it, and go on as the first of them does that passes it."""
        begin = [Position(*stream, hole.lo, self.owner.mark(topic, stream).skipped)]
        to = [Position(*stream, hole.hi)]
        where = None if self._verifier.verifies else self.owner.where  # as for its tail
        for address in self.servers:
            if address == self.owner.channel.address:
                continue
            asked = (topic, begin, to, hole.hi - hole.lo, 0, where)
            found = await read_at(address, self.access, *asked)
            if found is None or self._verifier.flaw((topic, it) for it in found.pieces):
                continue
            moved = [it for it in found.after if (it.publisher, it.incarnation) == stream]
            if moved and moved[0].next > hole.lo:
                parcel = Parcel(topic, found.pieces, moved, lacks=found.lacks, restart=True)
                self.owner.put(parcel)
                self._holes.pop((topic, stream), None)  # should it last, the node says so again
                return
        if asyncio.get_running_loop().time() - hole.since > GIVE_UP_SECONDS:
            self.owner.skip(topic, stream, hole.lo, hole.hi)


def gap(topic: str, publisher: int, incarnation: bytes, lo: int, hi: int) -> Notice:
    """These numbers are passed over."""
    detail = {"publisher": publisher, "incarnation": incarnation.hex(), "from": lo, "to": hi}
    return Notice(topic, "gap", detail)


def expired(parcel: Parcel) -> list[Notice]:
    """What a parcel passes over that nobody has any more."""
    lacks = [it for it in parcel.lacks if it.expired]
    return [gap(parcel.topic, it.publisher, it.incarnation, it.lo, it.hi) for it in lacks]


async def read_at(address: str, access: Access, *fields: Any) -> Pieces | None:
    """What one particular node answers to a `Read` of these fields; None if it does not."""
    requests = Requests(Servers([address]), access._replace(patience=0.0))
    try:
        await requests.channel.open()
        return await requests.ask(Read, Pieces, *fields)
    except PlanariaError:
        return None
    finally:
        await requests.channel.close()
