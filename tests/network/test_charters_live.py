"""Charters in whole nodes: obeyed by members, kept over restarts, refused if nobody signed them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from planaria.cli.keys import revoke_one
from planaria.core.errors import UsageError
from planaria.network.charter_file import FILE
from planaria.network.charters import seal, seal_locally
from planaria.network.config import Config
from planaria.network.context import Context
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import Charter
from planaria.protocols.skipring.charters import LayDown
from watched import until


def config(directory: Path, **options: Any) -> Config:
    usual = {"listen": "127.0.0.1:0", "supervise": True, "insecure": 1, "interval": 0.1}
    return Config(dir=directory, **{**usual, **options})


def run(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 90))


def charter(version: int, count: int, topic: str = "news") -> Charter:
    return Charter(topic, version, version - 1, int(time.time()), "ring", Retention(count=count))


def retention(live: LiveNode) -> Retention:
    return live.ring.peer.topics["news"].history.horizon.retention


def test_members_obey_and_a_restart_remembers(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()

    async def main() -> None:
        async with LiveNode(config(tmp_path / "a")) as one:
            settings = config(tmp_path / "b", join=(one.listen,), supervise=False)
            async with LiveNode(settings) as two:
                await two.subscribe("news").ready()
                one.host.command(LayDown(seal_locally(charter(1, 7), key)))
                one.host.command(LayDown(seal_locally(charter(1, 3, "empty"), key)))
                await until(lambda: retention(two) == Retention(count=7))
                await until((tmp_path / "a" / FILE).exists)  # without waiting for its end
                with pytest.raises(UsageError, match="not signed by an admin"):
                    one.host.command(LayDown(b"anything"))
        async with LiveNode(config(tmp_path / "a")) as one:
            assert one.ring.charters.names() == ["empty", "news"]

    run(main)


def test_a_damaged_file_costs_a_warning_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(b"\x91garbage")

    async def main() -> None:
        async with LiveNode(config(tmp_path)) as one:
            assert one.ring.charters.names() == []

    run(main)
    assert "cannot be read" in caplog.text


def test_with_tls_admins_alone_lay_down_and_the_authority_voids(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    found_cluster(keys, "demo")
    node = issue(keys, "node", ("node", "supervise"))
    admin = Credentials(issue(keys, "admin", ("admin", "client")))

    async def main() -> None:
        async with LiveNode(config(tmp_path / "a", keys=node, insecure=0)) as one:
            await one.subscribe("news").ready()
            local = LayDown(seal_locally(charter(1, 7), Ed25519PrivateKey.generate()))
            with pytest.raises(UsageError, match="not signed by an admin"):
                one.host.command(local)
            sealed = seal(charter(1, 7), admin)
            one.host.command(LayDown(sealed))
            assert retention(one) == Retention(count=7)
            context = Context((one.listen,), admin.directory)
            await revoke_one(context, admin.identity.id, keys, int(time.time()) - 60)
            assert retention(one) == Retention()
            with pytest.raises(UsageError, match="is void"):
                one.host.command(LayDown(sealed))

    run(main)
