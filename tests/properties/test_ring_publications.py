"""Every subscriber ends up with every publication, and is handed each once (Theorems 17, 23)."""

from collections import Counter
from math import log2
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Command, Deliver, Delivery, Node, Notice, Publish, Subscribe
from planaria.core.state import decode_state
from planaria.protocols.publications.antientropy_messages import MESSAGES as ANTIENTROPY
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.arbitrary_history import corrupt_caches
from planaria.protocols.skipring.legitimacy import held_publications, held_records
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.records.record import PAYLOAD_BYTES_MAX, TIME_MAX, Draft
from planaria.simulator.delays import Delay, fixed, uniform
from planaria.simulator.engine import Entry, Simulator
from planaria.simulator.schedule import NAMED, compose, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal


class Deliveries:
    """What every application was handed, in order."""

    def __init__(self) -> None:
        self.handed: dict[NodeId, list[Delivery]] = {}
        self.topics: dict[NodeId, list[str]] = {}
        self.notices: list[tuple[NodeId, Notice]] = []
        self.sent: Counter[str] = Counter()

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        if kind == "send":
            self.sent[type(entry.message).__name__] += 1
        if isinstance(effect, Deliver):
            self.handed.setdefault(node, []).extend(effect.publications)
            self.topics.setdefault(node, []).append(effect.topic)
        if isinstance(effect, Notice):
            self.notices.append((node, effect))


def membership(node: Node) -> Membership:
    assert isinstance(node, Peer)
    return node.topics[TOPIC]


def network(
    n: int, seed: int = 0, overlay: RingOverlay | None = None
) -> tuple[Simulator, Deliveries]:
    """A legitimate ring in a running simulator."""
    simulator, seen = Simulator(seed), Deliveries()
    simulator.watch(seen)
    for node in (overlay or RingOverlay()).legitimate(n, simulator.rng):
        simulator.add(node)
    simulator.run_interval()
    return simulator, seen


def test_theorem_17_a_partition_with_publications_on_both_sides_heals() -> None:
    for seed in range(4):
        seen = Deliveries()
        spec = Spec(16, seed, "partitioned")
        outcome = must_heal(RingOverlay(), spec, [seen])
        assert outcome.metrics["publications"] == 30
        assert {len(handed) for handed in seen.handed.values()} == {30}
        assert len(seen.handed) == 16


@pytest.mark.parametrize("nemesis", sorted(set(NAMED) - {"none"}))
def test_publications_survive(nemesis: str) -> None:
    """Published before, during and after the fault; each subscriber is handed each one once."""
    before, after = parse_schedule("at 0 publish count=8"), parse_schedule("at 7 publish count=4")
    faults = compose(before, load_schedule(nemesis), after)
    trial = Trial(RingOverlay(), Spec(12, 3, "legitimate", faults, intervals=150))
    outcome = trial.run()
    assert outcome.failure is None
    assert set(outcome.ineffective) <= {"at 2 restart share=0.5 state=stale"}
    assert outcome.metrics["publications"] >= 8


def test_a_newcomer_is_handed_the_whole_history() -> None:
    """One side's trie is empty."""
    simulator, seen = network(8)
    for number in range(40):
        simulator.command(number % 8, Publish(TOPIC, b"%d" % number))
    simulator.run(300)
    simulator.add(RingOverlay().spawn(99, simulator.rng))
    simulator.run(2000)
    assert sorted(int(d.payload) for d in seen.handed[99]) == list(range(40))


def test_an_ordered_newcomer_is_handed_the_history_in_order_without_a_notice() -> None:
    simulator, seen = network(8)
    for number in range(400):
        simulator.command(number % 8, Publish(TOPIC, b"%d" % number))
        simulator.run(2)
    node = RingOverlay().spawn(99, simulator.rng)
    membership(node).history.reader.ordered = True
    simulator.add(node)
    simulator.run(3000)
    numbers = [int(d.payload) for d in seen.handed[99]]
    assert sorted(numbers) == list(range(400))
    for publisher in range(8):
        mine = [number for number in numbers if number % 8 == publisher]
        assert mine == sorted(mine)
    assert seen.notices == []


