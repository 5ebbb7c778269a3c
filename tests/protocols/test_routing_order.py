"""Order per publisher is kept if the links keep order, whatever their delays; else it is not."""

from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.protocols.routing.commands import DeliverTo, PublishContent
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.workload import random_attributes
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.definitions import DeliveryBook

BROKERS = 13


class Order:
    """Counts publications that a client was handed after a later one of the same publisher."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.last: dict[tuple[NodeId, int, NodeId], int] = {}
        self.swapped = 0
        self.compared = 0

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        if isinstance(effect, DeliverTo):
            publisher, number = (int(it) for it in effect.payload.split(b"."))
            before = self.last.get((node, effect.client, publisher))
            self.compared += before is not None
            self.swapped += before is not None and before > number
            self.last[node, effect.client, publisher] = max(number, before or 0)


def run(strategy: str, up: bool, *, reordering: bool) -> tuple[Order, DeliveryBook, int]:
    """Somebody publishes every one or two ticks, on a tree that stays."""
    overlay, rng = RoutingOverlay(strategy, up, subscriptions=40), Random(7)
    trial = Trial(overlay, Spec(BROKERS, 3, "legitimate"))
    simulator = trial.simulator
    for id in range(1, BROKERS):
        parent = overlay.parent(id)
        assert parent is not None
        for link in ((id, parent), (parent, id)):
            if not reordering:
                simulator.link_delays[link] = parse_delay(f"fixed:{rng.randint(1, 50)}")
    order, book = Order(), DeliveryBook(simulator.nodes)
    simulator.watch(order)
    simulator.watch(book)
    for number in range(400):
        id = rng.randrange(BROKERS)
        payload = f"{id}.{number}".encode()
        simulator.command(id, PublishContent(random_attributes(rng), payload))
        simulator.run(rng.randrange(4))
    simulator.run(6 * INTERVAL)
    return order, book, simulator.tick


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_client_hears_each_publisher_in_its_order_over_links_that_keep_order(
    strategy: str, up: bool
) -> None:
    """Each link has a delay of its own; publications overtake those of other publishers only."""
    order, book, end = run(strategy, up, reordering=False)
    assert order.compared > 500
    assert order.swapped == 0
    assert book.breaches() == []
    assert book.missed(0, 0, end - 6 * INTERVAL) == []


def test_over_links_that_reorder_all_arrive_once_but_not_in_order() -> None:
    """What `Limits` says: a link that reorders is passed on as it is."""
    order, book, end = run("covering", False, reordering=True)
    assert order.swapped > 0
    assert book.breaches() == []
    assert book.missed(0, 0, end - 6 * INTERVAL) == []
