"""`planaria pub` and `planaria sub`, as processes against a stupid reference server."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from client_lab import numbers, serve, until
from planaria.cli.main import main
from planaria.network.connection import Connection
from planaria.network.link import Task
from planaria.records.record import PAYLOAD_BYTES_MAX
from reference_gate import ReferenceGate

TOPIC = "weather/europe"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No context of the user who runs the tests."""
    for name in ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in [it for it in os.environ if it.startswith("PLANARIA_")]:
        if name != "PLANARIA_CAMPAIGN":
            monkeypatch.delenv(name)


async def start(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "planaria", *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def run(*arguments: str, stdin: bytes = b"") -> tuple[int | None, bytes, str]:
    async with ended(await start(*arguments)) as process:
        out, err = await asyncio.wait_for(process.communicate(stdin), 50)
    return process.returncode, out, err.decode()


@asynccontextmanager
async def ended(process: Process) -> AsyncIterator[Process]:
    """Leave no process behind, also where the test fails."""
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def at(gates: list[ReferenceGate]) -> list[str]:
    return ["-s", ",".join(gate.address for gate in gates), "--insecure"]


def test_what_is_published_is_printed_unchanged() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        options = at(gates)
        said = await run("pub", TOPIC, "mild", "--key", "oslo", "--header", "unit=C", *options)
        assert said == (0, b"", "")
        assert await run("pub", TOPIC, "-", *options, stdin=b"\xff\0\n") == (0, b"", "")
        lines = b"\n".join(numbers(300))
        assert await run("pub", TOPIC, "--lines", *options, stdin=lines) == (0, b"", "")
        assert gates[0].memory.payloads(TOPIC)[2:] == numbers(300)
        whole = ("sub", "weather/#", "--since", "all", *options)
        assert await run(*whole, "-C", "302") == (0, b"mild\n\xff\0\n\n" + lines + b"\n", "")
        code, out, _ = await run(*whole, "-C", "2", "--json")
        events = [json.loads(line) for line in out.splitlines()]
        first = {"topic": TOPIC, "payload": "mild", "key": "oslo", "headers": {"unit": "C"}}
        assert code == 0
        assert first.items() <= events[0].items()
        assert [event["sequence"] for event in events] == [0, 1]
        assert events[1]["payload_base64"] == "/wAK"

    serve(test)


def test_only_the_last_of_each_key_is_printed_where_that_is_asked() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        options = at(gates)
        for key, payload in (("oslo", "1"), ("moss", "2"), ("oslo", "3"), ("moss", "4")):
            assert await run("pub", TOPIC, payload, "--key", key, *options) == (0, b"", "")
        whole = ("sub", TOPIC, "--since", "all", *options)
        assert await run(*whole, "--compacted", "-C", "2") == (0, b"3\n4\n", "")
        assert await run(*whole, "-C", "2") == (0, b"1\n2\n", "")

    serve(test)


def test_exit_codes_say_what_happened() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        options = at(gates)
        await run("pub", TOPIC, "old", *options)
        code, out, _ = await run("sub", "#", "--since", "1000000000", "-C", "1", *options)
        assert (code, out.count(b"\n")) == (0, 1)
        code, out, err = await run("sub", "#", "-v", "--since", "last", "-W", "1.5", *options)
        assert (code, out) == (27, b"weather/europe old\n")
        assert err == f"planaria: # at {gates[0].address}\n"
        code, _, err = await run("sub", "#", "-s", "127.0.0.1:1", "--insecure")
        assert (code, err.count("\n")) == (1, 1)
        assert "127.0.0.1:1: Connection refused" in err
        code, out, err = await run("sub", "a", "--where", "x >", *options)
        assert (code, out, err.count("\n")) == (2, b"", 1)

    serve(test)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("sub", "a/#/b", "--insecure"), "last level"),
        (("sub", "a", "--since", "never", "--insecure"), "all, now, last"),
        (("sub", "a", "--since", "0001-01-01", "--insecure"), "since 1970"),
        (("pub", "a/+", "x", "--insecure"), "wildcard"),
        (("pub", "a\nlegitimate: 4 nodes", "x", "--insecure"), r"'a\nlegitimate: 4 nodes'"),
        (("sub", "a/\x1b[2J/#", "--insecure"), r"'a/\x1b[2J/#' contains a control character"),
        (("sub", "a", "-W", "nan", "--insecure"), "'nan' is not a finite number"),
        (("sub", "a", "-W", "inf", "--insecure"), "'inf' is not a finite number"),
        (("sub", "a", "-W", "-1", "--insecure"), "-1.0 is not in the range x>0"),
        (("pub", "a", "x", "--header", "y", "--insecure"), "NAME=VALUE"),
        (("pub", "a", "x", "--header", "y=1", "--header", "y=2", "--insecure"), "'y': given twice"),
        (("pub", "a", "x", "--header", "\udcff=y", "--insecure"), r"'\udcff': a name is valid"),
        (("pub", "a", "x", "--lines", "--insecure"), "not both"),
        (("pub", "a", "x", "-s", "127.0.0.1:x", "--insecure"), "HOST:PORT"),
        (("pub", "a", "x", "-s", "127.0.0.1:1"), "planaria keys issue"),
        (("sub", "a", "--credentials", "/nowhere"), "/nowhere"),
    ],
)
def test_misuse_is_told_in_one_line_without_any_server(
    arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err


def test_key_and_headers_may_be_any_bytes() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        strange = os.fsdecode(b"\xff\xe4")
        bytes_of = ("--key", strange, "--header", f"a={strange}", "--header", "\u00e4=\u00e4")
        assert await run("pub", TOPIC, "x", *bytes_of, *at(gates)) == (0, b"", "")
        lines = await run("pub", TOPIC, "--lines", *bytes_of, *at(gates), stdin=b"y")
        assert lines == (0, b"", "")
        code, out, _ = await run("sub", "#", "--since", "all", "-C", "2", "--json", *at(gates))
        events = [json.loads(line) for line in out.splitlines()]
        assert (code, [it["key_base64"] for it in events]) == (0, ["/+Q="] * 2)
        assert [it["headers"] for it in events] == [{"a": "\ufffd\ufffd", "\u00e4": "\u00e4"}] * 2

    serve(test)


def slowly(gate: ReferenceGate) -> Callable[[Connection, bytes, Task], None]:
    """What a gate does with what it hears, but later, and only if who said it is still there."""
    received = gate.received

    def hear(connection: Connection, body: bytes, task: Task) -> None:
        if connection in gate.connections:
            received(connection, body, task)

    def later(connection: Connection, body: bytes, task: Task) -> None:
        asyncio.get_running_loop().call_later(0.5, hear, connection, body, task)

    return later


@pytest.mark.parametrize(
    ("before", "end", "words"),
    [
        (2000, b"\n", "line 2001: more than 1048576 bytes: split it; the 2000 before it are"),
        (2000, b"", "line 2001: more than 1048576 bytes: split it; the 2000 before it are"),
        (1, b"\n", "line 2: more than 1048576 bytes: split it; the 1 before it is published"),
        (0, b"\n", "line 1: more than 1048576 bytes: split it\n"),
    ],
)
def test_a_line_that_is_too_long_is_named_and_those_before_it_are_published(
    before: int, end: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is read, to the long line, before any node stores anything."""

    async def test(gates: list[ReferenceGate]) -> None:
        whole = b"".join(line + b"\n" for line in numbers(before))
        for gate in gates:
            monkeypatch.setattr(gate, "received", slowly(gate))
        file = tmp_path / "lines"
        file.write_bytes(whole + b"x" * (PAYLOAD_BYTES_MAX + 1) + end + b"never\n" * bool(end))
        with file.open() as stdin:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "planaria", "pub", TOPIC, "--lines", *at(gates),
                stdin=stdin, stdout=PIPE, stderr=PIPE,
            )  # fmt: skip
        async with ended(process):
            out, err = await asyncio.wait_for(process.communicate(), 50)
        assert (process.returncode, out, err.count(b"\n")) == (2, b"", 1)
        assert words in err.decode()
        assert gates[0].memory.payloads(TOPIC) == numbers(before)

    serve(test)


def test_a_line_as_long_as_a_payload_may_be_is_published() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        line = b"x" * PAYLOAD_BYTES_MAX
        stdin = line + b"\n1\n" + line
        assert await run("pub", TOPIC, "--lines", *at(gates), stdin=stdin) == (0, b"", "")
        assert gates[0].memory.payloads(TOPIC) == [line, b"1", line]

    serve(test)


def test_fewer_copies_than_wanted_are_told() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        code, out, err = await run("pub", TOPIC, "x", "--copies", "5", *at(gates))
        assert (code, out) == (0, b"")
        assert "2 of 5 copies: the topic has 3 members" in err

    serve(test)


def test_sub_ends_quietly_when_nobody_reads_and_at_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        await run("pub", TOPIC, "--lines", *at(gates), stdin=b"1\n2\n3\n")
        read, write = os.pipe()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "planaria", "sub", "#", "--since", "all", *at(gates),
            stdout=write, stderr=PIPE,
        )  # fmt: skip
        os.close(write)
        async with ended(process):
            with os.fdopen(read, "rb", buffering=0) as reader:
                assert (await asyncio.to_thread(reader.read, 2)) == b"1\n"
            _, err = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, err) == (0, b"")

    serve(test)


@pytest.mark.parametrize("arguments", [("sub", "#"), ("pub", TOPIC, "--lines")])
def test_ctrl_c_ends_both(arguments: tuple[str, ...]) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with ended(await start(*arguments, *at(gates))) as process:
            await until(lambda: gates[0].asked_for)
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, out) == (130, b"")
        assert err.strip() == b"planaria: error: interrupted"

    serve(test)


def test_servers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        monkeypatch.setenv("PLANARIA_SERVERS", gates[0].address)
        monkeypatch.setenv("PLANARIA_INSECURE", "1")
        assert await run("pub", TOPIC, "x") == (0, b"", "")
        assert gates[0].memory.payloads(TOPIC) == [b"x"]

    serve(test)
