"""Whatever ends a search for nodes, whoever waits is told."""

import asyncio
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from client_lab import Yesteryear, client_of, serve
from planaria.core.errors import UsageError
from planaria.network import identity
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Asker, Unanswered
from planaria.network.client.channel import Channel, Owner
from planaria.network.client.client import connect
from planaria.network.client.errors import Unreachable
from planaria.network.client.servers import Servers
from planaria.network.connection import CLIENT, VERSIONS, Connection, Hello
from planaria.network.context import Context
from planaria.network.identity import found_cluster, issue
from planaria.network.tls import Credentials
from reference_gate import Memory, ReferenceGate


def test_an_error_that_nobody_foresaw_fails_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(self: Channel, address: str) -> None:
        raise RuntimeError("unforeseen")

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events = client.subscribe("news")
            await events.ready()
            monkeypatch.setattr(Channel, "_dial", break_down)
            gates[0].hang_up()
            with pytest.raises(Unreachable, match="unforeseen"):
                await anext(events)

    serve(test, gates=1)


def test_credentials_that_broke_meanwhile_are_a_reason_like_others() -> None:
    class Broken:
        def context(self, *, server: bool) -> None:
            raise UsageError("key and certificate do not fit")

    async def test(gates: list[ReferenceGate]) -> None:
        hello, _ = shown(Context((gates[0].address,), insecure=True), None)
        access = Access(hello, cast(Credentials, Broken()))
        channel = Channel(Servers([gates[0].address]), access, cast(Owner, None))
        with pytest.raises(Unreachable, match=r"127.0.0.1:\d+: key and certificate do not fit"):
            await channel._find()
        with pytest.raises(Unanswered, match="do not fit"):
            await Asker(gates[0].address, access).open()

    serve(test, gates=1)


def test_a_question_to_who_speaks_no_tls_fails_at_once(tmp_path: Path) -> None:
    found_cluster(tmp_path / "keys", "demo")
    mine = issue(tmp_path / "keys", "me", ("client",))

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 welcome\r\n")
        await reader.read()
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            access = Access(*shown(Context((address,), credentials=mine), None))
            asker = Asker(address, access, seconds=600)
            with pytest.raises(Unanswered, match="no TLS there"):
                await asker.open()
            await asker.close()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_who_refuses_before_its_dial_has_ended_is_known_by_its_address() -> None:
    async def main() -> None:
        servers = Servers(["a:1", "b:1"])
        access = Access(Hello(VERSIONS, bytes(16), "planaria", role=CLIENT), None)
        channel = Channel(servers, access, cast(Owner, None))
        connection = Connection(channel, dialled=True)
        connection.refused = True
        opening = asyncio.get_running_loop().create_future()
        channel._opening[connection] = ("b:1", opening)
        channel.opened(connection)
        channel.closed(connection, "no")
        assert opening.done()
        assert channel._refusals == {"b:1": "no"}
        assert channel.address == "b:1"

    asyncio.run(main())


def test_a_tool_hangs_up_on_who_hangs_up_when_its_patience_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both in one turn of the loop: `planaria chaos` ended with a traceback."""

    async def test(gates: list[ReferenceGate]) -> None:
        hello, _ = shown(Context((gates[0].address,), insecure=True), None)
        asker = Asker(gates[0].address, Access(hello, None))
        await asker.open()
        connection = asker._connection
        assert connection is not None
        loop = asyncio.get_running_loop()
        ends = partial(asker.closed, connection)
        monkeypatch.setattr(connection, "close", partial(loop.call_soon, ends))
        asker.seconds = 0
        await asker.close()
        assert asker.hung_up
        connection.abort()

    serve(test, gates=1)


def test_a_node_whose_certificate_has_expired_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_cluster(tmp_path / "keys", "planaria")
    mine = issue(tmp_path / "keys", "client", ("client",))
    with monkeypatch.context() as patch:
        patch.setattr(identity, "datetime", Yesteryear)
        expired = Credentials(issue(tmp_path / "keys", "expired", days=1))

    async def main() -> None:
        gate = ReferenceGate(Memory(), expired)
        try:
            address = await gate.start()
            words = "its certificate has expired: issue it a new one"
            with pytest.raises(Unreachable, match=words) as refused:
                async with connect(address, credentials=mine):
                    pass
            assert "Check the credentials" not in str(refused.value)
        finally:
            await gate.stop()

    asyncio.run(main())
