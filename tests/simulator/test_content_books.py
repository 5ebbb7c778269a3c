"""The books of `planaria sim content` keep clients' deliveries to Definition 1."""

import pytest

from planaria.protocols.routing.commands import DeliverTo
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.content import ContentWorld


def running() -> tuple[ContentWorld, Trial]:
    world = ContentWorld(subscriptions=12)
    trial = Trial(world, Spec(3, 1, start="legitimate"))
    for _ in range(12):
        trial.simulator.run_interval()
        assert trial.violations() == []
    return world, trial


@pytest.mark.parametrize("kind", ["duplicated", "unwanted", "unpublished"])
def test_a_wrong_delivery_in_a_legitimate_network_is_a_violation_once(kind: str) -> None:
    world, trial = running()
    trial.simulator.run_interval()
    book = world.books.deliveries
    client = next(client for client, given in book.delivered.items() if given)
    payloads = {
        "duplicated": next(iter(book.delivered[client])),
        "unpublished": b"nobody said this",
        "unwanted": next(it for it in book.published if it not in book.delivered[client]),
    }
    payload = payloads[kind]
    known = payload if payload in book.published else payloads["duplicated"]
    attributes = book.published[known].attributes
    false = DeliverTo.one("", b"id", payload, client=client[1], attributes=attributes)
    if kind == "unwanted":
        book.wishes[client] = []
    world.books.record(client[0], false)
    assert [(it.invariant, it.node) for it in trial.violations()] == [(kind, client[0])]
    assert trial.violations() == []


def test_what_was_wrong_while_the_network_was_is_forgiven() -> None:
    world, trial = running()
    client, given = next(iter(world.books.deliveries.delivered.items()))
    false = DeliverTo.one("", b"id", next(iter(given)), client=client[1], attributes={})
    world.books.record(client[0], false)
    trial.simulator.nodes[1].table.entries.clear()  # type: ignore[attr-defined]
    assert trial.violations() != []
    for _ in range(40):
        trial.simulator.run_interval()
        last = trial.violations()
    assert last == []
