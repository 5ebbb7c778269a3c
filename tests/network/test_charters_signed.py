"""Who may sign charters: admins of the cluster, at the time of signing; the authority voids."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import msgpack
from msgspec.structs import replace

from planaria.core.errors import UsageError
from planaria.network.charters import judge, local_key, seal, seal_locally, seal_void
from planaria.network.identity import AUTHORITY_KEY, found_cluster, issue, load_key
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import Charter, Sealed, next_charter, voiding


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    found_cluster(tmp_path / "keys", "demo")
    return tmp_path / "keys"


def now() -> int:
    return int(datetime.now(UTC).timestamp())


def test_what_an_admin_signed_is_admitted_and_no_byte_of_it_can_be_changed(keys: Path) -> None:
    admin = Credentials(issue(keys, "admin", ("admin",)))
    charter = next_charter("news", None, now())
    data = seal(charter, admin)
    admit = judge(admin.authority)
    found = admit(data)
    assert found is not None
    assert (found.charter, found.admin) == (charter, admin.identity.id)
    for at in range(len(data)):
        for bit in (1, 2, 16, 128):
            changed = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            # A certificate has bits that mean nothing; what counts is what it lays down.
            assert admit(changed) in (None, found), at


def test_who_is_no_admin_is_refused_when_it_signs_and_when_it_is_read(keys: Path) -> None:
    node = Credentials(issue(keys, "node", ("node",)))
    charter = next_charter("news", None, now())
    with pytest.raises(UsageError, match="is no admin's"):
        seal(charter, node)
    admin = Credentials(issue(keys, "admin", ("admin",)))
    node.identity = admin.identity  # a tool that does not look
    assert judge(admin.authority)(seal(charter, node)) is None


def test_an_admin_of_another_cluster_and_a_local_key_are_not_admitted(
    keys: Path, tmp_path: Path
) -> None:
    found_cluster(tmp_path / "others", "demo")
    theirs = Credentials(issue(tmp_path / "others", "admin", ("admin",)))
    ours = Credentials(issue(keys, "admin", ("admin",)))
    charter = next_charter("news", None, now())
    assert judge(ours.authority)(seal(charter, theirs)) is None
    assert judge(ours.authority)(seal_locally(charter, Ed25519PrivateKey.generate())) is None


def test_a_charter_is_judged_at_the_time_it_was_signed(keys: Path) -> None:
    admin = Credentials(issue(keys, "admin", ("admin",), days=1))
    admit, day = judge(admin.authority), 86400
    for days, admitted in ((0, True), (-2, False), (2, False)):
        data = seal(next_charter("news", None, now() + days * day), admin)
        assert (admit(data) is not None) == admitted


def test_the_authority_alone_voids(keys: Path) -> None:
    admin = Credentials(issue(keys, "admin", ("admin",)))
    record = voiding(admin.identity.id, now())
    good = seal_void(record, load_key(keys / AUTHORITY_KEY))
    admit = judge(admin.authority)
    found = admit(good)
    assert found is not None
    assert found.charter == record
    assert admit(seal(record, admin)) is None
    body = msgpack.decode(good, type=Sealed)
    assert admit(msgpack.encode(replace(body, signature=bytes(64)))) is None


def test_without_an_authority_the_key_that_signed_is_enough(tmp_path: Path) -> None:
    key = local_key(tmp_path / "config" / "key.pem")
    assert (tmp_path / "config" / "key.pem").stat().st_mode & 0o077 == 0
    assert local_key(tmp_path / "config" / "key.pem").private_bytes_raw() == key.private_bytes_raw()
    charter = Charter("news", 1, 0, now())
    data = seal_locally(charter, key)
    found = judge(None)(data)
    assert found is not None
    assert found.charter == charter
    body = msgpack.decode(data, type=Sealed)
    assert judge(None)(msgpack.encode(replace(body, signer=bytes(32)))) is None
    assert judge(None)(msgpack.encode(replace(body, signer=b"short"))) is None
    assert judge(None)(seal_locally(voiding(bytes(16), now()), key)) is None


def test_a_local_key_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config" / "key.pem"

    def crash(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", crash)
        with pytest.raises(UsageError, match=r"cannot make a key at .*No space left"):
            local_key(path)
    assert [*path.parent.iterdir()] == []
    assert local_key(path).private_bytes_raw() == local_key(path).private_bytes_raw()
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="no readable key"):
        local_key(path)
    with pytest.raises(UsageError, match="Not a directory"):
        local_key(path / "below" / "key.pem")
