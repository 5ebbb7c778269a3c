"""What an application that embeds a node asks of it, in any overlay."""

from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec.structs import replace

from planaria.core.errors import UsageError
from planaria.core.node import Publish
from planaria.network.client.drafting import draft_of
from planaria.network.client.events import Ack
from planaria.network.client.overlays import RING
from planaria.network.embedded import Embedded, Subscription
from planaria.network.insider import Insider
from planaria.records.packing import PACKED_PUBLICATIONS


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
        payload: bytes = b"",
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timestamp: int | None = None,
        overlay: str = RING,
    ) -> Ack:
        """Publish; returns when it is on this node's disk and on its way to all members.

        In an overlay that keeps nothing: when it is on its way.
        """
        if overlay != RING:
            draft = draft_of(payload, key, headers, timestamp)
            return await self.insider.publish(topic, [draft], overlay)
        command = Publish(topic, payload, {}, key, dict(headers or {}), timestamp)
        return await self.embedded.publish(topic, command)

    async def publish_many(
        self, topic: str, payloads: Iterable[bytes], *, overlay: str = RING
    ) -> Ack | None:
        """Publish all of them, in order; returns as `publish` does, when the last is there.

        The ack has the position of the first, and how many they are; it is None if there are none.
        """
        first: Ack | None = None
        count, rest = 0, iter(payloads)
        while packed := [*islice(rest, PACKED_PUBLICATIONS)]:
            if overlay == RING:
                ack = await self.embedded.publish(topic, *(Publish(topic, it) for it in packed))
            else:
                drafts = [draft_of(it, None, None, None) for it in packed]
                ack = await self.insider.publish(topic, drafts, overlay)
            first, count = first or ack, count + len(packed)
        return None if first is None else replace(first, count=count)
