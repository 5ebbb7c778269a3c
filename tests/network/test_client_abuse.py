"""What applications do to a client that its authors did not: nothing is lost, nothing hangs."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from client_lab import client_of, numbers, payloads, serve
from planaria.core.errors import UsageError
from planaria.network.client.client import connect
from planaria.network.client.errors import Unreachable
from planaria.network.client.events import Event
from planaria.network.client.messages import Tail
from planaria.network.client.subscription import Subscription
from planaria.records.record import Draft
from reference_gate import ReferenceGate

TOPIC = "weather/europe"


def test_tasks_that_share_a_subscription_lose_nothing() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client, client.subscribe(TOPIC) as events:
            await events.ready()
            found, batches = list[bytes](), list[bytes]()

            async def one_by_one() -> None:
                async for event in events:
                    found.append(event.payload)
                    await asyncio.sleep(0)

            async def in_batches() -> None:
                async for batch in events.batches():
                    assert batch
                    batches.extend(event.payload for event in batch)
                    await asyncio.sleep(0)

            async with asyncio.TaskGroup() as tasks:
                for work in (one_by_one, in_batches, one_by_one, in_batches):
                    tasks.create_task(work())
                for start in range(0, 2_000, 20):
                    await client.publish_many(TOPIC, numbers(20, start))
                while len(found) + len(batches) < 2_000:
                    await asyncio.sleep(0.01)
                await events.close()
            assert sorted([*found, *batches], key=int) == numbers(2_000)
            assert found
            assert batches

    serve(test)


@pytest.mark.parametrize("copies", [10**30, 65, 0, 2.5, "2", None])
def test_what_cannot_be_asked_for_harms_nothing_else(copies: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match="copies: "):
                await client.publish(TOPIC, b"0", copies=copies)
            assert (await client.publish(TOPIC, b"1")).sequence == 0

    serve(test)


@pytest.mark.parametrize("limit", [10**30, 0, -1, 2.5, "2"])
def test_a_limit_that_is_none(limit: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=r"limit|cannot be sent"):
                await client.read(TOPIC, limit=limit)
            await client.publish(TOPIC, b"1")
            assert len((await client.read(TOPIC)).events) == 1

    serve(test)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"headers": {"$token": "abc"}}, "begin with"),
        ({"headers": {5: "a"}}, "its name is text, not int"),
        ({"headers": {"a": 5}}, "bytes or text, not int"),
        ({"headers": {"\udcff": "a"}}, "is no text"),
        ({"headers": {"a": "\udcff"}}, "is no text"),
        ({"key": "\udcff"}, "is no text"),
    ],
)
def test_headers_and_keys_that_are_none(options: dict[str, Any], complaint: str) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=complaint):
                await client.publish(TOPIC, b"0", **options)
            with pytest.raises(UsageError, match=complaint):
                client.try_publish(TOPIC, b"0", **options)

    serve(test)


@pytest.mark.parametrize("overlay", [5, 1.5, ["ring"], b"ring", "rings"])
def test_an_overlay_that_is_none(overlay: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=r"unknown overlay .*one of ring, gossip"):
                await client.publish(TOPIC, b"0", overlay=overlay)
            with pytest.raises(UsageError, match=r"unknown overlay .*one of ring, gossip"):
                client.subscribe(TOPIC, overlay=overlay)

    serve(test)


@pytest.mark.parametrize("given", ["no", None, 1])
def test_yes_and_no_are_not_words(given: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=r"strict .*: True or False"):
                await client.publish(TOPIC, b"0", strict=given)
            for name in ("compacted", "notices"):
                with pytest.raises(UsageError, match=rf"{name} .*: True or False"):
                    client.subscribe(TOPIC, **{name: given})

    serve(test)


@pytest.mark.parametrize("payloads", [5, None, "text", b"bytes", Draft(b"one")])
def test_many_are_several(payloads: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=r"payloads of type .* give a list"):
                await client.publish_many(TOPIC, payloads)
        assert not gates[0].memory.payloads(TOPIC)

    serve(test)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"servers": 5}, "servers 5: text such as HOST:PORT"),
        ({"servers": b"localhost"}, "servers b'localhost': text such as HOST:PORT"),
        ({"servers": ["localhost", 5]}, "servers .* text such as HOST:PORT"),
        *(
            ({"patience": it}, "patience .* give seconds, 0 or more")
            for it in ("nope", None, -1, float("nan"))
        ),
        ({"context": 5}, "context 5: give text, not int"),
        ({"credentials": 5}, "credentials 5: give text, not int"),
        ({"name": 5}, "name 5: give text, not int"),
        *(
            ({name: "no"}, f"{name} 'no': True or False")
            for name in ("insecure", "verify", "oneshot")
        ),
    ],
)
def test_whom_to_talk_to_and_how_is_checked_at_once(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        connect(**{"servers": "localhost:1", "insecure": True, **options})


def test_patience_may_be_endless() -> None:
    for patience in (0, float("inf"), 10**400):
        assert connect("localhost:1", insecure=True, patience=patience).access.patience >= 0


@pytest.mark.parametrize("topic", [5, b"news", None, ["news"], {}])
def test_a_topic_is_text(topic: Any) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            uses: list[Any] = [client.subscribe, client.try_publish]
            for use in uses:
                with pytest.raises(UsageError, match="a topic is text"):
                    use(topic, b"0")

    serve(test)


def test_a_draft_has_no_header_of_planarias_own() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match="begin with"):
                await client.publish_many(TOPIC, [Draft(b"0", None, (("$token", b"a"),))])

    serve(test)


def test_whoever_was_not_entered_is_told_so() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        client = client_of(*gates)
        for ask in (
            client.publish(TOPIC, b"0"),
            client.topics(),
            client.publish_many(TOPIC, [b""]),
        ):
            with pytest.raises(UsageError, match="async with"):
                await ask
        async with client:
            assert (await client.publish(TOPIC, b"0")).sequence == 0
            with pytest.raises(UsageError, match="entered already"):
                await client.__aenter__()
        with pytest.raises(UsageError, match="closed"):
            await client.__aenter__()

    serve(test)


def failing(count: int) -> Iterator[bytes]:
    yield from numbers(count)
    raise ValueError("a bad line")


@pytest.mark.parametrize("count", [0, 1, 300])
def test_what_a_source_gave_before_it_failed_is_published(count: int) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(ValueError, match="a bad line"):
                await client.publish_many(TOPIC, failing(count))
            found = await client.read(TOPIC)
            assert [event.payload for event in found.events] == numbers(count)

    serve(test)


def test_a_client_whose_nodes_were_away_goes_on_when_asked_again() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gate = gates[0]
        async with client_of(gate, patience=0.3) as client, client.subscribe(TOPIC) as events:
            await events.ready()
            await client.publish(TOPIC, b"0")
            assert await payloads(events, 1) == [b"0"]
            await gate.stop()
            with pytest.raises(Unreachable):
                await client.publish(TOPIC, b"lost")
            with pytest.raises(Unreachable):
                await anext(events)
            with pytest.raises(Unreachable):  # it looked once more
                await anext(events)
            await gate.start()
            await client.publish(TOPIC, b"1")
            assert await payloads(events, 1) == [b"1"]
            assert await client.topics() == [TOPIC]

    serve(test, gates=1)


def test_a_subscription_that_found_no_node_begins_when_asked_again() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gate = gates[0]
        async with client_of(gate, patience=0.3) as client:
            await client.publish(TOPIC, b"0")
            await gate.stop()
            events = client.subscribe(TOPIC, since="all")
            for _ in range(2):
                with pytest.raises(Unreachable):
                    await anext(events)
            await gate.start()
            assert await payloads(events, 1) == [b"0"]

    serve(test, gates=1)


def test_a_client_that_was_refused_for_long_is_let_in_when_it_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        gate = gates[0]
        async with client_of(gate, patience=0.3) as client:
            await client.publish(TOPIC, b"0")
            with monkeypatch.context() as patch:
                patch.setattr(gate, "opened", lambda it: it.refuse("not now"))
                gate.hang_up()
                with pytest.raises(Unreachable, match="not now"):
                    await client.publish(TOPIC, b"lost")
            assert (await client.publish(TOPIC, b"1")).sequence == 0  # in a new incarnation

    serve(test, gates=1)


def test_a_node_that_is_believed_sends_only_what_satisfies_a_condition() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with (
            client_of(*gates) as client,
            client.subscribe(TOPIC, since="all", where="carrier = 'UA'") as events,
        ):
            await events.ready()
            (asked,) = [it for it in gates[0].asked_for if isinstance(it, Tail)]
            assert not asked.whole

    serve(test, gates=1)


def test_a_close_that_is_cancelled_leaves_no_connection_behind() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        client = client_of(*gates)
        await client.__aenter__()
        await client.subscribe(TOPIC).ready()
        for gate in gates:
            gate.frozen = True
        client.try_publish(TOPIC, b"0")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.close(), 0.2)
        assert client.requests.channel.connection is None
        assert not client.requests.channel.begun
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in rest if "Channel._keep" in repr(task)]

    serve(test)


def test_a_subscription_closed_while_it_opens_cancels_nobody() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            events: Subscription[Event] = client.subscribe(TOPIC)

            async def read() -> str:
                async for _ in events:
                    pass
                return "the end"

            reading, ready = asyncio.create_task(read()), asyncio.create_task(events.ready())
            await asyncio.sleep(0)
            await events.close()
            assert await reading == "the end"
            with pytest.raises(UsageError, match="closed"):
                await ready
            with pytest.raises(UsageError, match="closed"):
                await events.ready()

    serve(test)


@pytest.mark.parametrize("where", ["carrier = 'UA'", "carrier = 'DL'"])
def test_a_condition_is_asked_of_what_is_retained(where: str) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish(TOPIC, b'{"carrier": "UA"}')
            await client.publish(TOPIC, b'{"carrier": "DL"}')
            async with client.subscribe(TOPIC, since="last", where=where) as events:
                await events.ready()
                await client.publish(TOPIC, b'{"carrier": "UA", "delay": 1}')
                await client.publish(TOPIC, b'{"carrier": "DL", "delay": 1}')
                kept = [b'{"carrier": "DL"}'] if "DL" in where else []
                new = b'{"carrier": "%s", "delay": 1}' % where[-3:-1].encode()
                assert await payloads(events, len(kept) + 1) == [*kept, new]

    serve(test)


def test_a_vector_is_before_the_retained_one_until_that_is_taken() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(3))
            async with client.subscribe(TOPIC, since="last") as events:
                await events.ready()
                before = events.vector()
                assert await payloads(events, 1) == [b"2"]
                after = events.vector()
            await client.publish(TOPIC, b"3")
            async with client.subscribe(TOPIC, since=before) as events:
                assert await payloads(events, 2) == [b"2", b"3"]
            async with client.subscribe(TOPIC, since=after) as events:
                assert await payloads(events, 1) == [b"3"]

    serve(test)


def test_reading_shows_no_header_of_planarias_own() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=True) as client:
            await client.publish(TOPIC, b"0", headers={"unit": "C"})
            found = await client.read(TOPIC)
            assert [event.headers for event in found.events] == [{"unit": "C"}]

    serve(test)
