"""Certificates say who is who; what does not belong here is refused in one line that helps."""

import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from planaria.core.errors import UsageError
from planaria.core.ids import is_node_id
from planaria.network import identity
from planaria.network.identity import (
    AUTHORITY,
    CERTIFICATE,
    ISSUED,
    KEY,
    SECRET,
    found_cluster,
    handle_of,
    identify,
    issue,
    load_authority,
    load_certificate,
    load_secret,
)
from planaria.network.tls import Credentials


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    found_cluster(tmp_path / "keys", "demo")
    return tmp_path / "keys"


def test_a_certificate_names_its_holder(keys: Path) -> None:
    directory = issue(keys, "alice", ("node", "supervise"))
    one = Credentials(directory).identity
    assert (one.name, one.roles) == ("alice", ("node", "supervise"))
    assert len(one.id) == 16
    assert is_node_id(one.handle)
    assert one.handle == handle_of(one.id)
    assert timedelta(days=364) < one.expires - datetime.now(UTC) < timedelta(days=366)


def test_secrets_can_be_read_by_their_owner_alone(keys: Path) -> None:
    directory = issue(keys, "alice")
    for path in (keys / "authority-key.pem", keys / SECRET, directory / KEY, directory / SECRET):
        assert path.stat().st_mode & 0o077 == 0
    (directory / KEY).chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        Credentials(directory)


def test_the_nonce_is_the_authoritys_and_two_keys_have_two_handles(keys: Path) -> None:
    issued = [Credentials(issue(keys, f"n{number}")).identity for number in range(5)]
    assert len({it.handle for it in issued}) == 5
    lines = [json.loads(line) for line in (keys / ISSUED).read_text().splitlines()]
    assert [bytes.fromhex(line["id"]) for line in lines] == [it.id for it in issued]


def test_a_colliding_handle_is_never_issued(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nonces = iter([b"a" * 16, b"b" * 16])
    monkeypatch.setattr(secrets, "token_bytes", lambda _: next(nonces))
    key = Ed25519PrivateKey.generate().public_key()
    taken = {handle_of(identity.id_of(key, b"a" * 16))}
    assert identity._fresh_nonce(key, taken) == b"b" * 16


def test_another_clusters_certificate_is_refused(keys: Path, tmp_path: Path) -> None:
    found_cluster(tmp_path / "other", "elsewhere")
    stranger = load_certificate(issue(tmp_path / "other", "eve") / CERTIFICATE)
    with pytest.raises(UsageError, match="not of cluster 'demo'"):
        identify(stranger, load_authority(keys / AUTHORITY))


def test_an_expired_certificate_is_refused_and_says_until_when(keys: Path) -> None:
    certificate = load_certificate(issue(keys, "alice", days=1) / CERTIFICATE)
    authority = load_authority(keys / AUTHORITY)
    assert identify(certificate, authority).name == "alice"
    with pytest.raises(UsageError, match=r"good until .* issue a new one"):
        identify(certificate, authority, datetime.now(UTC) + timedelta(days=2))
    with pytest.raises(UsageError, match="set the clock right"):
        identify(certificate, authority, datetime.now(UTC) - timedelta(days=2))


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a/b", "x" * 65, "two words"])
def test_a_name_that_is_no_file_name_is_refused(keys: Path, name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits"):
        issue(keys, name)


def test_what_exists_is_never_overwritten(keys: Path) -> None:
    issue(keys, "alice")
    before = {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="another name"):
        issue(keys, "alice")
    with pytest.raises(UsageError, match="has an authority already"):
        found_cluster(keys, "again")
    assert {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()} == before


def test_without_an_authority_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="planaria keys init"):
        issue(tmp_path, "alice")


def test_an_unknown_role_and_unreadable_files_are_one_line_each(keys: Path) -> None:
    with pytest.raises(UsageError, match="one of node, client, supervise, admin"):
        issue(keys, "alice", ("king",))
    (keys / "junk.pem").write_text("junk")
    with pytest.raises(UsageError, match=r"junk\.pem is no readable certificate"):
        load_certificate(keys / "junk.pem")
    with pytest.raises(UsageError, match="cannot be read"):
        load_secret(keys / "nothing")
    (keys / ISSUED).write_text("{}\n")
    with pytest.raises(UsageError, match="is damaged"):
        issue(keys, "bob")
