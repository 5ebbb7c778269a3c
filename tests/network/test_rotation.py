"""Another authority while the network runs: both are trusted, then the new one alone."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from planaria.core.errors import PlanariaError, UsageError
from planaria.network.identity import (
    AUTHORITY,
    Refused,
    cluster_of,
    finish_rotation,
    found_cluster,
    issue,
    load_authority,
    rotate,
)
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from secure_lab import Secure, run
from watched import until


def test_nodes_change_one_after_the_other_and_never_lose_each_other(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        first, second = await lab.node(), await lab.node()
        rotate(lab.keys)
        both = (lab.keys / AUTHORITY).read_bytes()
        lab.people["dora"] = issue(lab.keys, "dora", ("client",))  # by the new authority
        with pytest.raises(PlanariaError):
            async with lab.client("dora", second) as early:
                await early.status()
        for node in (first, second):  # those of the old authority trust the new one after a restart
            assert node.config.keys is not None
            (node.config.keys / AUTHORITY).write_bytes(both)
            await node.stop(leave=False)
            again = LiveNode(replace(node.config, listen=node.listen))
            lab.nodes[lab.nodes.index(node)] = again
            await again.start()
        third = await lab.node()  # by the new authority
        await until(lambda: third.host.links)
        (lab.people["alice"] / AUTHORITY).write_bytes(both)
        async with (
            lab.client("alice", third) as alice,
            lab.client("dora", lab.nodes[1]) as dora,
            dora.subscribe("news") as events,
        ):
            await events.ready()
            await alice.publish("news", b"both")
            assert (await anext(events)).payload == b"both"

    run(tmp_path, test)


def test_the_old_authority_is_trusted_until_that_is_finished(tmp_path: Path) -> None:
    found_cluster(tmp_path, "demo")
    with pytest.raises(UsageError, match="nothing is to be finished"):
        finish_rotation(tmp_path)
    old = issue(tmp_path, "old")
    rotate(tmp_path)
    with pytest.raises(UsageError, match="between two authorities"):
        rotate(tmp_path)
    new = Credentials(issue(tmp_path, "new"))
    assert (new.cluster, len(new.authority)) == ("demo", 2)
    (old / AUTHORITY).write_bytes((tmp_path / AUTHORITY).read_bytes())
    assert Credentials(old).identity.name == "old"
    finish_rotation(tmp_path)
    assert cluster_of(load_authority(tmp_path / AUTHORITY)) == "demo"
    (old / AUTHORITY).write_bytes((tmp_path / AUTHORITY).read_bytes())
    with pytest.raises(Refused, match="is not of cluster 'demo'"):
        Credentials(old)
    assert Credentials(issue(tmp_path, "newer")).identity.name == "newer"