@pytest.mark.parametrize("delay", [fixed(30), uniform(1, 50)], ids=["fixed", "uniform"])
def test_under_steady_load_with_nothing_missing_there_is_no_exchange(delay: Delay) -> None:
    """What is on its way is left alone: digests differ all the time, at the cut they do not."""
    simulator, seen = network(16)
    simulator.delay = delay
    for number in range(300):
        simulator.command(number % 16, Publish(TOPIC, b"%d" % number))
        simulator.run(5)
    assert seen.sent["Arc"] > 250 * 15
    assert [kind.__name__ for kind in ANTIENTROPY if seen.sent[kind.__name__]] == []


def test_every_stored_hash_and_cache_corrupted_is_repaired_and_nothing_lost() -> None:
    simulator, _ = network(8)
    for number in range(60):
        simulator.command(number % 8, Publish(TOPIC, b"%d" % number))
    simulator.run(500)
    rng = Random(5)
    for id in range(8):
        history = membership(simulator.nodes[id]).history
        before = history.holdings.digest(0, TIME_MAX)
        for _ in range(100):
            corrupt_caches(history.antientropy, range(8), rng)
            if history.holdings.digest(0, TIME_MAX) != before:  # a fault that is seen, at each
                break
        else:
            pytest.fail("no fault is seen")
    simulator.run(6000)
    held = [held_publications(simulator.states()[id], TOPIC) for id in range(8)]  # type: ignore[arg-type]
    assert {len(one) for one in held} == {60}
    holdings = [membership(simulator.nodes[id]).history.holdings for id in range(8)]
    assert len({it.digest(0, TIME_MAX) for it in holdings}) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 9, 16, 33])
