"""Order per publisher is kept on a tree that stays, also over links that do not keep it."""

from random import Random

import pytest

from planaria.core.book import Book
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Publish
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.strategies import STRATEGIES
from planaria.protocols.routing.workload import TOPIC, random_attributes
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.definitions import keep_book

BROKERS = 13


class Order:
    """Counts publications that a client was handed after a later one of the same publisher."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.last: dict[tuple[NodeId, int, NodeId], int] = {}
        self.swapped = 0
        self.compared = 0

    def record(self, tick: int, kind: str, node: NodeId, entry: object, effect: object) -> None:
        if isinstance(effect, Deliver):
            publisher, number = (int(it) for it in effect.publications[0].payload.split(b"."))
            before = self.last.get((node, effect.client, publisher))
            self.compared += before is not None
            self.swapped += before is not None and before > number
            self.last[node, effect.client, publisher] = max(number, before or 0)


def run(strategy: str, up: bool, *, reordering: bool) -> tuple[Order, Book, float]:
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
    order, book = Order(), keep_book(simulator, within=6)
    simulator.watch(order)
    for number in range(400):
        id = rng.randrange(BROKERS)
        payload = f"{id}.{number}".encode()
        simulator.command(id, Publish(TOPIC, payload, random_attributes(rng)))
        simulator.run(rng.randrange(4))
    simulator.run(6 * INTERVAL)
    return order, book, trial.time


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("reordering", [False, True])
def test_a_client_hears_each_publisher_in_its_order_whatever_the_links_do(
    strategy: str, up: bool, reordering: bool
) -> None:
    """Each link has a delay of its own, or reorders; what comes early waits at its end."""
    order, book, end = run(strategy, up, reordering=reordering)
    assert order.compared > 500
    assert order.swapped == 0
    assert book.wrong() == []
    found = book.summary(end)
    assert found.due == found.once > 400
