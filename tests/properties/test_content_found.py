"""States and runs of the content overlay that were wrong, or judged wrongly."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Send
from planaria.filters.filters import Filter, filter_id
from planaria.filters.sql import parse
from planaria.filters.values import Values
from planaria.protocols.content.node import ContentBroker
from planaria.protocols.content.overlay import ContentOverlay
from planaria.protocols.dht.messages import AskFinger
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.messages import Notify, Update
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.timing import timing
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.content import ContentWorld
from raw_memory import live_through

TIMING = timing(3, (0, 1.5), 2)
EMPTY = Filter((("a", Values()),))


def broker(strategy: str = "covering", *, hierarchical: bool = False) -> Broker:
    found = Broker(0, TIMING, Random(1), strategy=strategy, hierarchical=hierarchical)
    found.set_links([1, 2], 1)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "values",
    [
        Values(),
        Values(booleans=((0, 1 << 40),)),
        Values(numbers=(((1 << 2000, 0), (1 << 2001, 1)),)),
        Values(topics=("a/#/b",)),
    ],
)
def test_a_lease_of_what_no_condition_means_is_told_to_nobody_and_runs_out(
    strategy: str, values: Values
) -> None:
    it, filter = broker(strategy), Filter((("a", values),))
    it.table.entries[2] = {7: Lease(filter)}
    it.announcer.changed(it.links)
    for _ in range(2 * TIMING.pi):
        for effect in it.on_timeout():
            assert getattr(effect, "message", None) is None or not effect.message.leases  # type: ignore[attr-defined]
    it.link_up(2)
    assert it.table.entries == {}


def test_a_name_that_was_remembered_wrongly_is_forgotten_after_a_leasing_period() -> None:
    """A right lease was refused for ever: its id was not what the broker remembered."""
    it = broker()
    (filter,) = parse("a = 1")
    it.announcer.ids[filter] = 5
    renewed = Update(1, 1, ((filter_id(filter), filter),))
    it.on_message(renewed)
    assert it.table.of(1) == {}
    for _ in range(TIMING.pi):
        it.on_timeout()
    it.on_message(renewed)
    assert list(it.table.of(1)) == [filter_id(filter)]


def test_a_root_forgets_a_parent_that_is_no_neighbour() -> None:
    it = broker(hierarchical=True)
    it.set_links([1, 2], None)
    it.parent = 99
    it.set_links([1, 2], None)
    assert it.parent is None
    it.parent = 99
    it.set_links([1, 2], 2)
    assert it.parent == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whatever_memory_holds_no_handler_raises_and_all_it_says_can_be_sent(
    strategy: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(8, 1_000)):
        rng = stream(seed, "raw", strategy)
        live_through(ContentOverlay(subscriptions=8, strategy=strategy), rng)
        live_through(RoutingOverlay(strategy, hierarchical=True, subscriptions=8), rng)


def test_a_forged_notification_is_gone_when_it_can_be_replayed_no_more() -> None:
    """It was judged by what lies in memory, for up to four periods: 200 intervals were too few."""
    faults = parse_schedule("at 2 for 0.2 partition groups=3")
    spec = Spec(13, 7000122, faults=faults, scheduler="priority")
    overlay = ContentWorld()
    outcome = Trial(overlay, spec).run()
    assert outcome.failure is None
    assert outcome.intervals <= overlay.bound(13, 4.5)


def test_a_publication_by_a_fault_schedule_is_in_the_books() -> None:
    spec = Spec(5, 1, "legitimate", parse_schedule("at 4 publish count=3\nat 5 crash count=1"))
    overlay = ContentWorld(subscriptions=30)
    figures = Trial(overlay, spec).run().metrics
    at = [it.time for it in overlay.book().published.values()]
    assert at.count(4) >= 3
    assert (figures["unwanted"], figures["missed"]) == (0, 0)


def test_a_broker_that_left_wants_nothing_when_it_comes_back_with_its_state() -> None:
    """The book began anew with the subscriptions of its clients, and missed what they were due."""
    faults = parse_schedule("at 1 leave count=1\nat 9 restart share=1 state=kept")
    outcome = Trial(ContentWorld(subscriptions=3), Spec(3, 1, "legitimate", faults)).run()
    assert outcome.ineffective == []
    assert outcome.failure is None
    assert outcome.metrics["missed"] == 0


def test_what_a_legitimate_network_does_not_deliver_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All tables are right, so nothing else would show it."""

    hears = ContentBroker.on_message

    def deaf(broker: ContentBroker, message: Message, sender: NodeId | None = None) -> Effects:
        return [] if isinstance(message, Notify) else hears(broker, message, sender)

    monkeypatch.setattr(ContentBroker, "on_message", deaf)
    outcome = Trial(ContentWorld(subscriptions=60), Spec(5, 1, "legitimate", intervals=30)).run()
    assert outcome.failure is not None
    assert "missed" in outcome.failure[1]


@pytest.mark.parametrize("options", [{"brokers": -3}, {"subscriptions": -5}])
def test_less_than_no_brokers_or_subscriptions_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 0"):
        ContentWorld(**options)  # type: ignore[arg-type]


def test_what_is_meant_for_the_dht_finds_sound_neighbours_in_the_tree() -> None:
    """`AskFinger` repaired the DHT only: the links above followed the tree to a parent -1."""
    nodes = Trial(ContentOverlay(subscriptions=4), Spec(4, 1, "legitimate")).simulator.nodes
    it = nodes[1]
    assert isinstance(it, ContentBroker)
    it.host.place.parent, it.host.place.children = -1, (1, 2, 2, 1 << 70)
    targets = [
        effect.target for effect in it.on_message(AskFinger(2, 0)) if isinstance(effect, Send)
    ]
    assert {*targets} <= {0, 2, 3}
    assert {*it.links} <= {0, 2, 3}
