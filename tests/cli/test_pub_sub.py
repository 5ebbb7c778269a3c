"""`planaria pub` and `planaria sub`, as processes against a stupid reference server."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from client_lab import numbers, serve, until
from planaria.cli.main import main
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
        assert await run("pub", TOPIC, *options, stdin=b"\xff\0\n") == (0, b"", "")
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
        (("pub", "a", "x", "--header", "y", "--insecure"), "NAME=VALUE"),
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
