"""Who waits no more for an acknowledgement holds up nothing: not its client, nor its node."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from live_lab import TOPIC, config, run, running
from planaria.network.client.client import Client, connect
from planaria.network.live import LiveNode
from planaria.records import packing


async def strictly(client: Client, payload: bytes) -> None:
    """Publish where there is one member, and tire of waiting for a second."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.publish(TOPIC, payload, strict=True), 0.5)


async def published(live: LiveNode) -> list[bytes]:
    async with connect(live.listen, insecure=True) as client:
        return [event.payload for event in (await client.read(TOPIC)).events]


@pytest.mark.parametrize("oneshot", [False, True])
def test_a_client_ends_though_too_few_members_hold_what_nobody_waits_for(
    tmp_path: Path, oneshot: bool
) -> None:
    async def main() -> None:
        async with running(config(tmp_path)) as live:
            async with connect(live.listen, insecure=True, oneshot=oneshot) as client:
                await strictly(client, b"strict")
            assert await published(live) == [b"strict"]
            assert live.gate is not None
            assert not len(live.gate.publishing)

    run(main)


def test_what_nobody_waits_for_takes_no_room_of_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "UNSETTLED_BYTES_MAX", 100_000)

    async def main() -> None:
        async with running(config(tmp_path)) as live:
            async with connect(live.listen, insecure=True) as client:
                await strictly(client, b"strict")
                for _ in range(5):
                    await client.publish(TOPIC, bytes(40_000))
            assert len(await published(live)) == 6

    run(main)


def test_a_client_ends_though_its_many_were_cancelled_before_all_were_given(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(config(tmp_path)) as live:
            given = asyncio.Event()

            async def payloads() -> AsyncIterator[bytes]:
                for at in range(2 * packing.PACKED_PUBLICATIONS):
                    yield str(at).encode()
                given.set()
                await asyncio.Event().wait()

            async with connect(live.listen, insecure=True) as client:
                many = client.publish_many(TOPIC, payloads(), strict=True)
                publishing = asyncio.create_task(many)
                await given.wait()
                publishing.cancel()
                await asyncio.wait([publishing])
            assert b"0" in await published(live)

    run(main)
