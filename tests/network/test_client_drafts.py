"""What applications hand to a client: whatever it is, it is published or refused in a line."""

import asyncio
from typing import Any

import pytest

from client_lab import client_of, serve
from planaria.core.errors import UsageError
from planaria.records.record import HEADERS_MAX, Draft
from reference_gate import ReferenceGate

TOPIC = "news"


@pytest.mark.parametrize(
    "sent",
    [
        [*[Draft(bytes(1_000))] * 70, Draft(bytes(1 << 20))],
        [Draft(b"", bytes(1_000), (("h", bytes(1_500)),))] * 512,
    ],
    ids=["a large one after small ones", "keys and headers"],
)
def test_what_a_one_shot_client_sends_together_fits_into_a_message(sent: list[Draft]) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=True) as client:
            ack = await client.publish_many(TOPIC, sent, copies=1)
            assert ack is not None
            assert ack.count == len(sent)
        assert gates[0].memory.payloads(TOPIC) == [it.payload for it in sent]

    serve(test)


BAD: list[Any] = [
    Draft(None),  # type: ignore[arg-type]
    Draft(b"x", 5),  # type: ignore[arg-type]
    Draft(b"x", None, {"a": "b"}),  # type: ignore[arg-type]
    Draft(b"x", None, None),  # type: ignore[arg-type]
    Draft(b"x", None, (("a", 3),)),  # type: ignore[arg-type]
    Draft(b"x", None, (("$a", b""),)),
    Draft(b"x", None, (), 1.5),  # type: ignore[arg-type]
    Draft(b"x", None, (), "now"),  # type: ignore[arg-type]
    7,
]
TEXT: list[Any] = [Draft("text"), Draft(b"x", "k", (("a", "b"),))]  # type: ignore[arg-type]


@pytest.mark.parametrize("oneshot", [False, True])
def test_a_draft_of_anything_else_is_refused_and_the_topic_goes_on(oneshot: bool) -> None:
    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=oneshot) as client:
            for bad in BAD:
                with pytest.raises(UsageError):
                    await asyncio.wait_for(client.publish_many(TOPIC, [b"before", bad]), 10)
                await asyncio.wait_for(client.publish(TOPIC, b"after"), 10)
            assert await asyncio.wait_for(client.publish_many(TOPIC, TEXT), 10) is not None
        taken = gates[0].memory.payloads(TOPIC)
        assert sorted(taken) == sorted([*[b"before", b"after"] * len(BAD), b"text", b"x"])

    serve(test)


@pytest.mark.parametrize(("oneshot", "most"), [(False, HEADERS_MAX), (True, HEADERS_MAX - 1)])
def test_the_number_of_headers_that_is_told_is_the_number_that_is_taken(
    oneshot: bool, most: int
) -> None:
    headers = {str(number): b"" for number in range(most + 1)}

    async def test(gates: list[ReferenceGate]) -> None:
        async with client_of(*gates, oneshot=oneshot) as client:
            with pytest.raises(UsageError, match=f"^{most + 1} headers: at most {most}"):
                await client.publish(TOPIC, b"", headers=headers)
            headers.popitem()
            await client.publish(TOPIC, b"", headers=headers)

    serve(test)
