"""Definitions 1 and 2 of paper 4 as books that are kept of a run.

    1(a) a notification is delivered to a client at most once
    1(b) a client only receives what has been published before
    1(c) a client only receives what it is subscribed for
    1.2  who is subscribed for long enough receives every matching notification published then

Definition 2 asks the same from some time on. Publications are told apart by their payload, so a
run must publish different ones.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.node import Node
from planaria.filters.filters import Filter, matches
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.commands import (
    DeliverTo,
    PublishContent,
    SubscribeTo,
    UnsubscribeFrom,
)

Client = tuple[NodeId, int]


class Published(Struct, frozen=True):
    """A publication: when, by whom, what."""

    tick: int
    node: NodeId
    attributes: dict[str, Any]


class Wish(Struct):
    """A subscription of a client while it lasted."""

    filter: Filter
    since: int
    until: int | None = None


class DeliveryBook:
    """Watches a run; `duplicated`, `unpublished` and `unwanted` list each breach with its tick."""

    kinds = ("command", "effect", "start", "stop")

    def __init__(self, nodes: Mapping[NodeId, Node] | None = None) -> None:
        self.published: dict[bytes, Published] = {}
        self.delivered: dict[Client, dict[bytes, int]] = {}
        self.wishes: dict[Client, list[Wish]] = {}
        self.gone: dict[NodeId, int] = {}
        self.stops: list[tuple[NodeId, int]] = []
        self.duplicated: list[tuple[int, Client, bytes]] = []
        self.unpublished: list[tuple[int, Client, bytes]] = []
        self.unwanted: list[tuple[int, Client, bytes]] = []
        for node in (nodes or {}).values():
            if isinstance(node, Broker):
                for client, wanted in node.clients.items():
                    for filter in wanted.values():
                        self._wish((node.id, client), filter, 0)

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        """See a command, a delivery, the start or the end of a broker."""
        if kind == "start":
            self.gone.pop(node, None)
        elif kind == "stop":
            self.gone[node] = tick
            self.stops.append((node, tick))
        elif isinstance(effect, PublishContent):
            self.published[effect.payload] = Published(tick, node, effect.attributes)
        elif isinstance(effect, SubscribeTo):
            for filter in effect.filters:
                self._wish((node, effect.client), filter, tick)
        elif isinstance(effect, UnsubscribeFrom):
            for wish in self.wishes.get((node, effect.client), []):
                if wish.filter in effect.filters and wish.until is None:
                    wish.until = tick
        elif isinstance(effect, DeliverTo):
            self._deliver(tick, (node, effect.client), effect)

    def missed(self, settled: int, within: int, end: int) -> list[tuple[Client, bytes]]:
        """What clients should have got and did not.

        Counts what was published from tick `settled` on and at least `within` before `end`, for
        wishes held from `within` before the publication until `within` after it.
        """
        found = []
        for payload, it in self.published.items():
            if it.tick < settled or it.tick + within > end:
                continue
            for client, wishes in self.wishes.items():
                if client[0] in self.gone:
                    continue
                wanted = any(
                    wish.since + within <= max(it.tick, within)
                    and (wish.until is None or wish.until > it.tick + within)
                    and matches(wish.filter, it.attributes)
                    for wish in wishes
                )
                if wanted and payload not in self.delivered.get(client, {}):
                    found.append((client, payload))
        return found

    @property
    def deliveries(self) -> int:
        """How many were handed over in all."""
        return sum(sum(counts.values()) for counts in self.delivered.values())

    def breaches(self, since: int = 0) -> list[str]:
        """What broke the safety property of Definition 1 after tick `since` (Definition 2)."""
        kinds = (
            ("delivered twice", self.duplicated),
            ("never published", self.unpublished),
            ("not subscribed for", self.unwanted),
        )
        return [
            f"{what}: {payload!r} to client {client} at tick {tick}"
            for what, found in kinds
            for tick, client, payload in found
            if tick > since
        ]

    def _wish(self, client: Client, filter: Filter, tick: int) -> None:
        self.wishes.setdefault(client, []).append(Wish(filter, tick))

    def _deliver(self, tick: int, client: Client, effect: DeliverTo) -> None:
        counts = self.delivered.setdefault(client, {})
        counts[effect.payload] = counts.get(effect.payload, 0) + 1
        if counts[effect.payload] > 1:
            self.duplicated.append((tick, client, effect.payload))
        original = self.published.get(effect.payload)
        if original is None or original.attributes != effect.attributes:
            self.unpublished.append((tick, client, effect.payload))
        wanted = any(
            wish.until is None and matches(wish.filter, effect.attributes)
            for wish in self.wishes.get(client, [])
        )
        if not wanted:
            self.unwanted.append((tick, client, effect.payload))
