"""Clients against a stupid reference server: what they promise when all is well."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

import planaria
from client_lab import client_of, first, in_order, numbers, payloads, serve
from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.client import messages as m
from planaria.network.client.client import Client, connect
from planaria.network.client.errors import Unreachable
from planaria.network.identity import found_cluster, issue
from planaria.network.tls import Credentials
from planaria.records.packing import PACKED_BYTES, UNSETTLED_BYTES_MAX
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft
from reference_gate import Memory, ReferenceGate

TOPIC = "weather/europe"


def test_an_event_says_what_was_published_and_the_ack_where() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with (
            client_of(*gates) as client,
            client.subscribe("weather/#", since="all") as events,
        ):
            headers: dict[str, str | bytes] = {"unit": "C", "raw": b"x"}
            ack = await client.publish(
                TOPIC, "mild", key=b"oslo", headers=headers, timestamp=1_700_000_000_123
            )
            event = await anext(events)
            said = (event.topic, event.payload, event.key, event.headers, event.timestamp)
            decoded = {"unit": "C", "raw": "x"}
            assert said == (TOPIC, b"mild", b"oslo", decoded, 1_700_000_000_123)
            assert (event.id, event.sequence, event.late) == (ack.id, 0, False)
            assert (event.publisher, ack.copies, ack.members) == (client.publisher, 2, 3)

    serve(test)


def test_publications_of_one_turn_share_records_and_keep_their_order() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            acks = await asyncio.gather(*(client.publish(TOPIC, it) for it in numbers(300)))
            assert [ack.sequence for ack in acks] == list(range(300))
            puts = [it for it in gates[0].asked_for if isinstance(it, m.Put)]
            assert len(puts) < 10
            assert gates[0].memory.payloads(TOPIC) == numbers(300)

    serve(test)


def test_a_batch_is_published_in_order_and_acknowledged_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            ack = await client.publish_many(TOPIC, iter(numbers(1000)))
            assert ack is not None
            assert (ack.sequence, ack.count, ack.copies) == (0, 1000, 2)
            assert gates[0].memory.payloads(TOPIC) == numbers(1000)
            assert await client.publish_many(TOPIC, []) is None
            more = await client.publish_many(TOPIC, [Draft(b"x", b"key")])
            assert more is not None
            assert (more.sequence, more.count) == (1000, 1)

    serve(test)


@pytest.mark.parametrize("oneshot", [False, True])
def test_wishes_reach_the_node(oneshot: bool) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=oneshot) as client:
            await client.publish(TOPIC, b"a", copies=1, durability="memory")
            await client.publish(TOPIC, b"b", copies=5, strict=True)
            puts = [it for it in gates[0].asked_for if isinstance(it, m.Put | m.PutNew)]
            wishes = [(it.copies, it.strict, it.durable) for it in puts]
            assert wishes == [(1, False, False), (5, True, True)]
            with pytest.raises(UsageError, match="copies"):
                await client.publish(TOPIC, b"c", copies=0)
            with pytest.raises(UsageError, match="disk or memory"):
                await client.publish(TOPIC, b"c", durability="tape")

    serve(test)


def test_what_was_published_before_closing_is_stored() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            acks = [client.try_publish(TOPIC, it) for it in numbers(200)]
        assert gates[0].memory.payloads(TOPIC) == numbers(200)
        assert [ack.result().sequence for ack in acks] == list(range(200))
        with pytest.raises(UsageError, match="closed"):
            client.try_publish(TOPIC, b"x")

    serve(test)


def test_since_decides_where_a_subscription_begins() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(5))
            now = client.subscribe("weather/#", since="now")
            last = client.subscribe("weather/#", since="last")
            everything = client.subscribe("weather/#", since="all")
            future = client.subscribe("weather/#", since=datetime(2090, 1, 1, tzinfo=UTC))
            past = client.subscribe("weather/#", since=1_000_000_000)
            for events in (now, last, everything, future, past):
                await events.ready()
            await client.publish(TOPIC, b"new")
            await client.publish("weather/asia", b"later topic")
            assert await payloads(now, 2) == [b"new", b"later topic"]
            assert await payloads(last, 3) == [b"4", b"new", b"later topic"]
            whole = [*numbers(5), b"new", b"later topic"]
            assert await payloads(everything, 7) == whole
            assert await payloads(past, 7) == whole
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(future), 0.3)
            with pytest.raises(UsageError, match="all, now, last"):
                client.subscribe("a", since="yesterday")
            with pytest.raises(UsageError, match=r"await ready\(\) first"):
                client.subscribe("a", since="now").vector()

    serve(test)


def test_a_subscription_goes_on_from_the_vector_after_any_event() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client, client_of(*gates) as other:
            for at in range(4):
                await client.publish_many(TOPIC, numbers(3, 3 * at))
                await other.publish_many(TOPIC, numbers(3, 100 + 3 * at))
            await client.publish_many("weather/asia", numbers(2, 200))
            whole = [event async for event in first(client.subscribe("#", since="all"), 26)]
            for taken in range(26):
                begun = client.subscribe("#", since="all")
                before = [await anext(begun) for _ in range(taken)]
                resumed = client.subscribe("#", since=begun.vector())
                rest = [await anext(resumed) for _ in range(26 - taken)]
                await begun.close()
                await resumed.close()
                assert sorted(it.id for it in [*before, *rest]) == sorted(it.id for it in whole)
                assert in_order([*before, *rest])

    serve(test)


def test_overlapping_patterns_deliver_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            for topic in ("a/b", "a/c", "c/b"):
                await client.publish(topic, topic.encode())
            patterns = ("a/+", "+/b", "a/b", "a/*")
            async with client.subscribe(*patterns, since="all") as events:
                assert list(events.patterns) == ["a/+", "+/b"]
                assert sorted(await payloads(events, 3)) == [b"a/b", b"a/c", b"c/b"]
                await client.publish("a/b", b"end")
                assert await payloads(events, 1) == [b"end"]

    serve(test)


def test_a_condition_is_judged_by_the_node_and_checked_here() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, [b'{"delay": %d}' % it for it in range(0, 100, 10)])
            async with client.subscribe(TOPIC, since="all", where="delay > 60") as events:
                await client.publish(TOPIC, b'{"delay": 99}')
                found = await payloads(events, 4)
                assert found == [b'{"delay": %d}' % it for it in (70, 80, 90, 99)]
            with pytest.raises(UsageError):
                client.subscribe(TOPIC, where="delay >")

    serve(test)


def test_batches_come_whole_and_end_with_the_subscription() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(500))
            events, found, sizes = client.subscribe(TOPIC, since="all"), list[bytes](), list[int]()
            async for batch in events.batches():
                found += [event.payload for event in batch]
                sizes.append(len(batch))
                if len(found) == 500:
                    await events.close()
            assert found == numbers(500)
            assert min(sizes) > 0
            assert max(sizes) > 10
            assert [event async for event in events] == []

    serve(test)


def test_a_slow_reader_costs_a_cursor_and_delays_nobody() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(gates[0]) as client:
            slow, fast = (client.subscribe(TOPIC, since="all") for _ in range(2))
            await slow.ready()
            await fast.ready()
            large = [b"%d" % at + bytes(100_000) for at in range(60)]
            await client.publish_many(TOPIC, large)
            assert await payloads(fast, 60) == large
            tails = [tail.connection.link.bulk for tail in gates[0].tails.values()]
            assert max(window.bytes for window in tails) > 1 << 20
            assert all(window.bytes <= window.bytes_max for window in tails)
            assert await payloads(slow, 60) == large

    serve(test)


def test_asking_for_topics_vectors_ranges_and_status() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            await client.publish_many("a/b", numbers(10))
            await client.publish("c", b"x")
            assert await client.topics() == ["a/b", "c"]
            assert await client.topics("a/*") == ["a/b"]
            end = await client.vector("a/b")
            assert list(end.values()) == [10]
            first = await client.read("a/b", limit=4)
            assert [event.payload for event in first.events] == numbers(4)
            rest = await client.read("a/b", first.vector, end)
            assert [event.payload for event in rest.events] == numbers(6, 4)
            assert (rest.vector, rest.lacks) == (end, ())
            await client.publish_many("long", numbers(2000))  # more than the server says at a time
            assert [it.payload for it in (await client.read("long")).events] == numbers(2000)
            assert len((await client.read("long", limit=1500)).events) == 1500
            assert (await client.status())["contacts"] == []

    serve(test)


def test_mistakes_of_the_caller_are_told_at_once() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            with pytest.raises(UsageError, match=r"payload of .* split it"):
                await client.publish(TOPIC, bytes(PAYLOAD_BYTES_MAX + 1))
            with pytest.raises(UsageError, match="wildcard"):
                await client.publish("a/#", b"x")
            with pytest.raises(UsageError, match="bytes or text, not int"):
                await client.publish(TOPIC, 7)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="at least one topic"):
                client.subscribe()
            await client.publish(TOPIC, bytes(PAYLOAD_BYTES_MAX - 100))
            gates[0].refusals = [("usage", "you may not publish here")]
            with pytest.raises(UsageError, match="you may not publish here"):
                await client.publish(TOPIC, b"x")
            again = await client.publish(TOPIC, b"y")
            assert again.sequence == 0
            assert again.incarnation != client.incarnation

    serve(test)


def test_publish_waits_while_its_node_is_full_and_try_publish_says_so() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            gates[0].refuse_all = ("full", "the disk is full")
            large = bytes(PAYLOAD_BYTES_MAX // 2)
            room = UNSETTLED_BYTES_MAX // (len(large) + 1000)
            acks = [client.try_publish(TOPIC, large) for _ in range(room)]
            with pytest.raises(CapacityExceeded, match="slow down"):
                client.try_publish(TOPIC, large)
            waiting = asyncio.create_task(client.publish(TOPIC, large))
            await asyncio.sleep(0.5)
            assert not waiting.done()
            gates[0].refuse_all = None
            assert (await waiting).sequence == len(acks)
            assert [ack.sequence for ack in await asyncio.gather(*acks)] == list(range(len(acks)))
            stored = [number for _, _, number, _ in gates[0].memory.rows]
            assert sorted(stored) == list(range(len(acks) + 1))

    serve(test)


def test_what_a_full_node_refused_is_stored_in_the_order_of_publishing() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates) as client:
            gates[0].refusals = [("full", "the disk is full")] * 3
            full = bytes(PACKED_BYTES)  # of a record: none waits for others
            await asyncio.gather(*(client.publish(TOPIC, full) for _ in range(3)))
            assert [number for _, _, number, _ in gates[0].memory.rows] == [0, 1, 2]

    serve(test)


def test_an_unreachable_node_is_named_with_the_reason() -> None:
    async def main() -> None:
        with pytest.raises(Unreachable) as caught:
            async with connect("127.0.0.1:1,localhost:2", insecure=True):
                pass
        said = str(caught.value)
        assert "127.0.0.1:1: Connection refused" in said
        assert "localhost:2: " in said
        assert "\n" not in said
        assert isinstance(caught.value, planaria.PlanariaError)
        with pytest.raises(UsageError, match="planaria keys issue"):
            connect("127.0.0.1:1")
        with pytest.raises(UsageError, match="HOST:PORT"):
            connect("127.0.0.1:x", insecure=True)

    asyncio.run(main())


def test_a_node_of_another_cluster_says_so() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        client = client_of(gates[0])
        hello = client.access.hello
        other = type(hello)(hello.versions, hello.id, "production", (), "client")
        with pytest.raises(Unreachable, match="cluster 'planaria'"):
            async with Client(client.servers, client.access._replace(hello=other)):
                pass

    serve(test)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clusters, each with a node and a client."""
    made = []
    for _ in range(2):
        directory = tmp_path_factory.mktemp("keys") / "authority"
        found_cluster(directory, "planaria")
        issue(directory, "node")
        issue(directory, "client", ("client",))
        made.append(directory)
    return made


