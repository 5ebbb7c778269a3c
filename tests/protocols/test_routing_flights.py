"""Real flights through brokers that join and crash: exactly what SQLite selects is delivered."""

from collections.abc import Callable
from random import Random

import pytest

import flights
from planaria.core.ids import NodeId
from planaria.protocols.routing.commands import PublishContent, SubscribeTo
from planaria.protocols.routing.filters import matches
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.sql import parse
from planaria.simulator.delays import INTERVAL
from routing_tree import ChangingTree

ROWS = 336_776
NEVER = 10**9


def replay(strategy: str, brokers: int, wishes: int, some: list[flights.Row], rate: int) -> None:
    """Publish `rate` flights a tick at brokers that stay, while others join and crash.

    Every fourth broker has no clients and may crash.
    """
    rng = Random(5)
    tree = ChangingTree(RoutingOverlay(strategy, subscriptions=0), brokers, 5)
    staying = [id for id in range(brokers) if id % 4 != 1]
    asked: dict[tuple[NodeId, int], str] = {}
    for number in range(wishes):
        client = (staying[number % len(staying)], number // len(staying))
        asked[client] = flights.condition(rng, some)
        tree.simulator.command(client[0], SubscribeTo(client[1], parse(asked[client])))
    tree.run(12 * INTERVAL, every=NEVER)
    changes = max(INTERVAL, len(some) // rate // 6)
    for number, row in enumerate(some):
        payload = b"%d" % number
        command = PublishContent(flights.attributes(row), payload)
        tree.simulator.command(rng.choice(staying), command)
        if number % rate == 0:
            tree.run(1, every=NEVER)
            if tree.simulator.tick % changes == 0:
                leaving = [id for id in tree.parents if id not in staying]
                tree.crash(rng.choice(leaving)) if leaving and rng.random() < 0.6 else tree.join()
    tree.run(15 * INTERVAL, every=NEVER)
    table, delivered = flights.Table(some), 0
    for client, condition in asked.items():
        got = sorted(int(payload) for payload in tree.book.delivered.get(client, {}))
        assert got == table.select(condition), (client, condition)
        delivered += len(got)
    assert tree.book.duplicated == []
    assert delivered > len(some)
    assert tree.book.gone


@pytest.mark.parametrize("strategy", ["identity", "merging"])
def test_flights_reach_exactly_those_whose_conditions_select_them(
    strategy: str, seeds: Callable[[int, int], int]
) -> None:
    """A sample; in a campaign all flights, 60 brokers, 1,000 subscriptions."""
    count = seeds(1_500, ROWS)
    some = flights.rows(step=ROWS // count, most=count)
    assert len(some) == count
    replay(strategy, seeds(20, 60), seeds(80, 1_000), some, rate=seeds(2, 10))


def test_conditions_mean_the_same_to_us_and_to_sqlite(seeds: Callable[[int, int], int]) -> None:
    rng = Random(1)
    some = flights.rows(step=150, most=2_000)
    table = flights.Table(some)
    notifications = [flights.attributes(row) for row in some]
    for _ in range(seeds(60, 3_000)):
        text = flights.condition(rng, some)
        filters = parse(text)
        passing = [
            number
            for number, it in enumerate(notifications)
            if any(matches(filter, it) for filter in filters)
        ]
        assert passing == table.select(text), text
