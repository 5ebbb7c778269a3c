"""Questions to nodes that are broken, and strangers at their doors."""

import asyncio
import os
import socket
from pathlib import Path
from random import Random

import pytest

from live_lab import config, run
from planaria.chaos.strangers import flood, garbage
from planaria.chaos.target import Member, Target
from planaria.core.errors import UsageError
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Asker, Unanswered
from planaria.network.context import Context
from planaria.network.identity import handle_of
from planaria.network.live import LiveNode


def door_of_nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return f"127.0.0.1:{door.getsockname()[1]}"


def context(address: str) -> Context:
    return Context((address,), insecure=True)


def test_a_node_that_is_not_there_is_affected_by_no_stranger() -> None:
    async def main() -> None:
        address = door_of_nobody()
        access = Access(*shown(context(address), None))
        assert await garbage(address, access, 3, Random(0)) == 0
        assert await flood(address, access, 3) == 0

    run(main)


def test_strangers_are_counted_by_what_the_node_does(tmp_path: Path) -> None:
    async def main() -> None:
        node = LiveNode(config(tmp_path, name="a"))
        await node.start()
        try:
            access = Access(*shown(context(node.listen), None))
            assert await garbage(node.listen, access, 1, Random(0)) == 1
            assert await flood(node.listen, access, 20) == 20
        finally:
            await node.stop()

    run(main)


@pytest.mark.parametrize("name", ["a", "chaos"])
def test_only_a_refusal_makes_a_network_one_that_may_not_be_broken(
    name: str, tmp_path: Path
) -> None:
    async def main() -> None:
        node = LiveNode(config(tmp_path, name=name))
        await node.start()
        target = Target(context(node.listen))
        with pytest.raises(UsageError, match="--allow-chaos"):
            await target.find()
        await node.stop(leave=False)
        with pytest.raises(Unanswered):
            await target.ask(target.members[name], "ask")
        await target.close()

    run(main)


def test_questions_at_the_same_time_leave_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Asker] = []

    class Counted(Asker):
        async def open(self) -> None:
            opened.append(self)
            await super().open()

    async def main() -> None:
        node = LiveNode(config(tmp_path, name="a", allow_chaos=True))
        await node.start()
        target = Target(context(node.listen))
        await target.find()
        monkeypatch.setattr("planaria.chaos.target.Asker", Counted)
        (member,) = target.members.values()
        await asyncio.gather(*(target.ask(member, "ask") for _ in range(4)))
        assert len(opened) == 3, "one was open"
        assert sum(not it.hung_up for it in opened) <= 1
        await target.close()
        assert all(it.hung_up for it in opened)
        await node.stop()

    run(main)


def test_who_was_started_again_may_take_its_time_to_answer(tmp_path: Path) -> None:
    async def main() -> None:
        settings = config(tmp_path, name="a", listen=door_of_nobody())
        first = LiveNode(settings)
        await first.start()
        handle = handle_of(first.id)
        await first.stop(leave=False)
        target = Target(context(settings.listen))
        member = Member("a", handle, settings.listen, 0, tmp_path, True)
        learning = asyncio.create_task(target._learn(member))
        await asyncio.sleep(0.3)
        assert not learning.done(), "nobody is there"
        again = LiveNode(settings)
        await again.start()
        try:
            await learning
        finally:
            await again.stop(leave=False)
        assert member.pid == os.getpid()

    run(main)