def test_clients_with_certificates_are_who_these_say(clusters: list[Path]) -> None:
    async def main() -> None:
        gate = ReferenceGate(Memory(), Credentials(clusters[0] / "node"))
        try:
            address = await gate.start()
            mine = clusters[0] / "client"
            async with connect(address, credentials=mine) as client:
                assert client.publisher == Credentials(mine).identity.handle
                async with client.subscribe(TOPIC, since="all") as events:
                    await client.publish(TOPIC, b"secret")
                    assert await payloads(events, 1) == [b"secret"]
            with pytest.raises(Unreachable, match=r"certificate.*keys issue"):
                async with connect(address, credentials=clusters[1] / "client"):
                    pass
            with pytest.raises(Unreachable, match="wants TLS"):
                async with connect(address, insecure=True):
                    pass
            with pytest.raises(UsageError, match="names this client"):
                connect(address, credentials=mine, name="other")
            with pytest.raises(UsageError, match="has not the role 'client'"):
                connect(address, credentials=clusters[0] / "node")
        finally:
            await gate.stop()

    asyncio.run(main())


def test_a_client_with_tls_says_that_a_plain_node_speaks_none(clusters: list[Path]) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        with pytest.raises(Unreachable, match="TLS"):
            async with connect(gates[0].address, credentials=clusters[0] / "client"):
                pass

    serve(test)


def test_a_name_makes_the_publisher_the_same_at_every_start() -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        one, two, other = (client_of(gates[0], name=name) for name in ("a", "a", None))
        assert one.publisher == two.publisher != other.publisher
        assert one.incarnation != two.incarnation

    serve(test)
