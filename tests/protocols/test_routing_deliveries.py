"""Definitions 1 and 2: who is subscribed gets what matches, once, and nothing else."""

from collections.abc import Callable

import pytest

from planaria.core.node import Publish, Subscribe, Unsubscribe
from planaria.filters.sql import parse
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.notifications import to_send
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.definitions import keep_book
from routing_tree import NOTICE, REACH, ChangingTree

VARIANTS = [(strategy, up) for strategy in STRATEGIES for up in (False, True)]
NEVER = 10**9


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_without_faults_not_one_delivery_is_missed(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    """Clocks have random phases, and identical subscriptions are renewed at different times."""
    for seed in range(seeds(1, 200)):
        tree = ChangingTree(RoutingOverlay(strategy, up, subscriptions=40), 13, seed)
        tree.run(seeds(40, 60) * INTERVAL, every=25)
        found = tree.book.summary(tree.now)
        assert found.delivered > 300
        assert found.due == found.once > 250
        assert tree.book.wrong() == []


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_join_crash_and_restart_of_any_broker_lose_and_duplicate_nothing(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    """The clients of a broker that lost its memory are new to it: they may hear things again."""
    for seed in range(seeds(1, 500)):
        overlay = RoutingOverlay(strategy, up, subscriptions=40)
        tree = ChangingTree(overlay, 13, seed, within=REACH + NOTICE)
        every = seeds(30, 15)
        tree.run(5 * INTERVAL, every=every)
        for change in (tree.join, tree.crash, tree.restart, tree.crash, tree.join):
            change()
            tree.run(12 * INTERVAL, every=every)
        tree.run(REACH + NOTICE, every=NEVER)
        assert tree.book.summary(tree.now).due > seeds(150, 300)
        assert tree.book.wrong() == []
        assert tree.missed() == []


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_definition_2_from_any_state_safety_and_liveness_hold_in_the_end(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(1, 200)):
        overlay = RoutingOverlay(strategy, up)
        trial = Trial(overlay, Spec(n=13, seed=seed))
        book = keep_book(trial.simulator, REACH / INTERVAL)
        settled = overlay.timing.delta * INTERVAL
        book.illegitimate(overlay.timing.delta)
        for number in range(settled // 20 + 100):
            trial.simulator.run(20)
            command = overlay.publication(number % 13, number)
            assert command is not None
            trial.simulator.command(number % 13, command)
        trial.simulator.run(REACH)
        found = book.summary(trial.time)
        assert found.due == found.once > 50
        assert book.wrong() == []


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_subscribing_and_unsubscribing_at_any_time_never_disturbs_others(
    strategy: str, up: bool
) -> None:
    """Covers and merges come and go over one filter that stays; links reorder messages."""
    tree = ChangingTree(RoutingOverlay(strategy, up, subscriptions=0), 13, 1)
    wide = ("kind = 'fire'", "level > 2", "TRUE", "kind = 'fire' AND level < 6")
    tree.simulator.command(12, Subscribe(where="kind = 'fire' AND level > 4"))
    tree.run(10 * INTERVAL, every=NEVER)
    for _ in range(60):
        place, condition = tree.rng.choice([12, 11, 4]), tree.rng.choice(wide)
        wish = Subscribe if tree.rng.random() < 0.6 else Unsubscribe
        tree.simulator.command(place, wish(where=condition, client=1))
        tree.run(tree.rng.randrange(1, 2 * INTERVAL), every=7)
    tree.run(REACH, every=NEVER)
    due = [it for it in tree.book.due(tree.now) if it.client[:2] == (12, 0)]
    assert len(due) > 20
    assert all(tree.book.when(it) is not None for it in due)
    kinds = {it.kind for it in tree.book.wrong()}
    assert kinds <= {"unwanted"}  # what is on its way when a client unsubscribes


def test_a_client_with_two_matching_subscriptions_is_handed_a_notification_once() -> None:
    tree = ChangingTree(RoutingOverlay("simple", subscriptions=0), 4, 0)
    tree.simulator.command(3, Subscribe(where="level > 1 OR kind = 'fire'"))
    tree.run(5 * INTERVAL, every=NEVER)
    tree.simulator.command(1, Publish("t", b"once", {"level": 5, "kind": "fire"}))
    tree.run(REACH, every=NEVER)
    found = tree.book.summary(tree.now)
    assert (found.delivered, found.due, found.once) == (1, 1, 1)


def test_the_book_sees_each_kind_of_breach() -> None:
    tree = ChangingTree(RoutingOverlay("simple", subscriptions=0), 2, 0)
    tree.simulator.command(1, Subscribe(where="level > 1"))
    tree.run(5 * INTERVAL, every=NEVER)
    broker = tree.broker(1)
    tree.simulator.command(0, Publish("t", b"a", {"level": 5}))
    tree.run(INTERVAL, every=NEVER)
    for generation in broker.memory.seen:
        generation.clear()
    for it in tree.broker(0).memory.lately():
        tree.simulator.inject(1, to_send(0, it.body, b""))
    tree.run(INTERVAL, every=NEVER)
    broker.table.insert(-1, 1, parse("level < 1")[0])
    tree.simulator.command(1, Publish("t", b"b", {"level": 0}))
    tree.simulator.inject(1, Notify(0, bytes(16), {"level": 7}))
    tree.run(INTERVAL, every=NEVER)
    assert [it.kind for it in tree.book.wrong()] == ["twice", "unwanted", "never published"]
    broker.table.entries.clear()
    broker.table.reindex()
    tree.simulator.command(1, Publish("t", b"c", {"level": 9}))
    assert tree.book.missed(tree.now) == []  # not yet
    tree.run(REACH, every=NEVER)
    assert [it.client[:2] for it in tree.book.missed(tree.now)] == [(1, 0)]
