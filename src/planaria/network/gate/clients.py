"""Who is connected to a node and what they do there, for its status: read, and nothing changed.

Of many clients those are shown that came first, of each a few subscriptions and streams whose names
are not too long, so that a status always fits a frame. Names of topics are never cut: by them it is
judged who may see that.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from planaria.network.client.overlays import RING
from planaria.network.gate.cursors import Cursor, Tail
from planaria.network.gate.followers import Follower
from planaria.network.gate.others import Others
from planaria.network.gate.session import Session
from planaria.network.status import ClientStatus, FollowedStatus, PublishedStatus
from planaria.protocols.skipring.membership import Membership
from planaria.records.record import Stream
from planaria.records.store import Store

if TYPE_CHECKING:
    from planaria.network.gate.gate import Gate

CLIENTS_SHOWN = 64
SHOWN_MAX = 5  # subscriptions of one client, and streams
NAMES_MAX = 512  # bytes of their topics, of each of the two
TEXT_MAX = 80  # characters of a condition, or of a certificate's name
COUNTED_MAX = 256  # streams of one tail that are compared with what it was sent
NUMBER_MAX = 1 << 53  # a fault may leave any number in memory; JSON's readers know these

T = TypeVar("T")


def client_statuses(gate: "Gate", now: float) -> list[ClientStatus]:
    """The clients of a gate that came first; `now` by the loop's clock."""
    sessions = islice(gate.sessions.values(), CLIENTS_SHOWN)
    topics = gate.memberships.ring.peer.topics
    return [client_status(session, gate.others, topics, now) for session in sessions]


def client_status(
    session: Session, others: Others | None, topics: Mapping[str, Membership], now: float
) -> ClientStatus:
    """One client."""
    connection, theirs = session.connection, session.connection.theirs
    elsewhere = [] if others is None else others.followed(session)
    tails: list[Tail | Follower] = [*session.tails.values(), *elsewhere]
    fitting = _fitting([(it.pattern, it) for it in tails])
    latest = [(place[1], (place, count)) for place, count in session.published.items()]
    link = connection.link
    return ClientStatus(
        id="" if theirs is None else theirs.id.hex(),
        name=None if session.name is None else _cut(session.name),
        address=connection.address,
        seconds=round(max(0.0, now - connection.since), 3),
        sent=connection.sent,
        received=connection.received,
        unacknowledged=link.control.bytes + link.bulk.bytes,
        requests=session.requests,
        unanswered=session.open,
        follows=[_tail(it, topics) if isinstance(it, Tail) else _follower(it) for it in fitting],
        follows_total=len(tails),
        publishes=[
            PublishedStatus(topic, f"{publisher}/{incarnation.hex()}", overlay, count)
            for (overlay, topic, (publisher, incarnation)), count in _fitting(latest[::-1])
        ],
        publishes_total=len(session.published),
    )


def _tail(tail: Tail, topics: Mapping[str, Membership]) -> FollowedStatus:
    where = None if tail.where is None else _cut(tail.where)
    return FollowedStatus(tail.pattern, RING, where, _behind(tail, topics))


def _follower(one: Follower) -> FollowedStatus:
    where = None if one.where is None else _cut(one.where)
    behind = sum(piece.hi - piece.lo for it in one.behind for piece in it.pieces)
    return FollowedStatus(one.pattern, one.overlay, where, behind, one.lost)


def _behind(tail: Tail, topics: Mapping[str, Membership]) -> int | None:
    """The publications between what is held and what was sent; None: too many streams."""
    waiting = {
        topic: dict.fromkeys((*cursor.grown, *cursor.holes))
        for topic, cursor in tail.cursors.items()
        if topic in topics and (cursor.grown or cursor.holes)
    }
    if sum(map(len, waiting.values())) > COUNTED_MAX:
        return None
    found = 0
    for topic, streams in waiting.items():
        count = partial(_unsent, tail.cursors[topic], streams, tail.floor)
        found += topics[topic].history.holdings.ask(count)
    return min(found, NUMBER_MAX)


def _unsent(cursor: Cursor, streams: Iterable[Stream], floor: int, store: Store) -> int:
    found = 0
    for stream in streams:
        lane = store.index.lanes.get(stream)
        if lane is not None:
            mark = cursor.marks.get(stream)
            start = lane.since(floor) if mark is None else mark.next
            found += max(0, lane.covered.end - start)
    return found


def _fitting(named: Iterable[tuple[str, T]]) -> list[T]:
    """The first few whose names fit."""
    found: list[T] = []
    size = 0
    for name, it in named:
        length = len(name.encode(errors="replace"))
        if len(found) < SHOWN_MAX and size + length <= NAMES_MAX:
            found.append(it)
            size += length
    return found


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
