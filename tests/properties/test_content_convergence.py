"""Three layers that heal: brokers join, crash, leave and go mad, and clients get what they want."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Effect, Send
from planaria.protocols.content.broker import ContentBroker, content_broker
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.node import Leave
from planaria.protocols.routing.broker import Broker
from planaria.protocols.routing.messages import Notify
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.tree.place import TreeLink
from planaria.protocols.tree.reference_tree import BinaryTree
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule, parse_schedule
from planaria.simulator.trial import Outcome, Spec, Trial
from planaria.simulator.worlds.content import ContentWorld

CHANGES = {
    "join": "at 2 join count=3",
    "crash": "at 3 crash count=1\nat 14 crash count=1",
    "leave": "at 3 leave count=2",
    "restart": "at 3 restart count=1 state=none",
    "churn": "at 1 join count=2\nat 2 crash count=1\nat 3 leave count=1\nat 4 join count=1",
}


def run(overlay: ContentWorld, spec: Spec) -> Outcome:
    trial = Trial(overlay, spec)
    outcome = trial.run()
    assert outcome.failure is None, spec.command(overlay)
    assert outcome.metrics["tree"]
    assert outcome.metrics["degree_max"] <= 3
    assert outcome.metrics["within_bound"], spec.command(overlay)
    return outcome


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_changes_of_brokers_lose_nothing_and_duplicate_nothing(
    change: str, strategy: str, seeds: Callable[[int, int], int]
) -> None:
    """From a legitimate start every publication counts, also those in the middle of the change."""
    for seed in range(seeds(1, 40)):
        hierarchical = stream(seed, change, strategy).random() < 0.5
        overlay = ContentWorld(subscriptions=30, strategy=strategy, hierarchical=hierarchical)
        faults = parse_schedule(CHANGES[change])
        spec = Spec(9, seed, "legitimate", faults, asked=("content", "--strategy", strategy))
        figures = run(overlay, spec).metrics
        assert figures["due"] > 30
        assert (figures["missed"], figures["duplicated"], figures["unwanted"]) == (0, 0, 0)


@pytest.mark.parametrize("nemesis", sorted({*NAMED} - {"none"}))
def test_all_layers_heal_after(nemesis: str, seeds: Callable[[int, int], int]) -> None:
    """Every built-in nemesis; whatever it did meanwhile, from then on Definition 1 holds.

    Only the books read the clock, so only they could be led astray by a wrong one.
    """
    for seed in range(seeds(1, 40)):
        strategy = stream(seed, nemesis).choice(STRATEGIES)
        overlay = ContentWorld(subscriptions=30, strategy=strategy)
        spec = Spec(9, seed, "legitimate", load_schedule(nemesis), intervals=400)
        trial = Trial(overlay, spec)
        overlay.settled = None  # messages that a nemesis drops are lost; what follows is owed
        outcome = trial.run()
        assert outcome.failure is None, spec.command(overlay)
        assert outcome.ineffective == [], spec.command(overlay)
        figures = outcome.metrics
        assert figures["within_bound"], spec.command(overlay)
        assert figures["due"] > 10
        assert (figures["missed"], figures["duplicated"], figures["unwanted"]) == (0, 0, 0)


def test_books_see_what_is_lost_without_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of missed publications bites: without replay over new links there are some."""
    monkeypatch.setattr(Broker, "_replay", lambda *_: [])
    overlay = ContentWorld(subscriptions=30)
    outcome = Trial(overlay, Spec(9, 0, "legitimate", load_schedule("churn"))).run()
    assert outcome.metrics["missed"] > 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_all_layers_heal_from_arbitrary_states(
    scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Ring, fingers, searches, tables, clocks and messages at any values; then Definition 2.

    Leases and memories are made for links of at most 1.5 intervals: slower ones still heal.
    """
    for seed in range(seeds(1, 40)):
        strategy = stream(seed, scheduler).choice(STRATEGIES)
        overlay = ContentWorld(subscriptions=30, strategy=strategy)
        spec = Spec(7, seed, scheduler=scheduler, intervals=400)
        outcome = Trial(overlay, spec).run()
        assert outcome.failure is None, spec.command(overlay)
        figures = outcome.metrics
        if scheduler in ("fifo", "lifo"):
            assert figures["within_bound"], spec.command(overlay)
            assert (figures["missed"], figures["duplicated"], figures["unwanted"]) == (0, 0, 0)


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
    lost = broker.publish({"kind": "fire", "level": 3, "urgent": True}, b"only copy")
    assert lost  # and none of these sends ever arrives
    handed = [
        it.target
        for it in broker.on_command(Leave())
        if isinstance(it, Send) and isinstance(it.message, Notify)
    ]
    reached = [it.target for it in lost if isinstance(it, Send)]
    assert sorted(handed) == sorted({it for it in beside if it is not None} - {*reached})


def test_state_of_all_layers_survives_a_restart() -> None:
    broker = settled(8)[2]
    other = content_broker(2, KeySpace(), BinaryTree(160), (0,), broker.timing, broker.rng)
    other.restore(broker.snapshot())
    assert other.snapshot() == broker.snapshot()
    assert sorted(other.host.neighbours) == sorted(broker.host.neighbours)
