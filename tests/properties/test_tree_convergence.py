"""The tree becomes the one right tree from anything, and both ends of every link agree."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.tree.legitimacy import is_tree
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.overlay import TreeOverlay, give_links
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, load_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

# A tree reads no clock; all other faults there are.
NEMESES = sorted({*NAMED} - {"none", "skew"})


class Placed(TreeOverlay):
    """Hosts on 16 keys, each at the key that is its id."""

    def __init__(self) -> None:
        super().__init__(space=KeySpace(4, lambda host: host))

    def network(self, ids: list[NodeId]) -> list[TreeHost]:
        """A legitimate network of these hosts, each of which knows the first."""
        hosts = [TreeHost(id, self.space, self.tree, (ids[0],)) for id in ids]
        give_links(hosts)
        return hosts


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_tree_converges_from_arbitrary_states(
    scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Arbitrary neighbours, running searches, answers and everything below in the DHT."""
    for seed in range(seeds(4, 300)):
        spec = Spec(n=1 + 3 * seed % 17, seed=100 + seed, scheduler=scheduler)
        outcome = must_heal(TreeOverlay(), spec)
        assert outcome.metrics["tree"]
        assert outcome.metrics["degree_max"] <= 3


@pytest.mark.parametrize("detected", [True, False])
@pytest.mark.parametrize("nemesis", NEMESES)
def test_tree_heals_after(nemesis: str, detected: bool, seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(1, 50)):
        spec = Spec(14, seed, "legitimate", load_schedule(nemesis))
        trial = Trial(TreeOverlay(), spec)
        trial.simulator.detects_failed_sends = detected
        outcome = trial.run()
        assert outcome.failure is None, spec.command(trial.overlay)
        assert outcome.ineffective == []


@pytest.mark.parametrize("degree", [4, 7])
def test_wide_tree_converges_from_arbitrary_states_under_churn(degree: int) -> None:
    spec = Spec(16, degree, faults=load_schedule("churn"))
    assert must_heal(TreeOverlay(degree), spec).metrics["tree"]


def test_everybody_joins_at_once() -> None:
    assert must_heal(TreeOverlay(), Spec(40, 1, "fresh")).metrics["tree"]


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_legitimate_tree_stays(n: int) -> None:
    assert must_heal(TreeOverlay(), Spec(n, 0, "legitimate", closure=60)).intervals == 0


def run_until_right(overlay: TreeOverlay, simulator: Simulator, most: int = 60) -> int:
    for interval in range(most):
        if not overlay.violations(simulator.states(), simulator.channel()):
            return interval
        simulator.run_interval()
    raise AssertionError(overlay.violations(simulator.states(), simulator.channel())[:3])


def links(simulator: Simulator) -> dict[NodeId, list[NodeId]]:
    return {
        id: sorted(node.neighbours)
        for id, node in sorted(simulator.nodes.items())
        if isinstance(node, TreeHost)
    }


def test_two_hosts_join_at_once_where_the_printed_rule_leaves_a_cycle() -> None:
    """Erratum 3: {1, 5, 6, 9} and 4 and 8 together, over the live DHT."""
    for seed in range(10):
        overlay, simulator = Placed(), Simulator(seed)
        for host in overlay.network([1, 5, 6, 9]):
            simulator.add(host)
        for id in (4, 8):
            simulator.add(TreeHost(id, overlay.space, overlay.tree, (1,)))
        run_until_right(overlay, simulator)
        assert links(simulator) == {1: [8, 9], 4: [6, 8], 5: [6], 6: [4, 5], 8: [1, 4], 9: [1]}


def test_worked_example_of_3_5_over_the_live_dht() -> None:
    """Join of h4, crash of h13; h11 and h15 have nothing to do with the join."""
    overlay, simulator = Placed(), Simulator(3)
    for host in overlay.network([5, 9, 11, 13, 15]):
        simulator.add(host)
    assert links(simulator) == {5: [9], 9: [5, 13], 11: [13], 13: [9, 11, 15], 15: [13]}
    simulator.add(TreeHost(4, overlay.space, overlay.tree, (9,)))
    run_until_right(overlay, simulator)
    assert links(simulator) == {
        4: [5, 9],
        5: [4],
        9: [4, 13],
        11: [13],
        13: [9, 11, 15],
        15: [13],
    }
    simulator.remove(13)
    run_until_right(overlay, simulator)
    assert links(simulator) == {4: [5, 9], 5: [4], 9: [4, 15], 11: [15], 15: [9, 11]}


def test_any_join_and_crash_on_sixteen_keys_ends_in_the_right_tree(
    seeds: Callable[[int, int], int],
) -> None:
    """Several at once, hosts at both ends of the key space and wrapped keysets among them."""
    for seed in range(seeds(15, 1000)):
        rng, overlay, simulator = Random(seed), Placed(), Simulator(seed)
        ids = sorted(rng.sample(range(16), rng.randint(3, 10)))
        for host in overlay.network(ids):
            simulator.add(host)
        free = [id for id in range(16) if id not in ids]
        for id in rng.sample(free, rng.randint(0, 3)):
            simulator.add(TreeHost(id, overlay.space, overlay.tree, (ids[0],)))
        for id in rng.sample(ids[1:], rng.randint(0, 2)):
            simulator.remove(id)
        run_until_right(overlay, simulator)
        assert is_tree(links(simulator))
