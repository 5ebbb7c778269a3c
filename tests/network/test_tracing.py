"""Traces of live nodes: the simulator's columns, the same number at both ends of a message."""

import asyncio

import pytest
from msgspec import json

from http_lab import get
from planaria.core.errors import UsageError
from planaria.core.message import tag_of
from planaria.core.node import LinkDown, Publish, Send, Subscribe, Unsubscribe
from planaria.core.trace import Row
from planaria.network import tracing
from planaria.network.http import HttpServer, monitoring
from planaria.network.tracing import Traced, lines
from planaria.simulator import trace as simulated
from planaria.simulator.engine import KINDS
from watched import Watched, WatchedNetwork, ring_node, until


def test_a_row_has_the_columns_of_a_trace_file() -> None:
    assert ("run", *Row._fields) == tuple(simulated.COLUMNS)


def test_a_traced_node_does_what_the_node_does_and_notes_it() -> None:
    plain, other = (ring_node(7, (7,), supervise=True) for _ in range(2))
    traced = Traced(other)
    for command in (Subscribe("news"), Publish("news", b"x"), Unsubscribe("no")):
        assert traced.on_command(command) == plain.on_command(command)
    for _ in range(3):
        mine, theirs = plain.on_timeout(), traced.on_timeout()
        assert mine == theirs
        for send in mine:
            if isinstance(send, Send) and send.target == 7:
                answer = plain.on_message(send.message, 7)
                assert traced.on_message(send.message, 7) == answer
    assert traced.state() == plain.state()
    assert (traced.id, traced.reads_clock) == (7, True)
    with pytest.raises(UsageError):
        traced.on_command(Subscribe("a/#/b"))
    kinds = {row.kind for row in traced.rows}
    assert kinds == {"command", "effect", "timeout", "send", "deliver", "refuse"} <= set(KINDS)
    sent = [row for row in traced.rows if row.kind == "send" and row.dst == 7]
    heard = {row.message_id for row in traced.rows if row.kind == "deliver"}
    assert heard
    assert heard <= {row.message_id for row in sent}
    answers = [row for row in traced.rows if row.kind == "send" and row.cause_id]
    assert answers
    assert {row.cause_id for row in answers} <= heard
    assert {row.topic for row in traced.rows if row.kind in ("send", "deliver")} == {"news"}


def test_what_may_not_have_arrived_and_what_is_broken_on_purpose_is_noted() -> None:
    traced = Traced(ring_node(7, (7,), supervise=True))
    other = ring_node(8, (7,), supervise=False)
    other.on_command(Subscribe("news"))
    send = next(it for it in other.on_timeout() if isinstance(it, Send))
    traced.on_command(LinkDown(8, (send.message,)))
    (row,) = [it for it in traced.rows if it.kind == "drop"]
    named = (row.src, row.dst, row.message_type, row.topic)
    assert named == (7, 8, tag_of(send.message), "news")
    traced.fault("corrupt: affected 3")
    assert traced.rows[-1][1:6] == (7, "fault", None, None, "corrupt: affected 3")


def test_rows_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "ROWS_MAX", 3)
    traced = Traced(ring_node(7, (7,), supervise=False))
    for _ in range(5):
        traced.on_timeout()
    *rows, last = [json.decode(line) for line in lines(traced)]
    assert len(rows) == 3
    assert last == {"left_out": traced.left_out}
    assert traced.left_out >= 2


def test_both_ends_of_a_link_give_a_message_the_same_number() -> None:
    async def fetch(node: Watched, servers: list[HttpServer]) -> list[dict[str, object]]:
        servers.append(HttpServer(monitoring(node.monitor)))
        code, headers, body = await get(await servers[-1].start("127.0.0.1:0"), "/trace?seconds=2")
        assert (code, headers["Content-Type"]) == (200, "application/jsonl")
        return [json.decode(line) for line in body.splitlines()]

    async def main() -> None:
        network, servers = WatchedNetwork(2), list[HttpServer]()
        try:
            await network.start()
            await until(network.legitimate)
            traces = await asyncio.gather(*(fetch(node, servers) for node in network.nodes))
            assert not any(isinstance(node.host.node, Traced) for node in network.nodes)
            rows = [row for one in traces for row in one]
            sent = {row["message_id"]: row for row in rows if row["kind"] == "send"}
            heard = [row for row in rows if row["kind"] == "deliver"]
            matched = [row for row in heard if row["message_id"] in sent]
            assert len(matched) > len(heard) / 2  # the first were sent before we looked
            for row in matched:
                said = sent[row["message_id"]]
                assert (said["src"], said["dst"]) == (row["src"], row["dst"])
            assert network.legitimate()
        finally:
            for server in servers:
                await server.stop()
            await network.stop()

    asyncio.run(main())


def test_a_wrong_wish_and_a_second_tracer_are_refused() -> None:
    async def main() -> None:
        node = Watched(ring_node(0, (0,), supervise=True), bytes(16), "n0")
        server = HttpServer(monitoring(node.monitor))
        try:
            address = await server.start("127.0.0.1:0")
            for wrong in ("0", "61", "-1", "nan", "x"):
                assert (await get(address, f"/trace?seconds={wrong}"))[0] == 400
            first = asyncio.ensure_future(get(address, "/trace?seconds=1"))
            await until(lambda: isinstance(node.host.node, Traced))
            assert (await get(address, "/trace"))[0] == 409
            assert (await first)[0] == 200
            assert node.host.node is node.ring
        finally:
            await server.stop()

    asyncio.run(main())
