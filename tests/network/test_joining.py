"""How nodes find their network, and who is not let in."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from live_lab import config, run, running, until
from planaria.network import live
from planaria.network.identity import Refused, found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials


def test_a_node_finds_its_network_again_when_nobody_named_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            founder = await stack.enter_async_context(running(config(tmp_path / "founder")))
            settings = config(tmp_path / "other", join=(founder.listen,))
            other = await stack.enter_async_context(LiveNode(settings))
            await until(lambda: founder.host.links)
            await founder.stop()
            again = LiveNode(replace(founder.config, listen=founder.listen))  # joins nobody
            async with again:
                await until(lambda: other.id in {it.theirs.id for it in again.host.links.values()})  # type: ignore[union-attr]

    run(main)


def test_a_named_address_that_is_this_node_itself_is_told_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path)) as live:
            listen = live.listen
        async with LiveNode(config(tmp_path, listen=listen, join=(listen,))):
            assert "is this node itself" in caplog.text

    run(main)


@pytest.mark.parametrize("wrong", ["cluster", "authority", "client", "tls"])
def test_who_does_not_belong_here_is_refused_and_hears_why(
    tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        for cluster in ("ours", "theirs"):
            found_cluster(tmp_path / cluster, cluster)
        ours = issue(tmp_path / "ours", "one", ("node", "supervise"))
        theirs = issue(tmp_path / "theirs", "two", ("node", "supervise"))
        client = issue(tmp_path / "ours", "three", ("client",))
        mine, other, said = {
            "cluster": ({}, {"cluster": "another"}, "cluster"),
            "authority": (_keys(ours), _keys(theirs), "authority"),
            "client": (_keys(ours), _keys(client), "is for client, not for a node"),
            "tls": ({}, _keys(theirs), "--insecure"),
        }[wrong]
        async with LiveNode(config(tmp_path / "a", **mine)) as one:
            settings = config(tmp_path / "b", supervise=False, join=(one.listen,), **other)
            if wrong == "client":  # or it would refuse its own keys
                monkeypatch.setattr(live, "load_credentials", lambda _: Credentials(client))
            with pytest.raises(Refused, match=said):
                async with LiveNode(settings):
                    pass

    run(main)


def test_without_tls_a_node_that_wants_it_is_asked_again_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        found_cluster(tmp_path / "keys", "ours")
        keys = issue(tmp_path / "keys", "one", ("node", "supervise"))
        async with LiveNode(config(tmp_path / "a", **_keys(keys))) as one:
            two = LiveNode(config(tmp_path / "b", join=(one.listen,)))
            starting = asyncio.ensure_future(two.start())
            try:
                await until(lambda: "does it want TLS?" in caplog.text)
            finally:
                starting.cancel()
                await two.stop(leave=False)

    run(main)


def _keys(directory: Path) -> dict[str, Any]:
    return {"keys": directory, "insecure": 0}


def test_a_supervisor_that_stops_is_asked_by_nobody_any_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with LiveNode(config(tmp_path / "one")) as one:
            async with LiveNode(config(tmp_path / "two", join=(one.listen,))) as two:
                await until(lambda: len(one.ring.supervisors) == 2)
                gone = two.host.node.id
            await until(lambda: gone not in one.ring.supervisors)

    run(main)
