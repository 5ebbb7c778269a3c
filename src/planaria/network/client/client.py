"""The client: publishes, subscribes and asks, at whichever of its nodes is alive.

async with planaria.connect("127.0.0.1:7400,127.0.0.1:7401") as client:
    await client.publish("weather/europe", b"mild")
    async with client.subscribe("weather/#", since="all") as events:
        async for event in events:
            ...
"""

import asyncio
import json
import os
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, overload

from planaria.core.errors import CapacityExceeded, PlanariaError, UsageError
from planaria.core.node import Notice
from planaria.core.topics import check_filter, check_topic
from planaria.network.client.access import PATIENCE_SECONDS, Access, seconds_of, shown, text_of
from planaria.network.client.distrust import Distrust
from planaria.network.client.drafting import draft_of, packs, wish_of
from planaria.network.client.events import Ack, Event
from planaria.network.client.lacks import read_at
from planaria.network.client.messages import (
    COPIES,
    AskStatus,
    AskTopics,
    AskVector,
    Lack,
    Pieces,
    Read,
    StatusIs,
    TopicsAre,
    VectorIs,
    from_wire,
    to_wire,
)
from planaria.network.client.overlays import check_overlay
from planaria.network.client.parcels import Tokens
from planaria.network.client.places import Since, beginning
from planaria.network.client.publishing import (
    TOPICS_MAX,
    Many,
    Notes,
    Outbox,
    Receipt,
    Stream,
    Wish,
)
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers, addresses_in
from planaria.network.client.subscription import Subscription
from planaria.network.client.verifying import Unsigned
from planaria.network.context import find_context, flag_of
from planaria.network.identity import handle_of
from planaria.records.evidence import PUBLISHED
from planaria.records.positions import vector_from_json, vector_to_json
from planaria.records.record import INCARNATION_BYTES, Draft

LEARN_SECONDS = 30.0  # between questions for further nodes

Vector = Mapping[str, Any]  # `publisher/incarnation` to the next number: plain values


class Batch(NamedTuple):
    """Part of a topic's history, the vector after it, and what no node could give."""

    events: list[Event]
    vector: dict[str, Any]
    lacks: tuple[Lack, ...]


