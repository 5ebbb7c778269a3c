"""The client without `async`: the same promises, from a script's own thread."""

import asyncio
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

import planaria
from loop_lab import loop_in_thread
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.client import looping
from planaria.network.client.errors import Unreachable
from planaria.records.packing import UNSETTLED_BYTES_MAX
from planaria.records.record import PAYLOAD_BYTES_MAX
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


def test_a_script_publishes_without_waiting(gates: list[ReferenceGate]) -> None:
    gates[0].refuse_all = gates[1].refuse_all = ("full", "the disk is full")
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        large = bytes(PAYLOAD_BYTES_MAX // 2)
        room = UNSETTLED_BYTES_MAX // (len(large) + 1000)
        acks = [client.try_publish(TOPIC, large) for _ in range(room)]
        with pytest.raises(CapacityExceeded, match="slow down"):
            client.try_publish(TOPIC, large)
        with pytest.raises(TimeoutError):
            acks[0].result(timeout=0.1)
        assert not acks[0].done()
        gates[0].refuse_all = gates[1].refuse_all = None
        assert [ack.result().sequence for ack in acks] == list(range(len(acks)))
        acks.append(client.try_publish(TOPIC, b"last"))
    assert all(ack.done() for ack in acks)
    assert acks[-1].result().sequence == len(acks) - 1
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        gates[0].refuse_all = gates[1].refuse_all = ("full", "the disk is full")
        never = client.try_publish(TOPIC, b"never")
        client.close(flush=False)
    with pytest.raises(UsageError, match="closed"):
        never.result()


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
    assert "KeyboardInterrupt" in errors.splitlines()
    assert errors.count("Traceback") == 1


UNHEARD = """
import _thread, asyncio, threading
from planaria.network.client.looping import Loop
loop, done = Loop(), threading.Event()
async def work():
    await asyncio.sleep(20)
    done.set()
threading.Timer(0.2, _thread.interrupt_main).start()
try:
    loop.run(work())
except KeyboardInterrupt:
    print("too late" if done.is_set() else "interrupted")
loop.stop()
"""


def test_ctrl_c_that_wakes_nobody_is_noticed_all_the_same() -> None:
    """As when it comes between Python's last look for signals and the system call that waits."""
    asked = [sys.executable, "-c", UNHEARD]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize("begun", [False, True])
def test_whatever_interrupts_a_wait_leaves_the_loop_to_others(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C struck where the lock of a future was held, and the loop waited for that for ever."""
    loop = looping.Loop()
    give = loop.loop.call_soon_threadsafe

    def interrupted(callback: Callable[[], object]) -> None:
        monkeypatch.undo()
        if begun:
            give(callback)
        raise KeyboardInterrupt

    async def others() -> int:
        return len(asyncio.all_tasks()) - 1

    monkeypatch.setattr(loop.loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.run(asyncio.sleep(60))
    assert loop.run(others()) == 0
    loop.stop()


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


def test_a_timeout_takes_nothing(gates: list[ReferenceGate]) -> None:
    with (
        planaria.sync.connect(servers(gates), insecure=True) as client,
        client.subscribe(TOPIC) as events,
    ):
        events.ready()
        found, done = list[int](), threading.Event()

        def publish() -> None:
            for number in range(400):
                client.publish(TOPIC, b"%d" % number)
            done.set()

        publishing = threading.Thread(target=publish)
        publishing.start()
        waits = 0
        while len(found) < 400:
            try:
                found.append(int(events.next(timeout=0.0005).payload))
            except TimeoutError:
                waits += 1
                assert waits < 100_000, sorted({*range(400)} - {*found})
        publishing.join()
        assert found == list(range(400))
        assert waits


@pytest.mark.parametrize("timeout", [-5, -1, float("nan"), "a", b"1"])
def test_a_timeout_that_is_none(gates: list[ReferenceGate], timeout: Any) -> None:
    with (
        planaria.sync.connect(servers(gates), insecure=True) as client,
        client.subscribe(TOPIC, since="all") as events,
    ):
        waits: list[Any] = [events.ready, events.next]
        for wait in waits:
            with pytest.raises(UsageError, match=r"timeout .* give seconds, 0 or more"):
                wait(timeout=timeout)
        events.ready(timeout=float("inf"))
        with pytest.raises(UsageError, match="payloads of type int: give a list"):
            client.publish_many(TOPIC, cast(Any, 5))
        client.publish(TOPIC, b"0")
        assert events.next(timeout=10**400).payload == b"0"
        with pytest.raises(TimeoutError):
            events.next(timeout=0)


def test_threads_that_share_a_subscription_get_each_event_once(gates: list[ReferenceGate]) -> None:
    with (
        planaria.sync.connect(servers(gates), insecure=True) as client,
        client.subscribe(TOPIC) as events,
    ):
        events.ready()
        found = list[bytes]()
        threads = [
            threading.Thread(target=lambda: found.extend(it.payload for it in events))
            for _ in range(4)
        ]
        for one in threads:
            one.start()
        everything = [b"%d" % number for number in range(3_000)]
        client.publish_many(TOPIC, everything)
        while len(found) < len(everything):
            time.sleep(0.01)
        events.close()
        for one in threads:
            one.join()
        assert sorted(found, key=int) == everything


def test_what_one_topic_has_is_published_on_another(gates: list[ReferenceGate]) -> None:
    """The iterable is read in the thread that calls: the client's own would wait for itself."""
    with planaria.sync.connect(servers(gates), insecure=True) as client:
        client.publish_many(TOPIC, [b"0", b"1", b"2"])
        with client.subscribe(TOPIC, since="all") as events:
            some = (event.payload for event in itertools.islice(events, 3))
            ack = client.publish_many("copy", some)
        assert ack is not None
        assert ack.count == 3
        assert [event.payload for event in client.read("copy").events] == [b"0", b"1", b"2"]


def test_what_a_source_gave_before_it_failed_is_published(gates: list[ReferenceGate]) -> None:
    def failing() -> Iterator[bytes]:
        yield b"0"
        raise ValueError("a bad line")

    with planaria.sync.connect(servers(gates), insecure=True) as client:
        with pytest.raises(ValueError, match="a bad line"):
            client.publish_many(TOPIC, failing())
        assert [event.payload for event in client.read(TOPIC).events] == [b"0"]


def test_a_call_from_the_clients_own_thread_does_not_wait_for_itself(
    gates: list[ReferenceGate],
) -> None:
    with planaria.sync.connect(servers(gates), insecure=True) as client:

        async def call() -> object:
            return client.topics()

        with pytest.raises(UsageError, match="own thread"):
            client._loop.run(call())


def test_a_notebook_needs_no_with(gates: list[ReferenceGate]) -> None:
    client = planaria.sync.connect(servers(gates), insecure=True)
    try:
        assert client.publish(TOPIC, b"0").sequence == 0
    finally:
        client.close()
    assert not [it for it in threading.enumerate() if it.name == "planaria"]
