"""Who may come in as a client, how many, and what a node says to those it does not understand."""

import asyncio
import secrets
from pathlib import Path

import pytest
from msgspec import msgpack

from gate_lab import TOPIC, Lab, RawClient, run, until
from planaria.core.node import Subscribe
from planaria.network.client.messages import AskStatus, Failed, StatusIs, Stop, Tail, Tailing
from planaria.network.connection import Hello
from planaria.network.gate import gate, ring, session
from planaria.network.identity import found_cluster, issue
from planaria.network.link import BULK_BYTES_MAX
from planaria.network.tls import Credentials


def test_clients_are_bounded_and_the_next_is_told_to_go_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "CLIENTS_MAX", 2)

    async def connect(lab: Lab) -> None:
        one = await lab.client(0)
        await lab.client(0)
        await until(lambda: len(lab.gates[0].sessions) == 2)
        third = await lab.client(0)
        await until(lambda: third.reason)
        assert "serves 2 clients: connect to another" in third.reason
        one.close()
        await until(lambda: len(lab.gates[0].sessions) == 1)
        again = await lab.client(0)
        await again.ask(AskStatus, StatusIs)

    run(connect, 1)


def test_a_client_is_sent_less_ahead_than_a_node() -> None:
    """There may be a thousand of them."""

    async def connect(lab: Lab) -> None:
        client = await lab.client(0)
        await client.ask(AskStatus, StatusIs)
        (connection,) = lab.gates[0].sessions
        assert connection.link.bulk.bytes_max == gate.WINDOW_BYTES < BULK_BYTES_MAX

    run(connect, 1)


def test_a_client_is_no_link_and_may_have_the_id_of_a_node() -> None:
    async def connect(lab: Lab) -> None:
        links = dict(lab.hosts[0].links)
        client = await lab.client(0, lab.hosts[1].hello.id)
        await client.ask(AskStatus, StatusIs)
        assert lab.hosts[0].links == links
        client.close()
        await until(lambda: not lab.gates[0].sessions)
        assert lab.hosts[0].links == links

    run(connect, 2)


def test_a_certificate_must_name_the_role_that_its_owner_plays(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    found_cluster(keys, "demo")
    node = Credentials(issue(keys, "node", ("node", "supervise")))
    client = Credentials(issue(keys, "client", ("client",)))
    admin = Credentials(issue(keys, "admin", ("admin",)))

    async def connect(lab: Lab) -> None:
        good = await lab.client(0, client.identity.id, credentials=client)
        await good.ask(AskStatus, StatusIs)
        for shown in (node, admin):
            refused = await lab.client(0, shown.identity.id, credentials=shown)
            await refused.ends()
            assert "--role client" in refused.reason
        false = RawClient(client.identity.id, credentials=client)
        false.hello = Hello(false.hello.versions, false.hello.id, "planaria")  # as a node
        await false.connect(lab.hosts[0].hello.addresses[0])
        await until(lambda: false.reason)
        assert "--role node" in false.reason
        assert len(lab.gates[0].sessions) == 1
        assert lab.hosts[0].links == {}

    run(connect, 1, credentials=[node])


def test_an_end_that_is_neither_node_nor_client_is_refused() -> None:
    async def connect(lab: Lab) -> None:
        strange = RawClient(secrets.token_bytes(16))
        strange.hello = Hello(strange.hello.versions, strange.hello.id, "planaria", role="king")
        await strange.connect(lab.hosts[0].hello.addresses[0])
        await until(lambda: strange.reason)
        assert "node or client" in strange.reason

    run(connect, 1)


def test_what_a_node_does_not_understand_is_answered_if_it_names_its_request() -> None:
    async def connect(lab: Lab) -> None:
        client = await lab.client(0)
        for body in (
            msgpack.encode(["client.later_version", 77, "x"]),
            msgpack.encode(["client.tail", 78]),
            msgpack.encode({"a": 1}),
            b"\xc1",
        ):
            client.connection.send(body, AskStatus(0), bulk=False)
        await until(lambda: len(client.heard) == 2)
        refused = [it for it in client.heard if isinstance(it, Failed)]
        assert [(it.request, it.code) for it in refused] == [(77, "usage"), (78, "usage")]
        assert "client.later_version" in refused[0].reason
        assert lab.gates[0].malformed == 4
        assert (await client.ask(StatusIs, Failed, b"")).code == "usage", "an answer is no request"
        await client.ask(AskStatus, StatusIs)

    run(connect, 1)


def test_a_client_that_takes_no_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "REQUESTS_MAX", 5)

    async def connect(lab: Lab) -> None:
        client = await lab.client(0)
        (here,) = lab.gates[0].sessions.values()
        monkeypatch.setattr(here.connection, "send", lambda *_, **__: False)
        for _ in range(11):
            client.say(AskStatus)
        await until(lambda: client.reason)
        assert "requests unanswered" in client.reason

    run(connect, 1)


