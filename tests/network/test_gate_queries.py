"""What clients ask once: where to begin, ranges by position, topics, status, state."""

import asyncio
import json
from functools import partial
from random import Random
from time import time

from gate_lab import CODEC, TOPIC, Lab, numbered, publish, run, until
from planaria.core.node import Subscribe
from planaria.core.overlay import Violation
from planaria.core.state import decode_state
from planaria.network.client.messages import (
    AskState,
    AskStatus,
    AskTopics,
    AskVector,
    Failed,
    Lack,
    Pieces,
    Position,
    Put,
    Read,
    Resolve,
    StateIs,
    StatusIs,
    Stop,
    Stored,
    Tail,
    TopicsAre,
    VectorIs,
)
from planaria.network.gate import pieces
from planaria.protocols.skipring.arbitrary_history import corrupt_history
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.node import RingNodeState
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.supervisor import SupervisorState
from planaria.records.record import decode


def test_since_now_time_and_last_are_resolved_into_vectors_and_a_floor() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(1)
        now = int(time())
        for payload, at in [(b"old", now - 900), (b"young", now - 300)]:
            await writer.ask(Put, Stored, TOPIC, writer.seal(payload, at=at).data, copies=2)
        found = await reader.resolve(TOPIC, "all")
        assert (found.vectors, found.floor, found.last) == ({}, 0, {})
        found = await reader.resolve(TOPIC, "time", now - 600)
        since_time = await reader.tail(floor=found.floor, vectors=found.vectors)
        found = await reader.resolve(TOPIC, "last")
        assert found.vectors == {TOPIC: [Position(*writer.stream, 2)]}
        (last,) = decode(found.last[TOPIC].record).publications(0, 9)
        assert (last.payload, last.sequence) == (b"young", 1)
        now_found = await reader.resolve(TOPIC, "now")
        assert (now_found.vectors, now_found.last) == (found.vectors, {})
        tail = await reader.tail(vectors=now_found.vectors, floor=now_found.floor)
        await writer.publish(b"new", copies=1)
        other = await lab.client(0)
        await other.publish(b"another publisher", copies=1)
        await until(lambda: len(reader.payloads(tail)) == 2)
        assert {*reader.payloads(tail)} == {b"new", b"another publisher"}
        await until(lambda: len(reader.payloads(since_time)) == 3)
        assert b"old" not in reader.payloads(since_time)
        refused = await reader.ask(Resolve, Failed, TOPIC, "yesterday")
        assert "all, now, last or time" in refused.reason

    run(read, 2, 2)


def test_now_at_a_node_that_has_to_join_first_brings_no_history() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(2)
        past = int(time()) - 900
        for payload in numbered(30):
            await writer.ask(Put, Stored, TOPIC, writer.seal(payload, at=past).data, copies=2)
        found = await reader.resolve(TOPIC, "now")
        assert found.vectors == {TOPIC: [Position(*writer.stream, 30)]}
        tail = await reader.tail(vectors=found.vectors, floor=found.floor)
        await writer.publish(b"new", copies=2)
        await until(lambda: reader.payloads(tail) == [b"new"])

    run(read, 3, 2)


def test_a_range_is_read_by_position_with_what_it_lacks() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        await publish(writer, 10)
        writer.next = 12
        await writer.ask(Put, Stored, TOPIC, writer.seal(b"12").data)
        here = await reader.ask(AskVector, VectorIs, TOPIC)
        assert here.positions == [Position(*writer.stream, 10)]
        first = await reader.ask(Read, Pieces, TOPIC, [], limit=4)
        assert [piece.lo for piece in first.pieces] == [0, 1, 2, 3]
        assert first.after == [Position(*writer.stream, 4)]
        to = [Position(*writer.stream, 13)]
        request = reader.say(Read, TOPIC, first.after, to)
        rest = await reader.answer(request, Pieces)
        assert reader.payloads(request) == numbered(4, 10)
        assert rest.lacks == (Lack(*writer.stream, 10, 12, False),)
        refused = await reader.ask(Read, Failed, TOPIC, [Position(1, b"short", 0)])
        assert refused.code == "usage"

    run(read, 1, 1)


