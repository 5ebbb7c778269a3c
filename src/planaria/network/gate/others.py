"""Clients in the overlays beside `ring`: they get what passes while they listen.

Nothing is kept for a client but what its link does not take at once, up to a bound. A publication
travels in a record, by whose key a repeat is known: a client that publishes again through another
node, because the first did not answer, publishes nothing twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from time import time

from msgspec.structs import replace

from planaria.core.composite import Composite, InOverlay
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import (
    Command,
    Deliver,
    Delivery,
    Effect,
    Joined,
    Notice,
    Subscribe,
    Unsubscribe,
)
from planaria.core.state import encode_state
from planaria.core.topics import check_topic, matches
from planaria.network.client.messages import (
    COPIES,
    Passing,
    Piece,
    Put,
    PutNew,
    Resolve,
    Resolved,
    Stored,
    Tail,
    Tailing,
    Told,
)
from planaria.network.connection import Connection
from planaria.network.gate.followers import Follower, Lost, Refusal, Unjudged
from planaria.network.gate.held import Held, Place, record_of
from planaria.network.gate.session import TAILS_MAX, Elsewhere, Session
from planaria.network.overlays.part import LivePart
from planaria.network.pace import Pacing
from planaria.network.status import OverlayStatus
from planaria.records.record import Record

SEEN_MAX = 1 << 16  # keys of records that were handed out or in; then the oldest is forgotten
HERE = -1  # in place of a client who was handed it: published here

Wish = tuple[str, str]  # an overlay and what is subscribed to there
Keep = Callable[[Callable[[str | None], None]], None] | None


class Others:
    """All clients of a node in its overlays beside `ring`."""

    def __init__(
        self,
        node: Composite,
        command: Callable[[Command], None],
        clock: Callable[[], float],
        keep: Keep = lambda done: done(None),
        refusal: Refusal = lambda *_: "",
        check: Callable[[Session, str], None] = lambda *_: None,
        links: Callable[[], Iterable[Connection]] = tuple,
    ) -> None:
        """`keep` puts what the parts hold on disk and calls back, with what prevents that; None:
        there is no disk.

        `refusal`: why a client may not read a topic; None if that is not known yet. `check` raises
        UsageError if it may not publish there. `links` are what publications leave over.
        """
        self._refusal, self._check = refusal, check
        self._unjudged = Unjudged(refusal)
        self._keep = keep
        self._node, self._command, self._clock = node, command, clock
        self._followers: dict[Follower, None] = {}
        self._sessions: dict[Session, dict[int, Follower]] = {}  # the same by request
        self._groups: dict[tuple[str, int], list[Follower]] = {}  # by overlay and client
        self._used: dict[Wish, float] = {}  # by clients here, or by what passed: when last
        # The rest of what the parts are in, and since when: carried for a neighbour that asked,
        # joined before this process began, or left by a fault.
        self._carried: dict[Wish, float] = {}
        self._seen: dict[tuple[str, int, bytes], None] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._held = Held(clock)
        self._pacing = Pacing(links, self._release, patient=True)

    def __len__(self) -> int:
        return len(self._followers)

    def __iter__(self) -> Iterator[Follower]:
        return iter(self._followers)

    def statuses(self) -> dict[str, OverlayStatus]:
        """How the parts are that are awake, and what went through them."""
        return {
            part.overlay: replace(
                part.status(),
                clients=sum(it.overlay == part.overlay for it in self._followers),
                **dict(self._counts.get(part.overlay, Counter())),
            )
            for part in self._parts()
        }

    def followed(self, session: Session) -> list[Follower]:
        """What a client follows."""
        return [*self._sessions.get(session, {}).values()]

    def serves(self, overlay: str) -> bool:
        """Has this node a part in an overlay, awake or not?"""
        return overlay in self._node.parts

    def state(self, overlay: str) -> bytes | None:
        """What a judge needs of the part in an overlay; None if it sleeps, or there is none."""
        found = next((it for it in self._parts() if it.overlay == overlay), None)
        return None if found is None else encode_state(found.judged())

    def names(self, overlay: str) -> list[str]:
        """The topics that such a state tells of: of a group, the one whose name it has."""
        found = next((it for it in self._parts() if it.overlay == overlay), None)
        if found is None or found.has_conditions:  # which are about no topic
            return []
        names = [it.removesuffix("/#") for it in (*found.topics(), *found.wishes())]
        return [name for name in dict.fromkeys(names) if name != "#"]

    def part(self, overlay: str) -> LivePart:
        """This node's part in an overlay that it serves, awake or not."""
        part = self._node.parts[overlay]
        assert isinstance(part, LivePart)
        return part

    # Reading

    def resolve(self, session: Session, message: Resolve, overlay: str) -> None:
        """There is no beginning but now."""
        if message.since != "now":
            given = message.time if message.since == "time" else message.since
            raise UsageError(f"since {given!r}: {_no_history(overlay)}")
        session.answer(Resolved(message.request, {}, max(1, int(time())), {}))

    def follow(self, session: Session, message: Tail, pattern: str, overlay: str) -> None:
        """Hand a client what passes from now on."""
        if not message.floor:
            raise UsageError(f"since 'all': {_no_history(overlay)}")
        if message.compacted:
            raise UsageError(f"compacted: {_no_history(overlay)}")
        if len(self._sessions.get(session, ())) >= TAILS_MAX:
            raise UsageError(f"{TAILS_MAX} tails of one client: stop one first")
        part = self.part(overlay)
        client = 0
        if part.has_conditions:  # each client has conditions of its own
            client = next(it for it in count(1) if (overlay, it) not in self._groups)
        one = Follower(session, message, pattern, part, client)
        self.stop(session, message.request)
        self._followers[one] = None
        self._sessions.setdefault(session, {})[one.request] = one
        self._groups.setdefault((overlay, client), []).append(one)
        try:
            self._subscribe(overlay, Subscribe(one.wish, where=message.where, client=client))
        except UsageError:
            self._forget(one)
            raise
        if not client:
            self._used[overlay, one.wish] = self._clock()

    def stop(self, session: Session, request: int) -> None:
        """End a tail, if it is there."""
        one = self._sessions.get(session, {}).get(request)
        if one is not None:
            self._end(one)

    def gone(self, session: Session) -> None:
        """A client is gone."""
        self._held.gone(session)
        for one in [*self._sessions.get(session, {}).values()]:
            self._end(one)

    def _end(self, one: Follower) -> None:
        one.session.open -= not one.tailing
        self._forget(one)
        if one.client:
            ended = Unsubscribe(one.wish, where=one.where, client=one.client)
            self._command(InOverlay(one.overlay, ended))

    def _forget(self, one: Follower) -> None:
        del self._followers[one], self._sessions[one.session][one.request]
        if not self._sessions[one.session]:
            del self._sessions[one.session]
        self._unjudged.drop(one)
        group = self._groups[one.overlay, one.client]
        group.remove(one)
        if not group:
            del self._groups[one.overlay, one.client]

    # Publishing

    @property
    def has_disk(self) -> bool:
        """Can what is published here be on disk before it is acknowledged?"""
        return self._keep is not None

    def put(self, session: Session, message: Put | PutNew, overlay: str) -> None:
        """Publish a record; raises UsageError or CapacityExceeded if it cannot be."""
        check_topic(message.topic)
        session.check_turn(message)
        record = record_of(message, session.publisher)
        if message.strict or message.copies > COPIES:
            raise UsageError(f"{overlay} promises no copies: publish without strict and copies")
        part = self.part(overlay)
        if part.durable and message.durable and not self.has_disk:
            why = "this node keeps nothing on disk (--durability none)"
            raise UsageError(f"{overlay}: {why}: publish with durability 'memory'")
        place = (overlay, message.topic)
        self._join(overlay, part.joins(message.topic))
        if place in self._held or not (self._has_room(place) and self._has_way(place)):
            self._held.add(place, session, message)
            if not self._has_room(place):
                self._pacing.begin()
        else:
            self._publish(session, message, record, part)

    def _has_way(self, place: Place) -> bool:
        """Would what is published now reach anybody?"""
        return self.part(place[0]).acquainted(place[1])

    def _has_room(self, place: Place) -> bool:
        """Would it be sent? A link that is full drops it."""
        return not self._pacing.crowded and self.part(place[0]).has_room(place[1])

    def close(self) -> None:
        """Give the node nothing more."""
        self._pacing.close()

    def _release(self) -> bool:
        """Publish what waited, of those who still may; does more wait for room?"""
        due = self._held.due(self._has_room, self._has_way)
        for (overlay, _), session, message in due:
            if not session.closed:
                act = partial(self._publish_held, session, message, self.part(overlay))
                session.attempt(message.request, act)
        return any(not self._has_room(place) for place in self._held)

    def _publish_held(self, session: Session, message: Put | PutNew, part: LivePart) -> None:
        self._check(session, message.topic)
        session.check_turn(message)
        self._publish(session, message, record_of(message, session.publisher), part)

    def _publish(
        self, session: Session, message: Put | PutNew, record: Record, part: LivePart
    ) -> None:
        overlay, keep = part.overlay, self._keep if part.durable and message.durable else None
        first: Record | None = None
        for command, sealed in [*part.published(message.topic, record)]:
            if (overlay, HERE, sealed.key) not in self._seen:
                self._command(InOverlay(overlay, command))  # raises: who asks again goes on here
                self._is_new((overlay, HERE, sealed.key))
                self._count(overlay, "published", sealed.count)
            first = first or sealed
        assert first is not None  # no record is empty
        session.count(overlay, message.topic, record)
        where = (first.publisher, first.incarnation, first.first)
        stored = Stored(message.request, 0, 0, *where, record.count)
        if keep is None:
            session.answer(stored)
        else:
            keep(partial(_answer, session, stored))

    def _join(self, overlay: str, wish: str | None) -> None:
        """Be a member where only members publish."""
        if wish is not None:
            if (overlay, wish) not in self._used:
                self._subscribe(overlay, Subscribe(wish))
            self._used[overlay, wish] = self._clock()

    def _subscribe(self, overlay: str, wanted: Subscribe) -> None:
        try:
            self._command(InOverlay(overlay, wanted))
        except CapacityExceeded as error:
            full = self.part(overlay).full or f"{error}: ask another node"
            raise Elsewhere(f"{overlay}: {full}") from None

    # What the parts tell

    def on_effect(self, overlay: str, effect: Effect) -> None:
        """Something came, or a subscription is in force."""
        if isinstance(effect, Deliver):
            for delivery in effect.publications:
                self._deliver(overlay, effect, delivery)
        elif isinstance(effect, Joined):
            for one in self._groups.get((overlay, effect.client), ()):
                if one.wish == effect.pattern and not one.tailing:
                    one.tailing = True
                    one.session.answer(Tailing(one.request, [one.pattern], overlay))
        elif isinstance(effect, Notice):
            for one in self._of(overlay):
                if one.notices and self._concerns(one, effect.topic):
                    one.session.send(Told(one.request, effect.topic, effect.kind, effect.detail))

    def _concerns(self, one: Follower, topic: str) -> bool:
        """Is a notice for a tail? Of a topic that its client may read; some are of none."""
        return topic in ("", "#") or (
            matches(one.pattern, topic) and self._refusal(one.session, topic) == ""
        )

    def _deliver(self, overlay: str, effect: Deliver, delivery: Delivery) -> None:
        part = self._node.parts[overlay]
        assert isinstance(part, LivePart)
        record = part.record(delivery)
        if record is None or not self._is_new((overlay, effect.client, record.key)):
            return
        if part.carries:  # what passes here for others is of use too
            self._used[overlay, effect.topic] = self._clock()
        piece = Piece(record.data, record.first, record.end)
        self._count(overlay, "deliveries", record.count)
        for one in self._groups.get((overlay, effect.client), ()):
            if matches(one.pattern, effect.topic):
                message = Passing(one.request, effect.topic, [piece], part.anonymous)
                refusal = self._refusal(one.session, effect.topic)
                if refusal is None or self._unjudged.holds(one, effect.topic):
                    self._count_lost(self._unjudged.add(one, message))
                elif not refusal:
                    self._count(overlay, "lost", one.pass_on(message, len(record.data)))

    def judge_anew(self) -> None:
        """Look again at what came before anybody had said who may read it."""
        self._count_lost(self._unjudged.judge())

    def _is_new(self, name: tuple[str, int, bytes]) -> bool:
        if name in self._seen:
            return False
        self._seen[name] = None
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        return True

    # Time

    def ready(self, session: Session) -> None:
        """A client that was behind takes more."""
        for one in self._sessions.get(session, {}).values():
            one.flush()

    def on_timeout(self) -> None:
        """Publish what waited, and leave what nobody has used for long."""
        now = self._clock()
        self._release()
        for session, message in self._held.overdue():  # or its client would take us for dead
            session.fail(message.request, "full", "neighbours have no room: publish more slowly")
        self.judge_anew()
        for one in self._followers:
            one.flush()
            if not one.client:
                self._used[one.overlay, one.wish] = now
        places = [(part.overlay, wish) for part in self._parts() for wish in part.wishes()]
        unused = [place for place in places if place not in self._used]
        self._carried = {place: self._carried.get(place, now) for place in unused}
        for part in self._parts():  # or those who carry it for each other alone never let it go
            for wish in part.let_go():
                if (part.overlay, wish) in self._carried:
                    self._leave((part.overlay, wish))
        for place, last in [*self._used.items(), *self._carried.items()]:
            if now - last > self.part(place[0]).release_seconds:
                self._leave(place)

    def _leave(self, place: Wish) -> None:
        for places in (self._used, self._carried):
            places.pop(place, None)
        self._command(InOverlay(place[0], Unsubscribe(place[1])))

    def _of(self, overlay: str) -> list[Follower]:
        return [it for it in self._followers if it.overlay == overlay]

    def _parts(self) -> Iterator[LivePart]:
        return (part for part in self._node.awake() if isinstance(part, LivePart))

    def _count_lost(self, lost: Lost) -> None:
        for overlay, number in lost.items():
            self._count(overlay, "lost", number)

    def _count(self, overlay: str, what: str, number: int) -> None:
        self._counts.setdefault(overlay, Counter())[what] += number


def _answer(session: Session, stored: Stored, error: str | None) -> None:
    """Acknowledge what is on disk; what could not be put there is to be published again."""
    if error is None:
        session.answer(stored)
    else:
        reason = f"on its way, but not on the disk of this node: {error}"
        session.fail(stored.request, "full", reason)


def _no_history(overlay: str) -> str:
    return f"{overlay} keeps no history: subscribe since now, or use ring"
