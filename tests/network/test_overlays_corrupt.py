"""Any state can be the first state of a running network, in every overlay."""

from pathlib import Path
from random import Random

import pytest
from msgspec import json

from live_lab import run
from overlays_lab import at, diagnosis, network, payloads, until
from planaria.network.chaos.parts import breakable


@pytest.mark.parametrize("overlay", ["gossip", "content", "mobile"])
def test_a_network_heals_from_arbitrary_memory_and_messages(overlay: str, tmp_path: Path) -> None:
    async def main() -> None:
        options = {"interval": 0.05, "overlay": ("ring", overlay)}
        async with (
            network(tmp_path, 4, **options) as nodes,
            at(nodes[1]) as one,
            at(nodes[3]) as two,
            two.subscribe("news", overlay=overlay) as events,
        ):
            await events.ready()
            await one.publish("news", b"before", overlay=overlay)
            assert await payloads(events, 1) == [b"before"]
            await until(lambda: all(overlay in it.overlays() for it in nodes))
            rng, ids = Random(7), [it.ring.id for it in nodes]
            for node in nodes:
                broken = breakable(node.ring, node.node)[overlay]
                assert broken.corrupt((), ids, rng) == 1
                assert json.encode(node.status())  # it can be asked, whatever its memory holds
                for _ in range(20):
                    forged = broken.forge(ids, rng)
                    if forged is not None:
                        node.host.hear(forged[1], forged[0])
            found = await diagnosis(*nodes)
            assert found.legitimate, found.findings
            await one.publish("news", b"after", overlay=overlay)
            assert await payloads(events, 1) == [b"after"]

    run(main)