class Client:
    """A light client: in no ring, with no copy of any topic. Made by `connect`."""

    def __init__(self, servers: Servers, access: Access, *, oneshot: bool = False) -> None:
        self.servers, self.access, self.oneshot = servers, access, oneshot
        self.publisher = handle_of(access.hello.id)
        self.incarnation = os.urandom(INCARNATION_BYTES)
        self._requests = Requests(servers, access)
        self._verifier = access.verifier()
        self._outboxes: dict[tuple[str, str], Outbox] = {}  # by topic and overlay
        self._subscriptions: list[Subscription[Any]] = []
        self._learner: asyncio.Task[None] | None = None
        self._closed = False

    # Life

    async def __aenter__(self) -> Self:
        if self._closed or self._learner is not None:
            state = "closed" if self._closed else "entered already"
            raise UsageError(f"this client is {state}: connect again")
        await self._requests.channel.open()
        self._learner = asyncio.create_task(self._learn())
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close(flush=error is None)

    async def close(self, *, flush: bool = True) -> None:
        """End it: all that was published is stored first, unless `flush` is False."""
        if self._closed:
            return
        self._closed = True
        try:
            for subscription in list(self._subscriptions):
                await subscription.close()
            if self._learner is not None:
                self._learner.cancel()
                await asyncio.gather(self._learner, return_exceptions=True)
            if flush:
                for outbox in self._outboxes.values():
                    outbox.flush()
                await self._requests.settled()
        finally:  # whoever is tired of waiting leaves no connection behind
            await self._requests.close(UsageError("this client is closed"))

    @property
    def server(self) -> str:
        """The address of the node that this client talks to now."""
        return self._requests.channel.address

    @property
    def requests(self) -> Requests:
        """The questions of this client, for those parts of this package that ask their own."""
        return self._requests

    # Publishing

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        timestamp: int | None = None,
        copies: int = COPIES,
        strict: bool = False,
        durability: str = "disk",
        overlay: str | None = None,
    ) -> Ack:
        """Publish, and return when `copies` members hold it; waits while there is no room.

        With fewer members the ack says how many hold it; `strict` waits for more. `timestamp` is in
        milliseconds since 1970, by default now. `durability="memory"` does not wait for disks.
        `overlay` is needed only for topics without a charter that says it; overlays beside `ring`
        hold no copies, and the ack says so.
        """
        receipt, wish = Receipt(topic), wish_of(copies, strict, durability, overlay)
        draft = draft_of(payload, key, headers, timestamp)
        await self._outbox(topic, wish.overlay).put((draft,), receipt, wish)
        return await receipt.future

    def try_publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        timestamp: int | None = None,
        copies: int = COPIES,
        strict: bool = False,
        durability: str = "disk",
        overlay: str | None = None,
    ) -> asyncio.Future[Ack]:
        """Publish without waiting; the ack can be awaited. Raises CapacityExceeded when full."""
        receipt, wish = Receipt(topic), wish_of(copies, strict, durability, overlay)
        outbox = self._outbox(topic, wish.overlay)
        if outbox.turn.locked():
            raise CapacityExceeded("others wait to publish on this topic already: slow down")
        outbox.offer((draft_of(payload, key, headers, timestamp),), receipt, wish)
        return receipt.future

    async def publish_many(
        self,
        topic: str,
        payloads: Iterable[bytes | str | Draft] | AsyncIterable[bytes | str | Draft],
        *,
        copies: int = COPIES,
        strict: bool = False,
        durability: str = "disk",
        overlay: str | None = None,
    ) -> Ack | None:
        """Publish all of them, in order; returns when all are held as `publish` promises.

        The ack has the position of the first, how many they are, and the fewest copies of any; it
        is None if there were none. Should `payloads` raise, what it gave before is published first.
        """
        many = self.many(topic, wish_of(copies, strict, durability, overlay))
        try:
            async for drafts in packs(payloads):
                if not await many.put(drafts):
                    break
        except Exception:
            await many.finish()
            raise
        except BaseException:
            many.give_up()
            raise
        return await many.finish()

    def many(self, topic: str, wish: Wish) -> Many:
        """What takes publications pack by pack, for those parts of this package that have packs."""
        return Many(self._outbox(topic, wish.overlay), wish)

    def _outbox(self, topic: str, overlay: str) -> Outbox:
        outbox = self._outboxes.get((topic, overlay)) if isinstance(topic, str) else None
        if self._closed:
            raise UsageError("this client is closed: connect again")
        self._requests.revive()
        if outbox is None:
            check_topic(topic)
            if len(self._outboxes) >= TOPICS_MAX:
                raise CapacityExceeded(f"one client publishes on {TOPICS_MAX} topics at most")
            if self.oneshot:
                outbox = Notes(topic, self._requests)
            else:
                # Numbers that one overlay has must not be missing in another.
                start = os.urandom(INCARNATION_BYTES) if overlay else self.incarnation
                sign = self.access.sealer(PUBLISHED, topic)
                outbox = Stream(topic, self._requests, self.publisher, start, sign)
            self._outboxes[topic, overlay] = outbox
        return outbox

    # Subscribing

    @overload
    def subscribe(
        self,
        *patterns: str,
        since: Since = ...,
        where: str | None = ...,
        compacted: bool = ...,
        overlay: str | None = ...,
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self,
        *patterns: str,
        since: Since = ...,
        where: str | None = ...,
        compacted: bool = ...,
        notices: Literal[False],
        overlay: str | None = ...,
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self,
        *patterns: str,
        since: Since = ...,
        where: str | None = ...,
        compacted: bool = ...,
        notices: bool,
        overlay: str | None = ...,
    ) -> Subscription[Event | Notice]: ...

    def subscribe(
        self,
        *patterns: str,
        since: Since = "now",
        where: str | None = None,
        compacted: bool = False,
        notices: bool = False,
        overlay: str | None = None,
    ) -> Subscription[Any]:
        """Subscribe to topics; each publication comes once, whichever patterns it matches.

        `since`: `all` there is, `now`, the `last` of each topic first, a time (a datetime, or
        seconds since 1970), or a vector of a subscription. `where` is a condition such as
        `delay > 60 AND carrier = 'UA'` on JSON payloads or headers. `compacted`: the last one of
        each key is enough, those that it replaced may be left out. `notices`: tell of gaps and of
        lost nodes too, as `Notice`s in the same stream. `overlay` is needed only for topics
        without a charter that says it; those beside `ring` know no `since` but `now`.
        """
        if self._closed:
            raise UsageError("this client is closed: connect again")
        if where is not None:
            from planaria.filters.sql import parse  # slow to load, and seldom needed

            parse(where)
        subscription = Subscription[Any](
            patterns,
            beginning(since),
            where=where,
            compacted=flag_of("compacted", compacted),
            notices=flag_of("notices", notices),
            overlay=check_overlay(overlay),
            servers=self.servers,
            access=self.access,
            closed=self._subscriptions.remove,
        )
        self._subscriptions.append(subscription)
        return subscription

    # Asking

    async def topics(self, pattern: str = "#") -> list[str]:
        """The topics that match a pattern, in order."""
        return (await self._requests.ask(AskTopics, TopicsAre, check_filter(pattern))).topics

    async def vector(self, topic: str) -> dict[str, Any]:
        """How far a topic can be read, in plain values."""
        found = await self._requests.ask(AskVector, VectorIs, check_topic(topic))
        return dict(vector_to_json(from_wire(found.positions)))

    async def read(
        self, topic: str, after: Vector | None = None, to: Vector | None = None, limit: int = 8192
    ) -> Batch:
        """Read on in a topic, from one vector to another: at most `limit` events.

        Fewer only if the node has no more: one that just joined the topic fetches its history. What
        it lacks up to `to` is asked of the others. Equal vectors give equal events everywhere.
        Raises Untrusted if no node gives what was signed.
        """
        if not isinstance(limit, int) or limit < 1:
            raise UsageError(f"limit {limit!r}: a whole number from 1 on")
        vector, events, tokens = vector_from_json(after or {}), list[Event](), Tokens()
        distrust = Distrust(self._requests.channel)
        end = None if to is None else to_wire(vector_from_json(to))
        while True:
            rest = (to_wire(vector), end, limit - len(events))
            found = await self._requests.ask(Read, Pieces, check_topic(topic), *rest)
            if any(not lack.expired for lack in found.lacks):
                found = await self._read_elsewhere(topic, found, *rest)
            try:
                records = [self._verifier.read(topic, piece.record) for piece in found.pieces]
            except Unsigned as error:
                failure = distrust.leave(error, rest)
                if failure is not None:
                    raise failure from None
                continue
            for record, piece in zip(records, found.pieces, strict=True):
                events += tokens.events(topic, record, piece.lo, piece.hi, late=piece.late)
            vector.update(from_wire(found.after))
            if not found.pieces or len(events) >= limit:
                return Batch(events, dict(vector_to_json(vector)), found.lacks)

    async def status(self) -> dict[str, Any]:
        """How the node is that this client talks to, and whom it knows."""
        answer = await self._requests.ask(AskStatus, StatusIs)
        status = json.loads(answer.status)
        self.servers.learn(addresses_in(status))
        return dict(status)

    async def _read_elsewhere(self, topic: str, found: Pieces, *rest: Any) -> Pieces:
        """The answer of the first other node that lacks nothing that may still come."""
        for address in self.servers:
            if address != self.server:
                other = await read_at(address, self.access, topic, *rest)
                whole = other is not None and all(lack.expired for lack in other.lacks)
                pieces = [] if other is None else [(topic, piece) for piece in other.pieces]
                if other and whole and not self._verifier.flaw(pieces):
                    return other
        return found

    async def _learn(self) -> None:
        """Ask for further nodes again and again: one address is enough to begin with."""
        while True:
            with suppress(PlanariaError, ValueError):  # another may tell, or the same one later
                await self.status()
            await asyncio.sleep(LEARN_SECONDS)
            while self._requests.error is not None:  # until the application asks for a node again
                await asyncio.sleep(LEARN_SECONDS)


def connect(
    servers: str | Sequence[str] | None = None,
    *,
    context: str | Path | None = None,
    credentials: str | Path | None = None,
    insecure: bool | None = None,
    name: str | None = None,
    oneshot: bool = False,
    patience: float = PATIENCE_SECONDS,
    verify: bool = True,
) -> Client:
    """A client of these nodes, for `async with`; one that is alive is enough.

    What is not given comes from the environment (PLANARIA_SERVERS, …) or the `context`, by name or
    file: without one, that of a running `planaria up`. `credentials` is a directory made by
    `planaria keys issue NAME --role client`. `name` makes the publisher of an insecure client the
    same at every start. `oneshot`: it publishes little and ends, and its node numbers what it
    publishes. `patience`: seconds for which to look for another node when one is lost. `verify`:
    believe no node, where there are credentials, but the signatures of publishers of rings.
    """
    found = find_context(
        None if context is None else text_of("context", context),
        servers=servers,
        credentials=None if credentials is None else Path(text_of("credentials", credentials)),
        insecure=insecure,
    )
    patience, verify = seconds_of("patience", patience), flag_of("verify", verify)
    access = Access(*shown(found, name), patience, verify)
    return Client(Servers(found.servers), access, oneshot=flag_of("oneshot", oneshot))
