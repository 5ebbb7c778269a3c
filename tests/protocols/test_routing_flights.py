"""Real flights over a tree that changes: exactly what Spark SQL selects is delivered."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import flights
from flights_replay import Replay
from planaria.filters.filters import matches
from planaria.filters.sql import parse
from planaria.protocols.routing.node import Broker
from spark_flights import SparkFlights

pytest_plugins = ("spark_session",)

ROWS = 336_776


@pytest.mark.parametrize("strategy", ["identity", "merging"])
def test_flights_reach_exactly_those_whose_conditions_select_them(
    strategy: str, seeds: Callable[[int, int], int], spark: SparkSession, tmp_path: Path
) -> None:
    """A sample; in a campaign all flights, 60 brokers, 1,000 subscriptions."""
    count, brokers = seeds(1_500, ROWS), seeds(9, 60)
    some = flights.rows(step=ROWS // count, most=count)
    assert len(some) == count
    rng = Random(5)
    wishes = [flights.condition(rng, some) for _ in range(seeds(160, 1_000))]
    replay = Replay(strategy, brokers, wishes, seed=5)
    replay.run(some, each_interval=seeds(12, 300), between=seeds(16, 25))
    assert {"join", "crash", "leave"} <= {*replay.changes}
    answers = SparkFlights(spark, some, tmp_path).select(list(replay.asked.values()))
    assert replay.wrong(answers.__getitem__) == []
    assert replay.due(answers.__getitem__, partly=False) > count // 4
    assert replay.due(answers.__getitem__, partly=True) > 10


def test_replay_of_flights_sees_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison bites: without replay over new links some flights do not arrive."""
    monkeypatch.setattr(Broker, "_replay", lambda *_: [])
    some = flights.rows(step=1_000, most=300)
    rng = Random(5)
    replay = Replay("identity", 9, [flights.condition(rng, some) for _ in range(60)], seed=5)
    replay.run(some, each_interval=12, between=4)
    table = flights.Table(some)
    assert replay.wrong(table.select) != []


def test_conditions_mean_the_same_to_us_to_sqlite_and_to_spark(
    seeds: Callable[[int, int], int], spark: SparkSession, tmp_path: Path
) -> None:
    rng = Random(1)
    some = flights.rows(step=150, most=2_000)
    texts = [flights.condition(rng, some) for _ in range(seeds(100, 3_000))]
    table, answers = flights.Table(some), SparkFlights(spark, some, tmp_path).select(texts)
    notifications = [flights.attributes(row) for row in some]
    for text in texts:
        filters = parse(text)
        passing = [
            number
            for number, it in enumerate(notifications)
            if any(matches(filter, it) for filter in filters)
        ]
        assert passing == table.select(text).tolist() == answers[text].tolist(), text