def test_a_silent_client_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SILENCE_SECONDS", 0.3)

    async def connect(lab: Lab) -> None:
        client = await lab.client(0)
        await until(lambda: client.reason)
        assert lab.gates[0].sessions == {}

    run(connect, 1)


def test_a_pattern_is_followed_with_topics_that_come_later_and_nothing_comes_twice() -> None:
    async def follow(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(1)
        await writer.publish(b"1", topic="weather/europe/rome")
        await writer.publish(b"unwanted", topic="news")
        request = await reader.tail("weather/#")
        tailing = await reader.answer_of(request, Tailing)
        assert tailing.topics == ["weather/europe/rome"]
        writer.next = 0
        later = await lab.client(2)
        await later.publish(b"2", topic="weather/asia")
        await until(lambda: len(reader.payloads(request)) == 2)
        assert reader.payloads(request, "weather/asia") == [b"2"]
        assert reader.payloads(request, "weather/europe/rome") == [b"1"]
        assert lab.member(1, "weather/asia")

    run(follow, 3)


def test_a_tail_of_what_is_no_pattern_is_refused() -> None:
    async def follow(lab: Lab) -> None:
        client = await lab.client(0)
        for pattern, word in [
            ("a/#/b", "last level"),
            ("", "at least one"),
            ("$SYS/x", "reserved"),
        ]:
            refused = await client.ask(Tail, Failed, pattern, {})
            assert refused.code == "usage"
            assert word in refused.reason
        lab.hosts[0].command(Subscribe(TOPIC))
        await asyncio.sleep(0)
        await client.tail()

    run(follow, 1)


def stop(client: RawClient, request: int) -> None:
    message = Stop(request)
    client.connection.send(session.CODEC.encode(message), message, bulk=False)


def test_a_topic_that_no_client_reads_is_left_but_for_its_first_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.3)
    monkeypatch.setattr(ring, "KEEPERS", 1)

    async def follow(lab: Lab) -> None:
        first, second, writer = [await lab.client(at) for at in range(3)]
        tails = [await first.tail(), await second.tail()]
        await writer.publish(b"kept", copies=2)
        await asyncio.sleep(0.6)
        assert lab.member(0)
        assert lab.member(1), "it is read"
        stop(first, tails[0])
        stop(second, tails[1])
        await until(lambda: TOPIC not in lab.nodes[1].peer.topics)
        await asyncio.sleep(0.6)
        assert lab.member(0), "somebody has to keep it"
        again = await second.tail()
        await until(lambda: second.payloads(again) == [b"kept"])

    run(follow, 3)


def test_a_pattern_that_no_client_reads_is_left_with_its_topics_but_not_what_others_want(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.5)
    monkeypatch.setattr(ring, "KEEPERS", 1)

    async def follow(lab: Lab) -> None:
        writer, reader, wild = await lab.client(0), await lab.client(1), await lab.client(1)
        for topic in ("a/one", "a/two", "a/named"):
            await writer.publish(b"1", topic=topic)
        lab.hosts[1].command(Subscribe("a/named"))
        request = await wild.tail("a/+")
        plain = await reader.tail("a/one")
        await until(lambda: all(lab.member(1, it) for it in ("a/one", "a/two", "a/named")))
        stop(wild, request)
        await until(lambda: "a/two" not in lab.nodes[1].peer.topics)
        assert lab.nodes[1].wildcards.patterns == {}
        assert lab.member(1, "a/one"), "another tail reads it"
        assert lab.member(1, "a/named"), "nobody joined it for a client"
        other = await lab.client(0)
        await other.publish(b"2", topic="a/one")
        await until(lambda: sorted(reader.payloads(plain)) == [b"1", b"2"])
        assert all(lab.member(0, it) for it in ("a/one", "a/two", "a/named"))

    run(follow, 2)


def test_what_the_nodes_own_application_wants_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "RELEASE_SECONDS", 0.2)
    monkeypatch.setattr(ring, "KEEPERS", 0)

    async def follow(lab: Lab) -> None:
        monkeypatch.setattr(lab.gates[0], "_keeps", lambda pattern: pattern == TOPIC)
        client = await lab.client(0)
        for pattern in (TOPIC, "other"):
            stop(client, await client.tail(pattern))
        await until(lambda: "other" not in lab.nodes[0].peer.topics)
        assert lab.member(0)

    run(follow, 1)