def test_a_range_of_a_topic_that_is_not_here_is_elsewhere_or_nowhere() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(2)
        history = writer.seal(*numbered(5), at=int(time()) - 900)
        await writer.ask(Put, Stored, TOPIC, history.data, copies=2)
        to = [Position(*writer.stream, 5)]
        refused = await reader.ask(Read, Failed, TOPIC, [], to)
        assert refused.code == "elsewhere"
        assert TOPIC not in lab.nodes[2].peer.topics
        assert (await reader.ask(AskVector, VectorIs, "nobody")).positions == []
        assert (await reader.ask(Read, Pieces, "nobody", [])).pieces == []
        whole = await reader.ask(AskVector, VectorIs, TOPIC)  # so it becomes a member
        assert whole.positions == to

    run(read, 3, 2)


def test_frames_stay_below_their_limit_whatever_the_records() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        sizes = [200_000, 300_000, 1 << 20, 10, 250_000, 1 << 20]
        for size in sizes:
            await writer.publish(bytes(size), copies=1)
        tail = await reader.tail()
        await until(lambda: len(reader.payloads(tail)) == len(sizes))
        assert [len(it) for it in reader.payloads(tail)] == sizes
        for message in reader.pieces(tail):
            whole = sum(len(piece.record) for piece in message.pieces)
            assert whole <= pieces.PIECES_BYTES or len(message.pieces) == 1

    run(read, 1, 1)


def test_the_answer_to_a_question_is_larger_than_what_is_pushed_and_bounded() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        for _ in range(5):
            await writer.publish(bytes(200_000), copies=1)
        found = await reader.ask(Read, Pieces, TOPIC, [], [Position(*writer.stream, 5)])
        assert [(piece.lo, piece.hi) for piece in found.pieces] == [(0, 1), (1, 2), (2, 3)]
        whole = sum(len(piece.record) for piece in found.pieces)
        assert pieces.PIECES_BYTES < whole <= pieces.READ_BYTES
        assert found.after == [Position(*writer.stream, 3)]

    run(read, 1, 1)


def violations(lab: Lab) -> list[Violation]:
    states = {node.id: node.state() for node in lab.nodes}
    return topic_violations(TOPIC, (lab.nodes[0].id,), states, [])


def test_status_topics_and_state_are_told() -> None:
    async def ask(lab: Lab) -> None:
        client = await lab.client(0)
        status = await client.ask(AskStatus, StatusIs)
        assert json.loads(status.status) == {"node": 0}
        lab.hosts[1].command(Subscribe("weather/europe"))
        await until(lambda: lab.member(1, "weather/europe"))
        assert (await client.ask(AskTopics, TopicsAre)).topics == [TOPIC, "weather/europe"]
        assert (await client.ask(AskTopics, TopicsAre, "weather/+")).topics == ["weather/europe"]
        await publish(client, 50)
        await until(lambda: not violations(lab))
        states = {}
        for at in range(2):
            other = await lab.client(at)
            found = await other.ask(AskState, StateIs, TOPIC)
            assert found.supervisors == [lab.nodes[0].id]
            assert (found.supervisor is None) == (at == 1)
            assert found.peer is not None
            assert len(found.peer) < 2000, "without publications"
            supervisor = None
            if found.supervisor is not None:
                supervisor = decode_state(SupervisorState, found.supervisor)
                assert list(supervisor.topics) == [TOPIC]
            peer = decode_state(PeerState, found.peer)
            states[lab.nodes[at].id] = RingNodeState(peer, supervisor)
        assert topic_violations(TOPIC, (lab.nodes[0].id,), states, []) == []
        del states[lab.nodes[1].id]
        assert topic_violations(TOPIC, (lab.nodes[0].id,), states, []) != []

    run(ask, 2, 2)


def test_whatever_memory_holds_a_gate_goes_on() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        await publish(writer, 20)
        history = lab.nodes[0].peer.topics[TOPIC].history
        asked: list[int] = []
        for seed in range(30):
            chance = Random(seed)
            tail = reader.say(Tail, TOPIC, {}, floor=seed % 3, notices=True)
            corrupt_history(history, [lab.nodes[0].id, 5], chance)
            lab.gates[0].on_timeout()
            asked += [
                reader.say(AskVector, TOPIC),
                reader.say(Read, TOPIC, [], [Position(*writer.stream, 25)]),
                reader.say(Resolve, TOPIC, "last"),
                reader.say(Put, TOPIC, writer.seal(b"x").data),
            ]
            await asyncio.sleep(0)
            message = Stop(tail)
            reader.connection.send(CODEC.encode(message), message, bulk=False)
        for request in asked:
            await until(partial(reader.answers, request))
        assert (await reader.ask(AskStatus, StatusIs)).status

    run(read, 1, 1)
