"""Clients publish through any node: held by as many members as they want, on disk, and once."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gate_lab import INTERVAL, TOPIC, Lab, RawClient, run, until, void
from planaria.core.errors import CapacityExceeded
from planaria.core.node import Subscribe
from planaria.network.client.messages import Failed, Put, PutNew, Stored
from planaria.network.gate import numbering, publishing, session
from planaria.protocols.skipring import deposits, history
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft, Record
from planaria.records.store import Store


def test_what_goes_through_a_node_without_the_topic_is_held_by_two_members_on_disk(
    tmp_path: Path,
) -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(3)
        stored = await client.publish(b"one", b"two", copies=2)
        assert (stored.copies, stored.members) == (2, 3)
        assert (stored.publisher, stored.incarnation) == client.stream
        assert (stored.first, stored.count) == (0, 2)
        assert sum(len(lab.store(at)) > 0 for at in range(3)) >= 2
        for at in range(3):
            await lab.gets(at, [b"one", b"two"])
        assert TOPIC not in lab.nodes[3].peer.topics, "its node needs no copy of the topic"

    run(publish, 4, 3, disk=tmp_path)


def test_what_goes_through_a_member_reaches_all_and_says_who_holds_it() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(1)
        stored = await client.publish(b"one", copies=3)
        assert (stored.copies, stored.members) == (3, 3)
        for at in range(3):
            await lab.gets(at, [b"one"])

    run(publish, 3, 3)


def test_fewer_members_than_copies_are_told_and_strict_waits_for_more() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(1)
        stored = await client.publish(b"one", copies=2)
        assert (stored.copies, stored.members) == (1, 1)
        request = client.say(Put, TOPIC, client.seal(b"two").data, copies=2, strict=True)
        await until(lambda: b"two" in lab.delivered(0))
        await asyncio.sleep(5 * INTERVAL)
        assert client.answers(request) == []
        lab.hosts[2].command(Subscribe(TOPIC))
        stored = await client.answer(request, Stored)
        assert (stored.copies, stored.members) == (2, 2)

    run(publish, 3, 1)


def test_a_topic_that_nobody_has_is_joined_by_the_node_of_its_first_publisher() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(2)
        stored = await client.publish(b"first", topic="fresh")
        assert (stored.copies, stored.members) == (1, 1)
        assert lab.member(2, "fresh")
        assert len(lab.store(2, "fresh")) == 1

    run(publish, 3)


def test_a_record_that_is_sent_again_through_another_node_is_published_once() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        record = client.seal(b"once")
        first = await client.ask(Put, Stored, TOPIC, record.data)
        client.close()
        again = await lab.client(3, client.hello.id)
        repeated = await again.ask(Put, Stored, TOPIC, record.data)
        assert (first.first, first.incarnation) == (repeated.first, repeated.incarnation)
        assert repeated.copies == 2
        await again.publish(b"other", copies=3)  # of another incarnation, at all members
        for at in range(3):
            await lab.gets(at, [b"once", b"other"])

    run(publish, 4, 3)


def drafts(*payloads: bytes) -> list[Draft]:
    return [Draft(payload) for payload in payloads]


def test_one_shot_clients_share_their_nodes_stream_and_a_token_is_numbered_once() -> None:
    async def publish(lab: Lab) -> None:
        one, two = await lab.client(2), await lab.client(2)
        token = secrets.token_bytes(16)
        first = await one.ask(PutNew, Stored, TOPIC, token, drafts(b"a", b"b"))
        second = await two.ask(PutNew, Stored, TOPIC, secrets.token_bytes(16), drafts(b"c"))
        again = await two.ask(PutNew, Stored, TOPIC, token, drafts(b"a", b"b"))
        assert first.publisher == lab.nodes[2].id
        assert (first.first, first.count, second.first, again.first) == (0, 2, 2, 0)
        assert first.incarnation == second.incarnation == again.incarnation
        await until(lambda: lab.delivered(1) == [b"a", b"b", b"c"])
        assert TOPIC not in lab.nodes[2].peer.topics

    run(publish, 3, 2)


def test_tokens_are_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "TOKENS_MAX", 2)

    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        for _ in range(2):
            await client.ask(PutNew, Stored, TOPIC, secrets.token_bytes(16), drafts(b"a"))
        refused = await client.ask(PutNew, Failed, TOPIC, secrets.token_bytes(16), drafts(b"a"))
        assert refused.code == "full"
        assert "ten minutes" in refused.reason
        monkeypatch.setattr(numbering, "TOKEN_SECONDS", -1.0)
        await asyncio.sleep(2 * INTERVAL)
        await client.ask(PutNew, Stored, TOPIC, secrets.token_bytes(16), drafts(b"b"))

    run(publish, 1, 1)


class Full:
    """Stores that refuse everything while they are full."""

    def __init__(self, lab: Lab, members: Sequence[int]) -> None:
        self.full = True
        for at in members:
            self._wrap(lab.store(at))

    def _wrap(self, store: Store) -> None:
        admit: Callable[[Sequence[Record]], None] = store._admit

        def refuse(records: Sequence[Record]) -> None:
            if self.full:
                raise CapacityExceeded("no room")
            admit(records)

        store._admit = refuse  # type: ignore[method-assign]


def test_one_full_disk_stops_nobody_while_others_supply_the_copies() -> None:
    async def publish(lab: Lab) -> None:
        Full(lab, [1])
        client = await lab.client(1)
        stored = await client.publish(b"one", copies=2)
        assert (stored.copies, stored.members) == (2, 3)
        assert [len(lab.store(at)) for at in range(3)] == [1, 0, 1]

    run(publish, 3, 3)


@pytest.mark.parametrize("through", [0, 2])
def test_full_disks_are_told_to_the_publisher_and_all_goes_on_with_room(through: int) -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(through)
        await client.publish(b"before", copies=2)
        disks = Full(lab, [0, 1])
        record = client.seal(b"late")
        refused = await client.ask(Put, Failed, TOPIC, record.data)
        assert refused.code == "full"
        assert "0 of 2 copies" in refused.reason
        disks.full = False
        assert (await client.ask(Put, Stored, TOPIC, record.data)).copies == 2
        for at in range(2):
            await lab.gets(at, [b"before", b"late"])

    run(publish, 3, 2)


def test_nothing_is_numbered_after_a_record_that_nobody_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deposits, "ANSWER_SECONDS", 0.2)

    async def publish(lab: Lab) -> None:
        client = await lab.client(2)
        token, other = secrets.token_bytes(16), secrets.token_bytes(16)
        disks = Full(lab, [0, 1])
        assert (await client.ask(PutNew, Failed, TOPIC, token, drafts(b"a"))).code == "full"
        assert (await client.ask(PutNew, Failed, TOPIC, other, drafts(b"b"))).code == "full"
        disks.full = False
        await until(lambda: lab.delivered(0) == [b"a"])  # it is offered on, for it has a number
        again = await client.ask(PutNew, Stored, TOPIC, token, drafts(b"a"))
        later = await client.ask(PutNew, Stored, TOPIC, other, drafts(b"b"))
        assert (again.first, again.copies, later.first) == (0, 2, 1)
        await until(lambda: lab.delivered(1) == [b"a", b"b"])
        assert lab.delivered(0) == [b"a", b"b"]

    run(publish, 3, 2)


def test_a_token_that_is_repeated_is_on_the_way_once() -> None:
    async def publish(lab: Lab) -> None:
        one, two = await lab.client(2), await lab.client(2)
        token, gate = secrets.token_bytes(16), lab.gates[2]
        disks = Full(lab, [0, 1])
        for client in (one, two, one):
            assert (await client.ask(PutNew, Failed, TOPIC, token, drafts(b"a"))).code == "full"
        assert len(gate.publishing) == 1
        disks.full = False
        assert (await two.ask(PutNew, Stored, TOPIC, token, drafts(b"a"))).first == 0
        await until(lambda: not len(gate.publishing))
        for client in (one, two):
            client.say(PutNew, TOPIC, b"b" * 16, drafts(b"b"), copies=3, strict=True)
        await until(lambda: len(gate.publishing) == 2)
        one.close()
        two.close()
        await until(lambda: not gate.sessions)
        assert len(gate.publishing) == 1, "it is offered on, for it has a number"

    run(publish, 3, 2)


def test_a_member_that_dies_is_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deposits, "ANSWER_SECONDS", 0.3)

    async def publish(lab: Lab) -> None:
        client = await lab.client(4)
        deaf = lab.hosts[1]
        monkeypatch.setattr(deaf, "received", lambda link, _, task: link.finish(task))
        for number in range(6):  # members are asked in any order
            stored = await client.publish(b"%d" % number, copies=3)
            assert stored.copies == 3
        for at in (0, 2, 3):
            await lab.gets(at, [b"%d" % number for number in range(6)])

    run(publish, 5, 4)


def test_nothing_is_acknowledged_before_it_is_on_disk_unless_memory_is_enough() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        commits: list[Callable[[Exception | None], object]] = []
        lab.hosts[0]._commit = commits.append
        durable = client.say(Put, TOPIC, client.seal(b"disk").data, copies=1)
        memory = await client.publish(b"memory", copies=1, durable=False)
        assert memory.copies == 1
        await until(lambda: commits)
        assert client.answers(durable) == []
        while commits:
            commits.pop(0)(None)
            await asyncio.sleep(0.02)
        assert (await client.answer(durable, Stored)).copies == 1

    run(publish, 1, 1)


def test_a_commit_that_fails_is_no_copy_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deposits, "ANSWER_SECONDS", 0.2)

    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        commits: list[Callable[[Exception | None], object]] = []
        lab.hosts[0]._commit = commits.append
        request = client.say(Put, TOPIC, client.seal(b"disk").data, copies=1)
        await until(lambda: commits)
        while commits:
            commits.pop(0)(OSError("disk full"))
        assert client.answers(request) == []
        lab.hosts[0]._commit = lambda done: void(done(None))
        assert (await client.answer(request, Stored)).copies == 1
        assert lab.delivered(0) == [b"disk"]

    run(publish, 1, 1)


def test_a_payload_of_a_mebibyte_travels_and_a_larger_one_is_one_clear_line() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(2)
        largest = b"x" * PAYLOAD_BYTES_MAX
        assert len(largest) == 1 << 20
        assert (await client.publish(largest, copies=2)).copies == 2
        tail = await client.tail()
        await until(lambda: client.payloads(tail) == [largest])
        refused = await client.ask(
            PutNew, Failed, TOPIC, secrets.token_bytes(16), drafts(largest + b"x")
        )
        assert refused.code == "usage"
        assert f"payload of {len(largest) + 1} bytes: at most {len(largest)}" in refused.reason

    run(publish, 3, 2)


def test_what_cannot_be_published_is_refused_with_a_line() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        other = RawClient(secrets.token_bytes(16))
        for topic, record, word in [
            (TOPIC, b"garbage", "record"),
            (TOPIC, other.seal(b"forged").data, "publishes as"),
            ("a/#", client.seal(b"x").data, "wildcard"),
            ("$SYS/x", client.seal(b"x").data, "reserved"),
        ]:
            refused = await client.ask(Put, Failed, topic, record)
            assert refused.code == "usage"
            assert word in refused.reason
        for token, given, word in [
            (b"short", drafts(b"x"), "token"),
            (secrets.token_bytes(16), [], "nothing to publish"),
            (secrets.token_bytes(16), drafts(b"x") * 5000, "publications"),
        ]:
            refused = await client.ask(PutNew, Failed, TOPIC, token, given)
            assert refused.code == "usage"
            assert word in refused.reason

    run(publish, 1, 1)


def test_open_streams_of_a_topic_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "OPEN_STREAMS_MAX", 2)

    async def publish(lab: Lab) -> None:
        clients = [await lab.client(1) for _ in range(3)]
        for client in clients[:2]:
            await client.publish(b"x")
        refused = await clients[2].ask(Put, Failed, TOPIC, clients[2].seal(b"x").data)
        assert refused.code == "usage"
        assert "too many open streams" in refused.reason
        assert (await clients[0].publish(b"y")).first == 1

    run(publish, 2, 1)


def test_requests_of_one_client_are_bounded_in_number_and_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "REQUESTS_MAX", 3)
    monkeypatch.setattr(session, "PUT_BYTES_MAX", 100_000)

    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        waiting = [
            client.say(Put, TOPIC, client.seal(bytes(60_000)).data, copies=2, strict=True)
            for _ in range(2)
        ]
        refused = await client.answer(waiting[1], Failed)
        assert refused.code == "full"
        assert "bytes" in refused.reason
        for _ in range(2):
            client.say(Put, TOPIC, client.seal(b"x").data, copies=2, strict=True)
        refused = await client.ask(Put, Failed, TOPIC, client.seal(b"y").data)
        assert refused.code == "full"
        assert "3 requests" in refused.reason
        assert client.answers(waiting[0]) == []

    run(publish, 1, 1)


def test_what_all_clients_have_on_the_way_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PENDING_BYTES_MAX", 100_000)

    async def publish(lab: Lab) -> None:
        one, two = await lab.client(0), await lab.client(0)
        waits = one.say(Put, TOPIC, one.seal(bytes(60_000)).data, copies=2, strict=True)
        token = secrets.token_bytes(16)
        refused = await two.ask(PutNew, Failed, TOPIC, token, drafts(bytes(60_000)))
        assert (refused.code, "all clients" in refused.reason) == ("full", True)
        one.close()
        await until(lambda: not len(lab.gates[0].publishing))
        stored = await two.ask(PutNew, Stored, TOPIC, token, drafts(bytes(60_000)))
        assert (stored.first, one.answers(waits)) == (0, [])

    run(publish, 1, 1)


def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        client.say(Put, TOPIC, client.seal(b"x").data, copies=2, strict=True)
        await client.tail()
        await until(lambda: len(lab.gates[0].publishing) == 1)
        client.close()
        await until(lambda: not lab.gates[0].sessions)
        gate = lab.gates[0]
        assert len(gate.publishing) == len(gate.tails) == len(gate.queries) == 0
        assert len(lab.hosts[0]._connections) == 0

    run(publish, 1, 1)