def test_a_publication_in_a_legitimate_ring_costs_n_minus_1_messages(n: int) -> None:
    simulator, seen = network(n)
    for origin in range(0, n, max(1, n // 4)):
        before = seen.sent.copy()
        simulator.command(origin, Publish(TOPIC, b"news"))
        simulator.run(1500)
        assert seen.sent["Arc"] - before["Arc"] == n - 1
        assert seen.sent["Flood"] == seen.sent["Nack"] == 0
    assert {len(handed) for handed in seen.handed.values()} == {len(range(0, n, max(1, n // 4)))}


@pytest.mark.parametrize("n", [16, 128])
def test_backlog_of_one_node_reaches_all_in_logarithmic_time(n: int) -> None:
    """The paper's ring alone takes about 0.44 n intervals; digests on all edges about log n."""
    simulator, _ = network(n, seed=n)
    history = membership(simulator.nodes[n // 3]).history
    for _ in range(20):
        history.publisher.publish(0, Draft(b"backlog"))
        history.holdings.append(history.publisher.seal(0, None))
    intervals = 0
    while any(len(membership(simulator.nodes[id]).history.holdings) < 20 for id in range(n)):
        simulator.run_interval()
        intervals += 1
        assert intervals < 4 * log2(n) + 6


def test_ordered_subscription_is_handed_each_publishers_numbers_in_order() -> None:
    simulator, seen = network(6)
    for id in range(6):
        membership(simulator.nodes[id]).history.reader.ordered = True
    for number in range(30):
        simulator.command(number % 3, Publish(TOPIC, b"%d" % number))
        simulator.run(7)
    simulator.run(2500)
    for id in range(6):
        for publisher in range(3):
            numbers = [d.sequence for d in seen.handed[id] if d.publisher == publisher]
            assert numbers == list(range(10))


def test_lost_publication_is_reported_as_a_gap_to_an_ordered_subscription() -> None:
    """Number 1 exists nowhere any more: its publisher forgot it before anybody saw it."""
    simulator, seen = network(4)
    histories = [membership(simulator.nodes[id]).history for id in range(4)]
    for history in histories:
        history.reader.ordered = True
    simulator.command(0, Publish(TOPIC, b"a"))
    histories[0].publisher.publish(0, Draft(b"never seen"))
    histories[0].publisher.seal(0, 0)
    simulator.command(0, Publish(TOPIC, b"c"))
    simulator.run(3000)
    assert [d.payload for d in seen.handed[2]] == [b"a", b"c"]
    gaps = [n.detail for id, n in seen.notices if id == 2 and n.kind == "gap"]
    assert [(gap["first"], gap["last"]) for gap in gaps] == [(1, 1)]


class Kept(RingOverlay):
    """A ring whose topic keeps only so much."""

    def __init__(self, retention: Retention) -> None:
        super().__init__()
        self.retention = retention

    def spawn(self, id: NodeId, rng: Random) -> Node:
        node = super().spawn(id, rng)
        if isinstance(node, Peer):
            node = Peer(id, self.supervisors, rng, {TOPIC: self.retention})
            node.on_command(Subscribe(TOPIC))
        return node


def test_count_limit_leaves_all_subscribers_with_the_same_newest_publications() -> None:
    simulator, seen = network(8, overlay=Kept(Retention(count=10)))
    for number in range(40):
        simulator.command(number % 8, Publish(TOPIC, b"%d" % number))
        simulator.run(20)
    simulator.run(3000)
    held = [held_records(simulator.states()[id], TOPIC) for id in range(8)]  # type: ignore[arg-type]
    assert len(set(held)) == 1
    assert len(held[0]) == 10
    before = {id: len(handed) for id, handed in seen.handed.items()}
    simulator.run(3000)
    assert {id: len(handed) for id, handed in seen.handed.items()} == before


def test_age_limit_expires_everywhere_and_nothing_comes_back_even_from_an_old_state() -> None:
    """A node is restored from a state full of expired publications; nobody takes them up."""
    overlay = Kept(Retention(age=64))
    simulator, seen = network(8, overlay=overlay)
    for number in range(20):
        simulator.command(number % 8, Publish(TOPIC, b"%d" % number))
    simulator.run(1000)
    old = simulator.nodes[3].snapshot()
    assert len(held_records(decode_state(PeerState, old), TOPIC)) == 20
    simulator.run(100 * 64 * 2)
    assert all(len(membership(simulator.nodes[id]).history.holdings) == 0 for id in range(8))
    handed = {id: len(all_) for id, all_ in seen.handed.items()}
    simulator.remove(3)
    node = overlay.spawn(3, simulator.rng)
    node.restore(old)
    simulator.add(node)
    simulator.run(3000)
    assert all(len(membership(simulator.nodes[id]).history.holdings) == 0 for id in range(8))
    assert {id: len(all_) for id, all_ in seen.handed.items()} == handed


def test_publishing_needs_a_subscription_and_a_payload_that_fits() -> None:
    simulator, _ = network(2)
    commands: list[Command] = [Publish("other", b""), Publish(TOPIC, bytes(PAYLOAD_BYTES_MAX + 1))]
    for command in commands:
        with pytest.raises(UsageError):
            simulator.nodes[0].on_command(command)


def test_a_subscriber_of_two_topics_takes_part_in_both_rings() -> None:
    simulator, seen = network(6)
    for id in range(3):
        simulator.command(id, Subscribe("weather"))
    simulator.run(1500)
    simulator.command(0, Publish("weather", b"rain"))
    simulator.command(5, Publish(TOPIC, b"extra"))
    simulator.run(1000)
    topics = {id: sorted(named) for id, named in seen.topics.items()}
    assert topics == {id: [TOPIC, "weather"] if id < 3 else [TOPIC] for id in range(6)}
