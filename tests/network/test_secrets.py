"""Keys and secrets: files that others can read are refused, and nothing ever writes one down."""

import asyncio
import base64
import os
import socket
import ssl
import subprocess
import sys
import traceback
from pathlib import Path
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from planaria.core.errors import PlanariaError, UsageError
from planaria.network.config import Config
from planaria.network.contacts import parse_address
from planaria.network.identity import (
    AUTHORITY,
    AUTHORITY_KEY,
    CERTIFICATE,
    KEY,
    SECRET,
    found_cluster,
    issue,
    load_secret,
)
from planaria.network.live import LiveNode
from process_lab import PATIENCE, Processes, environment

PAGES = ("/metrics", "/status", "/healthz", "/stablez", "/trace", "/nothing")
EXPECTED = (
    b"is no readable key",
    b"chmod 600",
    b"do not fit",
    b"not of our authority",
    b"hello",  # what was published
    b'"timeout"',  # what the node did, in its trace
)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o777])
def test_a_key_that_others_can_reach_is_refused_with_one_line(tmp_path: Path, mode: int) -> None:
    path = tmp_path / KEY
    path.write_bytes(b"x")
    path.chmod(mode)
    with pytest.raises(UsageError, match=f"can be read by others: chmod 600 {path}$"):
        load_secret(path)
    path.chmod(0o600)
    assert load_secret(path) == b"x"


def test_a_key_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / KEY
    path.write_bytes(b"x")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 4242, -1)
        expected = "belongs to user 4242"
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        expected = "chown 4242"
    with pytest.raises(UsageError, match=expected):
        load_secret(path)


def needles(*directories: Path) -> dict[str, bytes]:
    """All forms in which a secret of these directories could be written down."""
    found: dict[str, bytes] = {}
    for directory in directories:
        for name in (KEY, AUTHORITY_KEY):
            if (directory / name).exists():
                pem = (directory / name).read_bytes()
                key = serialization.load_pem_private_key(pem, None)
                assert isinstance(key, Ed25519PrivateKey)
                raw = key.private_bytes_raw()
                place = f"{directory.name}/{name}"
                found |= {
                    f"{place} PEM": pem.splitlines()[1],
                    f"{place} raw": raw,
                    f"{place} hex": raw.hex().encode(),
                    f"{place} base64": base64.b64encode(raw).rstrip(b"="),
                    f"{place} repr": repr(raw)[2:-1].encode(),
                }
        if (directory / SECRET).exists():
            secret = (directory / SECRET).read_bytes()
            raw, place = bytes.fromhex(secret.decode()), f"{directory.name}/{SECRET}"
            found |= {place: secret, f"{place} raw": raw}
            found[f"{place} repr"] = repr(raw)[2:-1].encode()
    return found


def tool(home: Path, *words: object) -> bytes:
    """Run a tool to its end; all that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "planaria", *map(str, words)],
        env=environment(home), capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def doomed_keys(keys: Path, home: Path) -> dict[str, Path]:
    """Directories of keys with which no node will start, each for another reason."""
    found = {name: issue(keys, name, ("node",)) for name in ("readable", "cut", "foreign")}
    found_cluster(home / "other", "weather")
    return found | {"stranger": issue(home / "other", "stranger", ("node", "client"))}


def spoil(doomed: dict[str, Path], other: Path) -> None:
    """Make all of them useless but the stranger's, which are another authority's."""
    (doomed["readable"] / KEY).chmod(0o644)
    cut = doomed["cut"] / KEY
    cut.write_bytes(cut.read_bytes()[:-40])
    (doomed["foreign"] / KEY).write_bytes((other / KEY).read_bytes())


def refusal(config: Config) -> bytes:
    """What is said of a node that cannot start, with all that led to it."""

    async def main() -> None:
        async with LiveNode(config):
            pass

    try:
        asyncio.run(asyncio.wait_for(main(), PATIENCE), debug=True)
    except PlanariaError as error:
        return "".join(traceback.format_exception(error)).encode()
    raise AssertionError(f"{config.keys} is good")


def page(http: str, path: str) -> bytes:
    try:
        with urlopen(f"http://{http}{path}", timeout=PATIENCE) as answer:
            found: bytes = answer.read()
            return found
    except OSError as error:
        return str(error).encode()


def shout(address: str, keys: Path | None) -> None:
    """Send garbage, without TLS or with the certificate of a client."""
    host, port = parse_address(address)
    with socket.create_connection((host, port), PATIENCE) as plain:
        plain.settimeout(PATIENCE)
        if keys is None:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(keys / AUTHORITY)
            context.load_cert_chain(keys / CERTIFICATE, keys / KEY)
            with context.wrap_socket(plain) as shielded:
                shielded.sendall(b"\x00\x00\x00\x09\x01garbage!" + b"\xff" * 64)
                while shielded.recv(4096):
                    pass


def test_nothing_that_a_network_writes_holds_a_secret(
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    keys = tmp_path / "keys"
    found_cluster(keys, "weather")
    node, client = issue(keys, "n1", ("node", "supervise")), issue(keys, "alice", ("client",))
    doomed = doomed_keys(keys, tmp_path)
    secret = needles(keys, tmp_path / "other", node, client, *doomed.values())
    spoil(doomed, node)
    written = [
        tool(tmp_path, "keys", "show", node, "--json"),
        tool(tmp_path, "keys", "issue", "n1", "--dir", keys),
    ]
    home = tmp_path / "home"
    words = ("node", "--dir", home, "--keys", node, "--supervise", "--listen", "127.0.0.1:0")
    one = processes.run(*words, "--http", "127.0.0.1:0", "--log", "debug")
    ready = one.ready()
    address, http = ready["listen"], ready["http"]
    for spoilt in doomed.values():
        directory = tmp_path / f"home-{spoilt.name}"
        settings = Config(dir=directory, listen="127.0.0.1:0", join=(address,), keys=spoilt)
        written.append(refusal(settings))
    written.append(caplog.text.encode())
    shout(address, None)
    shout(address, client)
    reach = ("-s", address, "--credentials", client)
    written += [
        tool(tmp_path, "pub", "news", "hello", *reach),
        tool(tmp_path, "doctor", "--json", *reach),
    ]
    written += [page(http, path) for path in PAGES]
    assert one.end() == 0
    written.append(one.log.read_bytes())
    files = [it for it in home.rglob("*") if it.is_file()]
    written += [it.read_bytes() for it in files]
    assert len(files) >= 4, "store, options, memberships, ..."
    everything = b"\n".join(written)
    assert [it for it in EXPECTED if it not in everything] == [], "all is looked at"
    for name, needle in secret.items():
        assert needle not in everything, f"{name} was written down"
