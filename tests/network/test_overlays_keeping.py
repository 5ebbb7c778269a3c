"""What parts in other overlays remember, on disk: one writer, and no word of what is not there."""

import asyncio
from pathlib import Path
from threading import Event

import pytest

from others_lab import OthersLab
from planaria.core.errors import UsageError
from planaria.core.node import Subscribe
from planaria.network.overlays import keeping
from planaria.network.overlays.keeping import Keeping


def test_the_last_word_is_written_after_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, begun, go_on = OthersLab(), Event(), Event()
    written: list[bytes] = []

    def slow(path: Path, data: bytes, *, durable: bool = False) -> None:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(60)
        written.append(data)

    monkeypatch.setattr(keeping, "write_atomically", slow)

    async def main() -> None:
        it = Keeping(tmp_path, lab.node)
        task = asyncio.ensure_future(it.keep())
        it.soon(lambda _: None)
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        lab.node.parts["gossip"].node.on_command(Subscribe("news/#"))
        ending = asyncio.ensure_future(it.finish())
        await asyncio.sleep(0)
        assert written == [], "the thread that was left behind still writes"
        go_on.set()
        await ending
        assert written == [written[0], lab.node.parts["gossip"].node.snapshot()]
        assert written[0] != written[1]

    asyncio.run(main())


def test_who_waits_for_the_disk_is_told_what_is_not_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = OthersLab()
    lab.node.wake("mobile")
    full, synced = {"gossip"}, list[bool]()

    def write(path: Path, data: bytes, *, durable: bool = False) -> None:
        synced.append(durable)
        if path.name in full:
            raise UsageError(f"no space for {path.name}")

    monkeypatch.setattr(keeping, "write_atomically", write)

    async def main() -> None:
        it = Keeping(tmp_path, lab.node)
        task = asyncio.ensure_future(it.keep())
        for wanted in (None, "no space for mobile"):  # that of `gossip` promises nothing
            outcome = asyncio.get_running_loop().create_future()
            it.soon(outcome.set_result)
            assert await outcome == wanted
            full.add("mobile")
            lab.node.parts["mobile"].node.on_command(Subscribe("news"))
        task.cancel()
        assert all(synced), "or it may be lost with the power"

    asyncio.run(main())
