"""What a node that stops hands over: records that none of its neighbours is known to hold.

A publication may be acknowledged while one member holds it, or in the very second in which its node
is told to stop. Neighbours show each other what they hold, so only what is younger than the last
agreement is in question; each such record is deposited at a neighbour, which answers when it is on
its disk. The youngest go first: they are the ones that nobody else may have.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from planaria.core.ids import NodeId
from planaria.core.node import Command, Effect
from planaria.protocols.skipring.deposits import VOLATILE, Copies, DepositAnswered, Entrust
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.node import RingNode
from planaria.records.record import TIME_MAX, Place, Record

HANDOVER_SECONDS = 5.0  # in all; then it leaves all the same
FLIGHT_BYTES_MAX = 1 << 19  # deposited and not answered: links have room for four times as much
LOOK_SECONDS = 0.1  # between looks at who has not answered

log = logging.getLogger("planaria.node")


class Deposited:
    """A record on its way to a neighbour."""

    __slots__ = ("copies", "record", "topic")

    def __init__(self, topic: str, record: Record, now: float) -> None:
        self.topic, self.record, self.copies = topic, record, Copies(1, now)


class Handover:
    """Deposits at neighbours what they are not known to hold. Tell it every effect."""

    def __init__(self, ring: RingNode, command: Callable[[Command], None]) -> None:
        self._ring, self._command = ring, command
        self._waiting: dict[str, list[Place]] = {}  # by topic, the youngest last
        self._flight: dict[tuple[str, bytes], Deposited] = {}
        self._bytes = 0  # in flight
        self._refused = 0  # records that no neighbour takes
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Hand over what can be in time, and tell of what cannot be."""
        until = monotonic() + HANDOVER_SECONDS
        for topic, membership in self._ring.peer.topics.items():
            places = in_question(membership)
            if places:
                self._waiting[topic] = places
        while (self._waiting or self._flight) and monotonic() < until:
            self._ask_again()
            self._deposit_more()
            self._answered.clear()
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._answered.wait()
            except TimeoutError:
                continue
        left = self._refused + len(self._flight) + sum(map(len, self._waiting.values()))
        if left:
            log.warning("%d records may be held by this node alone until it runs again", left)
        self._waiting, self._flight = {}, {}

    def on_effect(self, effect: Effect) -> None:
        """A neighbour may have said that it holds a record, or why not."""
        if not self._flight or not isinstance(effect, DepositAnswered):
            return
        one = self._flight.get((effect.topic, effect.key))
        if one is None:
            return
        if effect.reason == VOLATILE:  # it cannot keep it for longer than it runs: then for so long
            self._entrust(one, (effect.member,), durable=False)
            return
        one.copies.answered(effect.member, effect.reason)
        vain = all(near in one.copies.refused for near in self._near(one.topic))
        if one.copies.held or vain:
            self._refused += not one.copies.held
            del self._flight[effect.topic, effect.key]
            self._bytes -= len(one.record.data)
            self._answered.set()

    def _deposit_more(self) -> None:
        while self._waiting and self._bytes < FLIGHT_BYTES_MAX:
            topic = next(iter(self._waiting))
            membership, places = self._ring.peer.topics.get(topic), self._waiting[topic]
            if membership is None or not places:
                del self._waiting[topic]
                continue
            for record in membership.history.holdings.at([places.pop()]):
                one = self._flight[topic, record.key] = Deposited(topic, record, monotonic())
                self._bytes += len(record.data)
                self._ask(one)

    def _ask_again(self) -> None:
        """Those who are silent for too long, or others."""
        for one in list(self._flight.values()):
            self._ask(one)

    def _ask(self, one: Deposited) -> None:
        asked = one.copies.ask(self._near(one.topic), monotonic())
        if asked:
            self._entrust(one, tuple(member for member, _ in asked), durable=True)

    def _entrust(self, one: Deposited, members: tuple[NodeId, ...], *, durable: bool) -> None:
        self._command(Entrust(one.topic, one.record, members, spread=False, durable=durable))

    def _near(self, topic: str) -> list[NodeId]:
        membership = self._ring.peer.topics.get(topic)
        return [] if membership is None else neighbours(membership)


def neighbours(membership: Membership) -> list[NodeId]:
    """The other members that this one knows."""
    one = membership.subscriber
    return list(dict.fromkeys(id for _, id in one.neighbours() if id != one.id))


def in_question(membership: Membership) -> list[Place]:
    """The places of records that no neighbour has shown to hold; none if there is no neighbour."""
    near = neighbours(membership)
    if not membership.holds or not near:
        return []
    history = membership.history
    agreed = max(history.antientropy.agreed.get(one, 0) for one in near)
    since = min(agreed, history.horizon.cut)  # of what was published since nobody has spoken
    return history.holdings.places(max(0, since), TIME_MAX)
