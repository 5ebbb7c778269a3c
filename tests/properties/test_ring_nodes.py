"""Nodes that are peer, supervisor and directory in one heal from any state, whoever supervises."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from planaria.core.chance import any_integer, combination, stream
from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.node import (
    Busy,
    Clock,
    Command,
    Effects,
    Leave,
    LinkDown,
    LinkUp,
    Node,
    Ready,
    Send,
    Subscribe,
    Supervisors,
)
from planaria.protocols.skipring.directory import Seek
from planaria.protocols.skipring.node import RingNode
from planaria.protocols.skipring.node_overlay import RingNodeOverlay
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE
from planaria.protocols.skipring.pace import PACE_MAX
from planaria.simulator.damage import damage, slots_of, values_of
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from state_lab import goes_on_identically, starts_fresh
from toys import ask

CODEC = Codec(RingNodeOverlay.messages)
FAULTS = (
    "",
    "at 0 publish count=5\nat 1 for 3 partition groups=2\nat 2 publish count=4",
    "at 0 for 6 loss rate=0.3\nat 2 crash count=1\nat 3 join count=2",
    "at 1 leave count=1\nat 2 restart count=2 state=kept\nat 3 publish count=2",
)


def test_from_any_state_wrong_topics_are_forgotten_and_right_ones_found(
    seeds: Callable[[int, int], int],
) -> None:
    """The judge compares every directory with the databases of all supervisors."""
    for number in range(seeds(24, 5_000)):
        n, pace, supervisors, start, faults, scheduler = combination(
            number,
            range(3, 9),
            (1, PACE_MAX),
            (1, 2, 3),
            ("corrupt", "corrupt", "corrupt", "fresh", "wiped"),
            FAULTS,
            SCHEDULERS,
        )
        spec = Spec(n, 7000 + number, start, parse_schedule(faults), scheduler=scheduler)
        outcome = Trial(RingNodeOverlay(supervisors, pace=pace), spec).run()
        assert outcome.legitimate, (number, outcome.violations[:3])
        assert not outcome.relapse, (number, outcome.relapse[:3])


def test_a_corrupt_directory_is_not_legitimate() -> None:
    """Else the test above tests nothing."""
    wrong = 0
    for seed in range(10):
        trial = Trial(RingNodeOverlay(), Spec(4, seed, "corrupt"))
        found = trial.overlay.violations(trial.simulator.states(), [])
        wrong += any(it.invariant == "directory" and "wrongly" in it.detail for it in found)
        unknown = [it for it in found if it.invariant == "directory" and "not" in it.detail]
        wrong += bool(unknown)
    assert wrong > 9


SETS = ((0,), (1,), (0, 1), (1, 2), (0, 1, 2), (2, 3))


def test_the_ring_is_legitimate_again_after_another_set_of_nodes_supervises(
    seeds: Callable[[int, int], int],
) -> None:
    """Newcomers know nothing, those who go die or go on as plain nodes, each hears of it late."""
    for number in range(seeds(50, 5_000)):
        before, after, n, pace, goes, late = combination(
            number, SETS, SETS, (1, 2, 5, 8), (1, PACE_MAX), ("dead", "resigned"), (0, 3, 30)
        )
        rng = stream(number, "sets")
        change = Change(n, tuple(SUPERVISOR_BASE + it for it in before), number, pace)
        change.simulator.run(100 * rng.randrange(1, 60))
        change.to(tuple(SUPERVISOR_BASE + it for it in after), goes == "dead", late, rng)
        change.heals(number)


class Change:
    """A ring whose supervisors change in the middle of a run."""

    def __init__(self, n: int, supervisors: tuple[NodeId, ...], seed: int, pace: int = 1) -> None:
        self.overlay = RingNodeOverlay(pace=pace)
        self.overlay.supervisors = supervisors
        self.simulator = Simulator(seed)
        for node in self.overlay.fresh(n, self.simulator.rng):
            self.simulator.add(node)

    def to(self, supervisors: tuple[NodeId, ...], dead: bool, late: int, rng: Random) -> None:
        old, self.overlay.supervisors = self.overlay.supervisors, supervisors
        for id in set(old) - set(supervisors):
            self.simulator.remove(id)
            if not dead:  # it begins anew, as a node that supervises nothing
                self.simulator.add(RingNode(id, supervisors, self.simulator.rng, supervise=False))
        for id in set(supervisors) - set(old):
            self.simulator.add(self.overlay.spawn(id, self.simulator.rng))
        others = [id for id in self.simulator.nodes if id not in set(supervisors) - set(old)]
        for id in rng.sample(others, len(others)):
            self.simulator.command(id, Supervisors(supervisors))
            self.simulator.run(rng.randrange(100 * late // len(others) + 1))

    def heals(self, number: int) -> None:
        n = len(self.simulator.nodes)
        bound = self.overlay.bound(n, 0.5) + self.overlay.unnoticed(n)
        calm, found = 0, self.overlay.violations(self.simulator.states(), [])
        for _ in range(bound):
            self.simulator.run_interval()
            found = self.overlay.violations(self.simulator.states(), self.simulator.channel())
            calm = 0 if found else calm + 1
            if calm == self.overlay.calm:
                return
        raise AssertionError(f"{number}: {found[:3]}")


def test_without_any_supervisor_nobody_raises_and_the_next_one_is_found() -> None:
    for seed in range(6):
        change = Change(5, (SUPERVISOR_BASE,), seed)
        before, without = combination(seed, (10, 12, 15), (10, 70))
        change.simulator.run(100 * before)
        rng = stream(seed, "none")
        change.to((), dead=True, late=2, rng=rng)
        change.simulator.run(100 * without)
        assert change.overlay.violations(change.simulator.states(), [])
        change.to((SUPERVISOR_BASE + 1,), dead=True, late=2, rng=rng)
        change.heals(seed)


def commands(ids: list[NodeId], rng: Random) -> Iterator[Command]:
    """Anything that a driver or an application may tell."""
    peer = rng.choice([*ids, any_integer(rng, *ids)])
    some = tuple(rng.choice([*ids, any_integer(rng, *ids)]) for _ in range(rng.randrange(4)))
    yield from (LinkDown(peer), LinkUp(peer), Busy(peer), Ready(peer), Supervisors(some))
    yield from (Clock(any_integer(rng, 0)), Seek("news"), Seek("a/#"), Seek(""), Leave())
    yield from (Subscribe("news/#"), Subscribe("+/ghost"), Subscribe("other"))


def check(effects: Effects) -> None:
    for effect in effects:
        if isinstance(effect, Send):
            assert CODEC.decode(CODEC.encode(effect.message)) == effect.message
            assert 0 <= effect.target <= NODE_ID_MAX


def test_no_input_raises_while_memory_is_damaged_between_any_two(
    seeds: Callable[[int, int], int],
) -> None:
    damaged = 0
    for seed in range(seeds(30, 5_000)):
        rng = stream(seed, "ring nodes")
        start, n = combination(seed, ("fresh", "legitimate", "corrupt"), range(1, 7))
        overlay = RingNodeOverlay(2, histories=False)
        nodes = overlay.start(start, n, rng, rng).nodes
        ids = [node.id for node in nodes]
        first = {node.id: values_of(slots_of(overlay, node)) for node in nodes}
        for _ in range(30):
            node = rng.choice(nodes)
            if rng.random() < 0.4:
                damaged += bool(damage(overlay, node, ids, rng, first[node.id]))
            for _ in range(rng.randint(1, 3)):
                try:
                    check(any_input(overlay, node, ids, rng))
                except CapacityExceeded:
                    continue  # a full node says no to its own application
    assert damaged


def any_input(overlay: RingNodeOverlay, node: Node, ids: list[NodeId], rng: Random) -> Effects:
    kind = rng.random()
    if kind < 0.2:
        return node.on_timeout()
    if kind < 0.4:
        return ask(node, rng.choice(list(commands(ids, rng))))
    message = overlay.forge(ids, rng)[1]
    return node.on_message(message, overlay.speaker(message) or rng.choice(ids))


def test_a_node_replaced_by_its_bytes_goes_on_identically(
    seeds: Callable[[int, int], int],
) -> None:
    for number in range(seeds(8, 500)):
        n, start, faults = combination(number, range(2, 7), ("corrupt", "fresh"), FAULTS)
        schedule = parse_schedule(faults if n > 2 else "")
        spec = Spec(n, 300 + number, start, schedule, closure=6)
        at = stream(number, "intervals").sample(range(8), 3)
        goes_on_identically(RingNodeOverlay(histories=False), spec, at)


def test_bytes_that_are_no_state_leave_a_node_fresh() -> None:
    for seed in range(3):
        starts_fresh(RingNodeOverlay(), Spec(4, seed, "corrupt"))


@pytest.mark.parametrize("supervise", [True, False])
def test_a_node_may_begin_or_cease_to_supervise_with_its_old_state(*, supervise: bool) -> None:
    trial = Trial(RingNodeOverlay(), Spec(4, 1, "corrupt"))
    for node in trial.simulator.nodes.values():
        fresh = RingNode(node.id, (), Random(1), supervise=supervise)
        assert fresh.restore(node.snapshot()) == ()
        assert (fresh.supervisor is not None) is supervise
        check(fresh.on_timeout())
