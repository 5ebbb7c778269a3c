"""Another authority while the network runs: both are trusted, then the new one alone."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from planaria.core.errors import PlanariaError, UsageError
from planaria.network.charters import judge, seal_void
from planaria.network.identity import (
    AUTHORITY,
    Refused,
    cluster_of,
    found_cluster,
    issue,
    load_authority,
)
from planaria.network.live import LiveNode
from planaria.network.rotation import finish_rotation, revoking_key, rotate
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import voiding
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


def test_a_crash_at_any_step_leaves_one_authority_that_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes a file fails once; whatever was there goes on, and so does it."""
    for fatal in range(20):
        directory = tmp_path / str(fatal)
        found_cluster(directory, "demo")
        issue(directory, "before")
        calls = Calls(fatal)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", calls.counted(Path.replace))
            patch.setattr(Path, "unlink", calls.counted(Path.unlink))
            try:
                rotate(directory)
                finish_rotation(directory)
            except Crash:
                pass
        with pytest.raises(UsageError, match="has an authority already"):
            found_cluster(directory, "demo")
        assert Credentials(issue(directory, "between")).identity.name == "between"
        if len(load_authority(directory / AUTHORITY)) == 1 and not calls.finishing(directory):
            rotate(directory)
        assert Credentials(issue(directory, "new")).identity.name == "new"
        if len(load_authority(directory / AUTHORITY)) == 2:
            finish_rotation(directory)
        if calls.finishing(directory):
            finish_rotation(directory)
        assert Credentials(issue(directory, "after")).identity.name == "after"
        assert not [*directory.glob("authority-key-*")]
        if calls.made <= fatal:
            return
    raise AssertionError("it takes more steps than were tried")


class Crash(BaseException):
    """The process ends here."""


class Calls:
    """Counts what changes files, and lets the process end before one of them."""

    def __init__(self, fatal: int) -> None:
        self.made, self._fatal = 0, fatal

    def counted(self, change: Any) -> Any:
        def made(*args: Any, **options: Any) -> Any:
            self.made += 1
            if self.made - 1 == self._fatal:
                raise Crash
            return change(*args, **options)

        return made

    def finishing(self, directory: Path) -> bool:
        """Are keys left that nobody needs?"""
        alone = len(load_authority(directory / AUTHORITY)) == 1
        return alone and bool([*directory.glob("authority-key-*")])


def test_between_two_authorities_who_issued_a_certificate_revokes_it(tmp_path: Path) -> None:
    found_cluster(tmp_path, "demo")
    old = Credentials(issue(tmp_path, "old"))
    first = revoking_key(tmp_path, old.identity.id).public_key()
    rotate(tmp_path)
    new = Credentials(issue(tmp_path, "new"))
    second = revoking_key(tmp_path, new.identity.id).public_key()
    assert second != first
    assert revoking_key(tmp_path, old.identity.id).public_key() == first
    assert revoking_key(tmp_path, bytes(16)).public_key() == second, "of one that it does not know"
    record = voiding(old.identity.id, 1)
    sealed = seal_void(record, revoking_key(tmp_path, old.identity.id))
    for trusted in (old.authority, new.authority):  # the old one alone, and both
        assert judge(trusted)(sealed) is not None
    finish_rotation(tmp_path)
    assert revoking_key(tmp_path, old.identity.id).public_key() == second


def test_a_cluster_whose_founding_crashed_is_founded_again(tmp_path: Path) -> None:
    found_cluster(tmp_path, "demo")
    (tmp_path / AUTHORITY).unlink()
    with pytest.raises(UsageError, match="has no authority"):
        issue(tmp_path, "n1")
    found_cluster(tmp_path, "demo")
    assert Credentials(issue(tmp_path, "n1")).cluster == "demo"
