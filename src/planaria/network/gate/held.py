"""Publications that wait until somebody would get them: parts know others, links have room."""

from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.network.client.messages import Put, PutNew
from planaria.network.gate.session import Session
from planaria.records.record import INCARNATION_BYTES, MalformedRecord, Record, decode, seal

HELD_MAX = 1024  # of them
HELD_BYTES_MAX = 64 << 20
HELD_SECONDS = 10.0

Place = tuple[str, str]  # an overlay and a topic
Waiting = tuple[float, Session, Put | PutNew]


class Held:
    """What waits, by its place, in the order in which it came."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[Place, deque[Waiting]] = {}
        self._count = self._bytes = 0

    def __contains__(self, place: Place) -> bool:
        return place in self._held

    def __iter__(self) -> Iterator[Place]:
        return iter(self._held)

    def __len__(self) -> int:
        return self._count

    def add(self, place: Place, session: Session, message: Put | PutNew) -> None:
        """Keep one more; raises CapacityExceeded if they are too many, or too large."""
        size = size_of(message)
        if self._count >= HELD_MAX or self._bytes + size > HELD_BYTES_MAX:
            raise CapacityExceeded(f"{self._count} publications wait for their way: publish later")
        self._held.setdefault(place, deque()).append((self._clock(), session, message))
        self._change(session, size)

    def due(
        self, has_room: Callable[[Place], bool], has_way: Callable[[Place], bool]
    ) -> Iterator[tuple[Place, Session, Put | PutNew]]:
        """Take out what there is room for, and a way, or has waited for that for long enough."""
        for place, waiting in [*self._held.items()]:
            while (waiting and has_room(place)) and (
                has_way(place) or self._clock() - waiting[0][0] > HELD_SECONDS
            ):
                _, session, message = waiting.popleft()
                self._change(session, -size_of(message))
                yield place, session, message
            if not waiting and self._held.get(place) is waiting:
                del self._held[place]

    def overdue(self) -> Iterator[tuple[Session, Put | PutNew]]:
        """Take out what has found no room for long, and what its client published after it."""
        for place, waiting in [*self._held.items()]:
            limit = self._clock() - HELD_SECONDS
            late = dict.fromkeys(session for since, session, _ in waiting if since < limit)
            kept = deque(it for it in waiting if it[1] not in late)
            self._held[place] = kept
            for _, session, message in [it for it in waiting if it[1] in late]:
                self._change(session, -size_of(message))
                yield session, message
            if not kept:
                del self._held[place]

    def gone(self, session: Session) -> None:
        """A client is gone: it publishes again elsewhere."""
        for place, waiting in [*self._held.items()]:
            for one in [it for it in waiting if it[1] is session]:
                waiting.remove(one)
                self._change(session, -size_of(one[2]))
            if not waiting:
                del self._held[place]

    def _change(self, session: Session, size: int) -> None:
        self._count += 1 if size >= 0 else -1
        self._bytes += size
        session.put_bytes += size


def size_of(message: Put | PutNew) -> int:
    """The bytes that are to be published, at least one."""
    if isinstance(message, Put):
        return max(1, len(message.record))
    return max(1, sum(len(it.payload) for it in message.drafts))


def record_of(message: Put | PutNew, publisher: NodeId) -> Record:
    """What a client publishes, sealed if it did not do that: the same bytes through any node.

    Raises UsageError if it is nothing that can be published.
    """
    if isinstance(message, Put):
        try:
            record = decode(message.record)
        except MalformedRecord as error:
            raise UsageError(str(error)) from None
        if record.publisher != publisher:
            raise UsageError(
                f"a record of {record.publisher}: this client publishes as {publisher}"
            )
        return record
    if not message.drafts:
        raise UsageError("nothing to publish")
    stamp = message.drafts[0].timestamp
    token = blake2b(message.token, digest_size=INCARNATION_BYTES).digest()
    return seal((publisher, token), 0, message.drafts, time=(stamp or 0) // 1_000_000)
