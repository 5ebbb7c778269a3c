"""What an application that embeds a node asks of it, in any overlay."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import Publish
from planaria.network.client.drafting import bytes_of, draft_of, each_of
from planaria.network.client.events import Ack
from planaria.network.client.messages import TOKEN_BYTES
from planaria.network.client.overlays import RING
from planaria.network.client.requests import FULL_SECONDS
from planaria.network.embedded import Embedded, Subscription
from planaria.network.insider import Insider
from planaria.records.packing import PACKED_BYTES, PACKED_PUBLICATIONS, weigh
from planaria.records.record import Draft

RING_BYTES = 8 << 20  # in several records; of more, a store would refuse what others publish
FULL_TRIES = 40  # at a part that takes no more now: 10 s


class Application:
    """The part of a node that faces the application it is embedded in."""

    embedded: Embedded  # in `ring`
    insider: Insider  # in the other overlays

    def subscribe(
        self, pattern: str, *, overlay: str = RING, where: str | None = None
    ) -> Subscription:
        """Read what this node delivers; before `start`, to miss nothing.

        `where` is a condition on what is published, for overlays that have such.
        """
        if overlay != RING:
            return self.insider.subscribe(pattern, overlay, where)
        if where is not None:
            raise UsageError("ring has no conditions within a node: filter here, or use content")
        return self.embedded.subscribe(pattern)

    async def publish(
        self,
        topic: str,
        payload: bytes | str = b"",
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        timestamp: int | None = None,
        overlay: str = RING,
    ) -> Ack:
        """Publish; returns when it is on this node's disk and on its way to all members.

        In an overlay that keeps nothing: when it is on its way.
        """
        draft = draft_of(payload, key, headers, timestamp)
        weigh(draft)
        if overlay != RING:
            return await self.insider.publish(topic, [draft], overlay, os.urandom(TOKEN_BYTES))
        try:
            named = {name: value.decode() for name, value in draft.headers}
        except UnicodeDecodeError:
            raise UsageError(
                "a header's value in ring is text: put bytes into the payload"
            ) from None
        command = Publish(topic, draft.payload, {}, draft.key, named, timestamp)
        return await self.embedded.publish(topic, command)

    async def publish_many(
        self, topic: str, payloads: Iterable[bytes | str], *, overlay: str = RING
    ) -> Ack | None:
        """Publish all of them, in order; returns as `publish` does, when the last is there.

        The ack has the position of the first, and how many they are; it is None if there are none.
        Raises CapacityExceeded with how many are published if no more can be now; overlays beside
        `ring`, which send what they hold, are given time for it.
        """
        first: Ack | None = None
        count = 0
        for some in _portions(payloads, RING_BYTES if overlay == RING else PACKED_BYTES):
            try:
                if overlay == RING:
                    ack = await self.embedded.publish(topic, *(Publish(topic, it) for it in some))
                else:
                    ack = await self._publish_when_there_is_room(topic, some, overlay)
            except CapacityExceeded as error:
                raise CapacityExceeded(f"{error}; {count} are published") from None
            first, count = first or ack, count + len(some)
        return None if first is None else replace(first, count=count)

    async def _publish_when_there_is_room(
        self, topic: str, payloads: list[bytes], overlay: str
    ) -> Ack:
        drafts, token = [Draft(it) for it in payloads], os.urandom(TOKEN_BYTES)
        for _ in range(FULL_TRIES):
            try:
                return await self.insider.publish(topic, drafts, overlay, token)
            except CapacityExceeded:
                await asyncio.sleep(FULL_SECONDS)
        return await self.insider.publish(topic, drafts, overlay, token)


def _portions(payloads: Iterable[bytes | str], most: int) -> Iterator[list[bytes]]:
    """Payloads, as many at a time as a record takes and have no more than `most` bytes.

    Should the source raise, or one be none, those before it come first.
    """
    source, some, size = each_of(payloads), list[bytes](), 0
    while True:
        try:
            payload = bytes_of(next(source))
        except StopIteration:
            break
        except Exception:
            if some:
                yield some
            raise
        if len(some) >= PACKED_PUBLICATIONS or (some and size + len(payload) > most):
            yield some
            some, size = [], 0
        some.append(payload)
        size += len(payload)
    if some:
        yield some
