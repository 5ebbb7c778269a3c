"""Revoked certificates: links are closed and refused at every node, also after a restart."""

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from planaria.cli.keys import issued_id, keys, parse_time, revoke_one
from planaria.core.errors import PlanariaError, UsageError
from planaria.core.ids import NodeId
from planaria.network.client.messages import Extent, ExtentIs
from planaria.network.context import Context
from planaria.network.identity import ISSUED, found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.revoking import Reach, _extents, ends_of
from planaria.network.survey import Surveyor
from secure_lab import Secure, run
from watched import until


async def revoke(lab: Secure, name: str, since: int | None = None) -> None:
    context = Context((lab.nodes[0].listen,), lab.people["boss"])
    second = int(time.time()) - 1 if since is None else since
    await revoke_one(context, issued_id(lab.keys, name), lab.keys, second)


def revoked(lab: Secure, node: LiveNode, name: str) -> bool:
    return node.ring.charters.revoked_since(issued_id(lab.keys, name)) is not None


async def ask(lab: Secure, name: str, node: LiveNode) -> None:
    """Connect to one node and ask it something."""
    async with asyncio.timeout(30), lab.client(name, node) as client:
        await client.status()


def test_a_client_is_hung_up_on_and_refused_everywhere(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        nodes = [await lab.node() for _ in range(3)]
        async with lab.client("carol", nodes[2]) as carol:
            alice = lab.client("alice", nodes[2])
            await alice.__aenter__()
            await alice.publish("news", b"before")
            assert nodes[2].clients == 2
            await revoke(lab, "alice")
            await until(lambda: nodes[2].clients == 1)
            for node in nodes:
                await until(lambda node=node: revoked(lab, node, "alice"))  # type: ignore[misc]
                with pytest.raises(PlanariaError, match="'alice' is revoked since 20"):
                    await ask(lab, "alice", node)
            await carol.publish("news", b"after")
            await alice.close(flush=False)

    run(tmp_path, test)


def test_a_node_is_hung_up_on_and_nobody_knows_it_any_more(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        first, second, third = [await lab.node() for _ in range(3)]
        id = third.host.node.id
        await until(lambda: id in first.host.links and first.host.contacts.get(id))
        await until(lambda: second.host.contacts.get(first.host.node.id))
        await revoke(lab, "n2")
        await until(lambda: id not in first.host.links)
        await until(lambda: first.host.contacts.get(id) is None)
        await until(lambda: revoked(lab, second, "n2"))
        await second.stop(leave=False)
        again = LiveNode(second.config)
        try:
            assert revoked(lab, again, "n2"), "it is on disk"
        finally:
            await again.stop(leave=False)

    run(tmp_path, test)


def test_what_is_revoked_from_a_later_time_on_is_good_until_then(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        node = await lab.node()
        await revoke(lab, "alice", int(time.time()) + 3600)
        assert revoked(lab, node, "alice")
        async with lab.client("alice", node) as alice:
            await alice.publish("news", b"still")
        await revoke(lab, "alice")  # of two the earlier counts
        with pytest.raises(PlanariaError, match="is revoked since"):
            await ask(lab, "alice", node)

    run(tmp_path, test)


def test_who_is_meant_is_found_by_name_or_id(tmp_path: Path) -> None:
    found_cluster(tmp_path, "demo")
    issue(tmp_path, "alice", ("client",))
    id = issued_id(tmp_path, "alice")
    assert issued_id(tmp_path, id.hex()) == id
    with pytest.raises(UsageError, match=r"is no name that .*issued.jsonl has, and no id"):
        issued_id(tmp_path, "bob")
    with (tmp_path / ISSUED).open("a") as file:
        file.write('{"name": "alice", "id": "%s"}\n' % ("00" * 16))
    with pytest.raises(UsageError, match="was issued 2 times: name one id of"):
        issued_id(tmp_path, "alice")


def test_times() -> None:
    assert parse_time("1970-01-01T00:01:00Z") == parse_time("1970-01-01T01:01:00+01:00") == 60
    assert parse_time("60") == 60
    before = int(time.time())
    assert before <= parse_time(None) <= time.time() + 1
    for wrong in ("yesterday", "9" * 30, ""):
        with pytest.raises(UsageError, match="a time such as"):
            parse_time(wrong)


def test_positions_that_cannot_be_are_refused() -> None:
    held = [Reach("news", b"s" * 12, 5)]
    stream = held[0].incarnation.hex()
    assert ends_of(held, ()) == ((b"s" * 12, 5),)
    assert ends_of(held, (f"{stream}=3",)) == ((b"s" * 12, 3),)
    assert ends_of(held, (f"{stream}=9",)) == ((b"s" * 12, 5),), "no more than is held"
    for wrong in ("x=1", f"{stream}", f"{stream}=-1", f"{stream}=٣", f"{bytes(12).hex()}=1"):
        with pytest.raises(UsageError, match="--after"):
            ends_of(held, (wrong,))


def test_the_authority_alone_can_revoke(tmp_path: Path) -> None:
    found = CliRunner().invoke(
        keys, ["revoke", "00" * 16, "--dir", str(tmp_path), "-s", "127.0.0.1:9", "--insecure"]
    )
    assert isinstance(found.exception, UsageError)
    assert "has no authority" in str(found.exception)


def test_a_node_that_always_has_more_is_asked_until_it_repeats_itself() -> None:
    class Liar:
        asked = 0

        async def ask(self, *arguments: Any) -> ExtentIs:
            self.asked += 1
            number = min(self.asked, 3)
            return ExtentIs(1, [Extent(number, bytes(12), 0, 1)], b"", more=True)

    liar = Liar()
    found = asyncio.run(_extents(cast(Surveyor, liar), NodeId(1), "news"))
    assert [it.publisher for it in found] == [1, 2, 3, 3]
    assert liar.asked == 4
