"""Definitions 1 and 2: who is subscribed gets what matches, once, and nothing else."""

from collections.abc import Callable

import pytest

from planaria.filters.sql import parse
from planaria.protocols.routing.commands import PublishContent, SubscribeTo, UnsubscribeFrom
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.definitions import DeliveryBook
from routing_tree import NOTICE, ChangingTree

VARIANTS = [(strategy, up) for strategy in STRATEGIES for up in (False, True)]
NEVER = 10**9
REACH = 6 * INTERVAL  # by then a publication is everywhere in a tree of this size


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_without_faults_not_one_delivery_is_missed(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    """Clocks have random phases, and identical subscriptions are renewed at different times."""
    for seed in range(seeds(2, 200)):
        tree = ChangingTree(RoutingOverlay(strategy, up, subscriptions=40), 13, seed)
        tree.run(60 * INTERVAL, every=25)
        assert tree.book.deliveries > 300
        assert tree.book.breaches() == []
        assert tree.book.missed(0, 0, tree.simulator.tick - REACH) == []


def just_taken(book: DeliveryBook, payload: bytes) -> bool:
    """Had a broker only just taken this from its own client when it crashed or restarted?"""
    it = book.published[payload]
    return any(node == it.node and at - INTERVAL < it.tick <= at for node, at in book.stops)


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_join_crash_and_restart_of_any_broker_lose_and_duplicate_nothing(
    strategy: str, up: bool, seeds: Callable[[int, int], int]
) -> None:
    """The clients of a broker that lost its memory are new to it: they may hear things again."""
    for seed in range(seeds(2, 500)):
        tree = ChangingTree(RoutingOverlay(strategy, up, subscriptions=40), 13, seed)
        tree.run(5 * INTERVAL, every=10)
        restarted = []
        for change in (tree.join, tree.crash, tree.restart, tree.crash, tree.join):
            changed = change()
            restarted += [changed] if change == tree.restart else []
            tree.run(12 * INTERVAL, every=10)
        tree.run(REACH, every=NEVER)
        assert [it for it in tree.book.duplicated if it[1][0] not in restarted] == []
        assert tree.book.unpublished == tree.book.unwanted == []
        missed = tree.book.missed(0, REACH + NOTICE, tree.simulator.tick)
        assert [it for it in missed if not just_taken(tree.book, it[1])] == []


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_definition_2_from_any_state_safety_and_liveness_hold_in_the_end(
    strategy: str, up: bool
) -> None:
    for seed in range(2):
        overlay = RoutingOverlay(strategy, up)
        trial = Trial(overlay, Spec(n=13, seed=seed))
        book = DeliveryBook(trial.simulator.nodes)
        trial.simulator.watch(book)
        settled = overlay.timing.delta * INTERVAL
        for number in range(settled // 20 + 100):
            trial.simulator.run(20)
            command = overlay.publication(number % 13, number)
            assert command is not None
            trial.simulator.command(number % 13, command)
        trial.simulator.run(REACH)
        assert book.breaches(since=settled) == []
        assert book.missed(settled, 0, trial.simulator.tick) == []


@pytest.mark.parametrize(("strategy", "up"), VARIANTS)
def test_subscribing_and_unsubscribing_at_any_time_never_disturbs_others(
    strategy: str, up: bool
) -> None:
    """Covers and merges come and go over one filter that stays; links reorder messages."""
    tree = ChangingTree(RoutingOverlay(strategy, up, subscriptions=0), 13, 1)
    stays = parse("kind = 'fire' AND level > 4")
    wide = [
        parse(it) for it in ("kind = 'fire'", "level > 2", "TRUE", "kind = 'fire' AND level < 6")
    ]
    tree.simulator.command(12, SubscribeTo(0, stays))
    tree.run(10 * INTERVAL, every=NEVER)
    for _ in range(60):
        place, condition = tree.rng.choice([12, 11, 4]), tree.rng.choice(wide)
        wish = SubscribeTo if tree.rng.random() < 0.6 else UnsubscribeFrom
        tree.simulator.command(place, wish(1, condition))
        tree.run(tree.rng.randrange(1, 2 * INTERVAL), every=7)
    tree.run(REACH, every=NEVER)
    missed = tree.book.missed(10 * INTERVAL, REACH, tree.simulator.tick)
    assert [it for it in missed if it[0] == (12, 0)] == []
    assert tree.book.duplicated == []
    assert tree.book.unpublished == []


def test_a_client_with_two_matching_subscriptions_is_handed_a_notification_once() -> None:
    tree = ChangingTree(RoutingOverlay("simple", subscriptions=0), 4, 0)
    tree.simulator.command(3, SubscribeTo(0, parse("level > 1 OR kind = 'fire'")))
    tree.run(5 * INTERVAL, every=NEVER)
    tree.simulator.command(1, PublishContent({"level": 5, "kind": "fire"}, b"once"))
    tree.run(REACH, every=NEVER)
    assert tree.book.delivered == {(3, 0): {b"once": 1}}


def test_the_book_sees_each_kind_of_breach() -> None:
    tree = ChangingTree(RoutingOverlay("simple", subscriptions=0), 2, 0)
    tree.simulator.command(1, SubscribeTo(0, parse("level > 1")))
    tree.run(5 * INTERVAL, every=NEVER)
    broker = tree.broker(1)
    broker.memory.seen[0].clear()
    tree.simulator.command(0, PublishContent({"level": 5}, b"a"))
    tree.run(INTERVAL, every=NEVER)
    for generation in broker.memory.seen:
        generation.clear()
    for message in [it.message for it in tree.broker(0).memory.lately()]:
        tree.simulator.inject(1, message)
    tree.run(INTERVAL, every=NEVER)
    broker.table.insert(-1, 1, parse("level < 1")[0])
    tree.simulator.command(1, PublishContent({"level": 0}, b"b"))
    assert [it.split(":")[0] for it in tree.book.breaches()] == [
        "delivered twice",
        "not subscribed for",
    ]
    tree.book.published.clear()
    tree.simulator.command(1, PublishContent({"level": 7}, b"c"))
    tree.book.published.clear()
    tree.book.delivered.clear()
    tree.book.record(0, "effect", 1, None, broker.publish({"level": 7}, b"d")[-1])
    assert len(tree.book.unpublished) == 1
