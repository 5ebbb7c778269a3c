"""End of ERRATA 3: what a change of the tree costs under each reading; ours loses nothing."""

from typing import Any

import pytest

from planaria.literal.routing_tree import PrintedTreeBroker
from planaria.protocols.routing.overlay import RoutingOverlay, TreeBroker
from planaria.simulator.delays import INTERVAL
from routing_tree import NOTICE, REACH, ChangingTree

PRINTED = {"replaces": True, "exchanges": False, "cancels": False, "replays": False}


def lost(readings: dict[str, bool] | None, change: str, seeds: int = 4) -> int:
    """Publications lost in runs with one change each; None: our own broker."""
    total = 0
    for seed in range(seeds):
        overlay = RoutingOverlay("simple", subscriptions=20, rho=6)
        tree = ChangingTree(overlay, 13, seed, within=REACH + NOTICE)
        if readings is not None:
            _replace_brokers(tree, readings)
        tree.run(12 * INTERVAL, every=5 * INTERVAL)
        changed = getattr(tree, change)()
        tree.run(30 * INTERVAL, every=20)
        tree.run(REACH + NOTICE, every=10**9)
        missed = tree.book.missed(tree.now)
        total += sum(changed not in (it.publication.node, it.client[0]) for it in missed)
    return total


def _replace_brokers(tree: ChangingTree, readings: dict[str, bool]) -> None:
    """Put the literal broker in the place of each, with the same state."""
    options: dict[str, Any] = {**tree.overlay.options, **readings}
    for id in list(tree.simulator.nodes):
        old = tree.broker(id)
        arguments = (id, old.neighbours, old.upwards, old.timing, old.rng)
        broker = PrintedTreeBroker(*arguments, **options)
        broker.restore(old.snapshot())
        tree.simulator.nodes[id] = broker

    def make(*arguments: Any, **settings: Any) -> TreeBroker:
        return PrintedTreeBroker(*arguments, **{**settings, **readings})

    tree.make = make


@pytest.mark.parametrize("change", ["join", "crash"])
def test_a_change_of_the_tree_loses_publications_unless_all_amendments_are_in(change: str) -> None:
    waiting = lost(PRINTED, change)
    exchanging = lost({**PRINTED, "exchanges": True}, change)
    one_per_link = lost({**PRINTED, "exchanges": True, "replaces": False}, change)
    ours = lost(None, change)
    assert min(waiting, exchanging) > one_per_link > ours == 0
