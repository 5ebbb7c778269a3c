"""What a subscription does when its node lacks numbers that it cannot know to be expired."""

import pytest

from client_lab import client_of, numbers, serve, until
from planaria.core.node import Notice
from planaria.network.client import lacks
from planaria.network.client.channel import CODEC
from planaria.network.client.events import Event
from planaria.network.client.messages import Lack, Pieces, Position
from planaria.records.positions import Mark, vector_to_json
from reference_gate import ReferenceGate

TOPIC = "weather/europe"


@pytest.mark.parametrize("end", [6, 8])
def test_what_expired_before_a_node_joined_is_passed_as_soon_as_another_says_so(
    end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own node has never seen it, and cannot know that it will not come."""
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)

    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].lacks = lambda topic, stream, number: number in (1, *range(3, end))
        async with client_of(*gates) as client:
            await client.publish_many(TOPIC, numbers(10))
            (stream,) = {row[1] for row in gates[0].memory.rows}
            start = {"floor": 0, "topics": {TOPIC: vector_to_json({stream: Mark(3, ((1, 2),))})}}
            gates[1].expired = 6
            events = client.subscribe(TOPIC, since=start, notices=True)
            found = [await anext(events) for _ in range(4)]
            assert [it.payload for it in found if isinstance(it, Event)] == numbers(4, 6)
            assert [*events.vector()["topics"][TOPIC].values()] == [[[10], [1, 2]]]

    serve(test)


def test_what_another_node_has_of_a_hole_satisfies_the_condition_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lacks, "ASK_SECONDS", 0.1)

    async def test(gates: list[ReferenceGate]) -> None:
        gates[0].lacks = lambda topic, stream, number: number in range(2, 6)
        async with client_of(*gates) as client:
            payloads = [b'{"n": %d}' % number for number in range(8)]
            await client.publish_many(TOPIC, payloads)
            events = client.subscribe(TOPIC, since="all", where="n = 1 OR n = 4 OR n = 7")
            found = [(await anext(events)).payload for _ in range(3)]
            assert found == [payloads[1], payloads[4], payloads[7]]

    serve(test)


@pytest.mark.parametrize("notices", [False, True])
def test_what_its_node_has_let_go_is_a_gap_for_who_wants_notices(*, notices: bool) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(gates[0]) as client:
            await client.publish_many(TOPIC, numbers(4))
            (stream,) = {row[1] for row in gates[0].memory.rows}
            events = client.subscribe(TOPIC, since="all", notices=notices)
            for _ in range(4):
                await anext(events)
            (tail,) = gates[0].tails.values()
            dropped, coming = Lack(*stream, 4, 7, True), Lack(*stream, 9, 10, False)
            after = [Position(*stream, 9)]
            said = Pieces(tail.ask.request, TOPIC, [], after, (dropped, coming))
            assert tail.connection.send(CODEC.encode(said), said, bulk=True)
            await until(lambda: events._parcels)
            if notices:
                gap = await anext(events)
                assert isinstance(gap, Notice)
                detail = {"publisher": stream[0], "incarnation": stream[1].hex()}
                assert (gap.kind, gap.detail) == ("gap", {**detail, "from": 4, "to": 7})
                assert events.take() is None
            else:
                assert await events._advance()
                assert events.take() is None
            assert [*events.vector()["topics"][TOPIC].values()] == [9]

    serve(test)
