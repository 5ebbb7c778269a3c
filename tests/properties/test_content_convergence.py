"""Three layers that heal: brokers join, crash, leave and go mad, and clients get what they want."""

from collections.abc import Callable

import pytest

from content_lab import WatchedWorld, run
from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Leave, Publish, Send, Subscribe
from planaria.protocols.content.node import ContentBroker
from planaria.protocols.content.overlay import RECONFIGURATION, ContentOverlay
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.tree.place import TreeLink
from planaria.simulator.delays import INTERVAL
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial

CHANGES = {
    "join": "at 2 join count=3",
    "crash": "at 3 crash count=1\nat 14 crash count=1",
    "leave": "at 3 leave count=2",
    "restart": "at 3 restart count=1 state=none",
    "churn": "at 1 join count=2\nat 2 crash count=1\nat 3 leave count=1\nat 4 join count=1",
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_changes_of_brokers_lose_nothing_and_duplicate_nothing(
    change: str, seeds: Callable[[int, int], int]
) -> None:
    """From a legitimate start every publication counts, also those in the middle of the change.

    By day every change sees one strategy, and every strategy one change.
    """
    first = list(CHANGES).index(change)
    for seed in range(seeds(1, 200)):
        strategy = STRATEGIES[(first + 2 * seed) % len(STRATEGIES)]
        hierarchical = stream(seed, change, strategy).random() < 0.5
        overlay = WatchedWorld(subscriptions=20, strategy=strategy, hierarchical=hierarchical)
        faults = parse_schedule(CHANGES[change])
        asked = ("content", "--strategy", strategy)
        spec = Spec(seeds(7, 9), seed, "legitimate", faults, asked=asked, closure=RECONFIGURATION)
        outcome, book = run(overlay, spec)
        ended = [it.tick / INTERVAL for it in outcome.faults]
        end = max(it.time for it in book.published.values())
        assert len([*book.due(end)]) > 30
        assert book.wrong() == [], spec.command(overlay)
        lost = [it.publication for it in book.missed(end)]
        # What a broker had just taken when it ended nobody else knows of.
        kept = [it for it in lost if not any(at - 1 < it.time <= at for at in ended)]
        assert kept == [], spec.command(overlay)


@pytest.mark.parametrize("nemesis", sorted({*NAMED} - {"none"}))
def test_all_layers_heal_after(nemesis: str, seeds: Callable[[int, int], int]) -> None:
    """Every built-in nemesis; whatever it did meanwhile, from then on Definition 1 holds."""
    for seed in range(seeds(1, 40)):
        strategy = stream(seed, nemesis).choice(STRATEGIES)
        overlay = WatchedWorld(subscriptions=20, strategy=strategy)
        spec = Spec(seeds(6, 9), seed, "legitimate", load_schedule(nemesis))
        outcome = Trial(overlay, spec).run()
        assert outcome.failure is None, spec.command(overlay)
        effective = [it for it in outcome.ineffective if "skew" not in it]  # brokers read no clock
        assert effective == [], spec.command(overlay)
        assert overlay.within_bound, spec.command(overlay)
        figures = outcome.metrics
        assert figures["due"] == figures["once"] > 5
        assert (figures["twice"], figures["unwanted"], figures["never_published"]) == (0, 0, 0)


def test_books_see_what_is_lost_without_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of missed publications bites: without replay over new links there are some."""
    monkeypatch.setattr(Broker, "_replay", lambda *_: [])
    spec = Spec(9, 0, "legitimate", load_schedule("churn"), closure=RECONFIGURATION)
    outcome, book = run(WatchedWorld(subscriptions=30), spec)
    assert book.missed(outcome.intervals + 40) != []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_all_layers_heal_from_arbitrary_states(
    scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Ring, fingers, searches, tables, clocks and messages at any values; then Definition 2.

    Leases and memories are made for links of at most 1.5 intervals: slower ones still heal.
    """
    for seed in range(seeds(1, 40)):
        strategy = stream(seed, scheduler).choice(STRATEGIES)
        overlay = WatchedWorld(subscriptions=20, strategy=strategy)
        spec = Spec(seeds(5, 7), seed, scheduler=scheduler)
        outcome = Trial(overlay, spec).run()
        assert outcome.failure is None, spec.command(overlay)
        figures = outcome.metrics
        if scheduler in ("fifo", "lifo"):
            assert overlay.within_bound, spec.command(overlay)
            assert (figures["missed"], figures["twice"], figures["unwanted"]) == (0, 0, 0)


def test_legitimate_content_overlay_stays() -> None:
    overlay = ContentOverlay(subscriptions=40, strategy="merging")
    outcome = Trial(overlay, Spec(12, 1, "legitimate", closure=30)).run()
    assert outcome.failure is None
    assert outcome.intervals == 0


def settled(brokers: int) -> dict[NodeId, ContentBroker]:
    overlay = ContentOverlay(subscriptions=20)
    start = Trial(overlay, Spec(brokers, 0, "legitimate")).simulator.nodes
    return {id: node for id, node in start.items() if isinstance(node, ContentBroker)}


def test_links_of_a_broker_follow_its_place_in_the_tree_on_every_input() -> None:
    broker = next(it for it in settled(8).values() if len(it.links) == 3)
    broker.host.place.children = broker.host.place.children[:1]
    broker.on_timeout()
    assert sorted(broker.links) == sorted(broker.host.neighbours)
    assert broker.parent == broker.host.place.parent


def test_broker_that_leaves_lets_its_links_and_clients_go() -> None:
    broker = settled(8)[3]
    effects: list[Effect] = [*broker.on_command(Leave())]
    assert any(isinstance(it, TreeLink) and not it.up for it in effects)
    assert broker.links == {}
    assert broker.clients == {}


def test_broker_that_leaves_hands_over_what_nobody_else_may_have() -> None:
    broker = settled(8)[3]
    beside = [broker.host.dht.predecessor, broker.host.dht.successor]
    links = list(broker.links)
    lost = broker.on_command(
        Publish("t", b"only copy", {"kind": "fire", "level": 3, "urgent": True})
    )
    reached = [it.target for it in lost if isinstance(it, Send)]
    assert reached  # and none of these sends ever arrives
    handed = [
        it.target
        for it in broker.on_command(Leave())
        if isinstance(it, Send) and isinstance(it.message, Notify)
    ]
    assert sorted(handed) == sorted({it for it in (*beside, *links) if it is not None})


@pytest.mark.parametrize("command", [Publish("t"), Subscribe("t")])
def test_broker_that_has_left_serves_nobody(command: Publish | Subscribe) -> None:
    broker = settled(8)[3]
    broker.on_command(Leave())
    with pytest.raises(UsageError, match="ask another"):
        broker.on_command(command)
