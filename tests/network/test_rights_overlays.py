"""Rights in the overlays beside `ring`: what is not known yet is waited for, not thrown away."""

import asyncio
from pathlib import Path

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
