"""How a node ends: its door first, its directory free, whatever happened."""

import asyncio
from pathlib import Path

import pytest

from live_lab import config, run, until
from planaria.cli import node as command
from planaria.network.connection import Connection
from planaria.network.contacts import parse_address
from planaria.network.live import LiveNode


def test_who_comes_while_a_node_stops_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        live = LiveNode(config(tmp_path))
        await live.start()
        address = parse_address(live.listen)
        _, writer = await asyncio.open_connection(*address)
        await until(lambda: live.host._connections)
        monkeypatch.setattr(Connection, "close", lambda *_: None)  # the other end takes its time
        stopping = asyncio.ensure_future(live.stop(leave=False))
        await until(live.host._stopped.is_set)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        assert not stopping.done()
        await stopping
        writer.close()

    run(main)


def test_a_node_that_cannot_start_frees_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: LiveNode) -> None:
        raise RuntimeError("a defect")

    async def main() -> None:
        with monkeypatch.context() as broken:
            broken.setattr(LiveNode, "start", fail)
            with pytest.raises(RuntimeError, match="a defect"):
                await command._serve(config(tmp_path), stop_with_stdin=False)
        async with LiveNode(config(tmp_path)):
            pass

    run(main)
