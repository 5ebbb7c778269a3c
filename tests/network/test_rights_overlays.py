"""Rights and overlays: what is not judged waits, and who is refused one topic follows charters."""

import asyncio
from pathlib import Path

import pytest

from planaria.core.node import Notice
from planaria.network.client.events import Event
from planaria.network.client.subscription import Subscription
from planaria.network.gate import laid
from secure_lab import Secure, run


def test_the_first_publication_of_a_topic_reaches_who_follows_a_pattern(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        first, second = await lab.node(), await lab.node()
        lab.charter("pay", 1, (("subscribe", ("alice",)),), "gossip")
        async with (
            lab.client("alice", first) as alice,
            lab.client("carol", second) as carol,
            carol.subscribe("#", overlay="gossip") as events,
        ):
            await events.ready()
            for topic in ("pay", "a/b", "a/c"):
                await alice.publish(topic, b"first", overlay="gossip")
            found = [await asyncio.wait_for(anext(events), 20) for _ in range(2)]
            assert sorted(it.topic for it in found) == ["a/b", "a/c"]

    run(tmp_path, test)


def test_a_subscription_to_many_follows_a_charter_though_one_of_them_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laid, "FRESH_SECONDS", 0.5)

    async def test(lab: Secure) -> None:
        node = await lab.node()
        lab.charter("ch/secret", 1, (("subscribe", ("carol",)),))
        async with lab.client("alice", node) as alice, alice.subscribe("ch/#", notices=True) as all:
            await all.ready()
            await alice.publish("ch/secret", b"not for her")
            await _told(all, "refused")
            lab.charter("ch", 1, (), "gossip")
            await _told(all, "moved")

    run(tmp_path, test)


async def _told(events: Subscription[Event | Notice], kind: str) -> None:
    async with asyncio.timeout(20):
        async for one in events:
            if isinstance(one, Notice) and one.kind == kind:
                return
