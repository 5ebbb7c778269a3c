"""The client without `async`: the same promises, from a script's own thread."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import planaria
from loop_lab import loop_in_thread
from planaria.core.errors import UsageError
from planaria.network.client import looping
from planaria.network.client.errors import Unreachable
from reference_gate import Memory, ReferenceGate

TOPIC = "weather/europe"


@pytest.fixture
def gates() -> Iterator[list[ReferenceGate]]:
    """Two servers in a thread of their own."""
    served = list[ReferenceGate]()

    async def start() -> None:
        memory = Memory()
        for _ in range(2):
            served.append(ReferenceGate(memory))
            await served[-1].start()

    async def stop() -> None:
        for gate in served:
            await gate.stop()

    with loop_in_thread() as loop:
        try:
            asyncio.run_coroutine_threadsafe(start(), loop).result(30)
            yield served
        finally:
            asyncio.run_coroutine_threadsafe(stop(), loop).result(30)


def servers(gates: list[ReferenceGate]) -> list[str]:
    return [gate.address for gate in gates]


def test_a_script_publishes_and_reads(gates: list[ReferenceGate]) -> None:
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        assert client.publish(TOPIC, "0", key="k").sequence == 0
        ack = client.publish_many(TOPIC, [b"1", b"2"])
        assert ack is not None
        assert ack.count == 2
        with client.subscribe("weather/#", since="all") as events:
            events.ready()
            found = [next(events), next(events)]
            assert [event.payload for event in found] == [b"0", b"1"]
            vector = events.vector()
        with client.subscribe("weather/#", since=vector) as rest:
            assert rest.next(timeout=10).payload == b"2"
            with pytest.raises(TimeoutError):
                rest.next(timeout=0.05)
            client.publish(TOPIC, b"3")
            for event in rest:
                assert event.payload == b"3"
                break
        assert client.topics() == [TOPIC]
        assert list(client.vector(TOPIC).values()) == [4]
        assert len(client.read(TOPIC).events) == 4
        assert client.status() == {"contacts": []}
    with pytest.raises(UsageError, match="closed"):
        client.topics()
    assert not [it for it in threading.enumerate() if it.name == "planaria"]


def test_a_script_goes_on_at_another_node(gates: list[ReferenceGate]) -> None:
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        client.publish(TOPIC, b"0")
        with client.subscribe(TOPIC, since="all") as events:
            assert next(events).payload == b"0"
            gates[0].frozen = True
            assert client.publish(TOPIC, b"1").sequence == 1
            assert next(events).payload == b"1"
            assert client.server == gates[1].address


def test_an_error_leaves_no_thread_behind() -> None:
    with pytest.raises(Unreachable), planaria.sync.connect("127.0.0.1:1", insecure=True):
        pass
    with pytest.raises(UsageError):
        planaria.sync.connect("127.0.0.1:1")
    assert not [it for it in threading.enumerate() if it.name == "planaria"]


SCRIPT = """
import planaria.sync
with planaria.sync.connect({servers!r}, insecure=True) as client:
    with client.subscribe("weather/#") as events:
        events.ready()
        print("ready", flush=True)
        for event in events:
            print(event.payload)
"""


def test_ctrl_c_ends_a_script_that_waits(gates: list[ReferenceGate]) -> None:
    script = SCRIPT.format(servers=servers(gates))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.strip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1


def test_who_waits_in_another_thread_is_let_go(
    gates: list[ReferenceGate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looping, "LAST_SECONDS", 0.05)
    ended: list[BaseException] = []
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        begun = threading.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        def wait() -> None:
            try:
                client._loop.run(forever())
            except BaseException as error:
                ended.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        assert begun.wait(30)
    waiting.join(30)
    assert len(ended) == 1


def test_a_subscription_ends_with_its_client(gates: list[ReferenceGate]) -> None:
    client = planaria.sync.connect(servers(gates), insecure=True)
    with client:
        client.publish(TOPIC, "0")
        events = client.subscribe(TOPIC, since="all")
        assert next(events).payload == b"0"
        found: list[object] = []
        waiting = threading.Thread(target=lambda: found.extend(events), daemon=True)
        waiting.start()
    waiting.join(30)
    assert not waiting.is_alive()
    assert found == list(events) == []
    events.close()
    for late in (events.ready, events.vector, client.status):
        with pytest.raises(UsageError, match="closed: connect again"):
            late()
