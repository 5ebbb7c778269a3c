"""Peers whose history is on disk: crashes at any point, restarts, and the faults of a ring."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Publish, PublishMany, Restarted
from planaria.core.state import State
from planaria.lab.incidents.disk_ring import CommittingWriter, DiskRing, Disks, commit
from planaria.network.store import database
from planaria.network.store.database import Database
from planaria.network.store.opening import FILE
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.overlay import TOPIC
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.records import positions
from planaria.records.window import Window
from planaria.simulator.doors import PowerCut
from planaria.simulator.engine import Entry, Simulator
from planaria.simulator.schedule import compose, load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial
from records_lab import NOW, A, record, shuffled

FAULTS = (
    "partition", "blip", "crash", "restart", "churn", "replay", "lossy", "pause", "skew", "bitflip",
    "corrupt",
)  # fmt: skip


@pytest.fixture(autouse=True)
def committing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases write at commits alone."""
    monkeypatch.setattr(database, "Writer", CommittingWriter)


class Applications:
    """What was handed to the applications of each life of each node."""

    def __init__(self) -> None:
        self.handed: dict[NodeId, list[Counter[bytes]]] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        if kind == "start":
            self.handed.setdefault(node, []).append(Counter())
        if isinstance(effect, Deliver):
            self.handed[node][-1].update(one.payload for one in effect.publications)

    def ever(self, node: NodeId) -> set[bytes]:
        return {payload for life in self.handed[node] for payload in life}


class Network:
    """A legitimate ring on disks, whose peers lose their power when they are told to."""

    def __init__(self, root: Path, n: int, seed: int, retention: Retention | None = None) -> None:
        self.ring = DiskRing(root, retention)
        self.simulator, self.applications = Simulator(seed), Applications()
        self.disks = Disks(self.ring)
        self.disks.simulator = self.simulator
        self.simulator.persisted = {}
        for observer in (self.disks, self.applications):
            self.simulator.watch(observer)
        for node in self.ring.legitimate(n, self.simulator.rng):
            self.simulator.add(node)
        self.simulator.run_interval()

    def cut(self, id: NodeId, *, after: bool) -> None:
        """The next time that `id` persists, its power fails just before or just after."""

        def happen() -> None:
            simulator, state = self.simulator, (self.simulator.persisted or {}).get(id)
            simulator.remove(id)
            node = self.ring.spawn(id, simulator.rng)
            simulator.add(node)
            if state is not None:
                simulator.perform(id, node.restore(state))
                simulator.command(id, Restarted())

        self.simulator.power_cuts[id] = PowerCut(after, happen)

    def payloads(self, id: NodeId) -> Counter[bytes]:
        """What a peer can read."""
        return Counter(one.payload for one in self.ring.store(id).read({}).publications())


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Callable[..., Network]]:
    made: list[Network] = []

    def make(n: int, seed: int = 0, retention: Retention | None = None) -> Network:
        made.append(Network(tmp_path / str(len(made)), n, seed, retention))
        return made[-1]

    yield make
    for one in made:
        one.ring.close()
    assert [one.ring.said for one in made] == [[]] * len(made)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_publisher_that_loses_its_power_has_published_to_all_or_to_none(
    network: Callable[..., Network], after: bool
) -> None:
    """Before it is on disk nobody has heard of it; after, all end up with it, though it was never
    sent. The application that publishes again after the crash is not taken for the one before."""
    net = network(5)
    net.simulator.command(2, Publish(TOPIC, b"first"))
    net.simulator.run(300)
    net.cut(2, after=after)
    net.simulator.command(2, Publish(TOPIC, b"cut"))
    assert 2 not in net.simulator.power_cuts
    net.simulator.command(2, Publish(TOPIC, b"again"))
    net.simulator.run(3000)
    expected = Counter([b"first", b"again", *([b"cut"] if after else [])])
    for id in range(5):
        assert net.payloads(id) == expected
        assert net.applications.ever(id) >= {*expected} - ({b"cut"} if id == 2 else set())
        assert all(count == 1 for life in net.applications.handed[id] for count in life.values())
    streams = {one.incarnation for one in net.ring.records(0)}
    assert len(streams) == 2, "each start numbers in an incarnation of its own"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_subscriber_that_loses_its_power_is_handed_it_in_this_life_or_the_next(
    network: Callable[..., Network], after: bool
) -> None:
    net = network(4)
    net.cut(3, after=after)
    net.simulator.command(0, Publish(TOPIC, b"news"))
    net.simulator.run(3000)
    assert 3 not in net.simulator.power_cuts
    assert [life[b"news"] for life in net.applications.handed[3]] == [1, 0 if after else 1]
    assert net.payloads(3) == {b"news": 1}


def test_any_power_cuts_leave_all_disks_alike_and_nothing_twice(
    network: Callable[..., Network], seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(4, 100)):
        random = Random(seed)
        net = network(random.randrange(2, 6), seed, random.choice([None, Retention(count=20)]))
        n, published = len(net.ring.databases), dict[bytes, NodeId]()
        for number in range(30):
            if random.random() < 0.3:
                net.cut(random.randrange(n), after=random.random() < 0.5)
            published[b"%d" % number] = publisher = random.randrange(n)
            net.simulator.command(publisher, Publish(TOPIC, b"%d" % number))
            net.simulator.run(random.choice([1, 20, 150]))
        net.simulator.power_cuts.clear()
        net.simulator.run(4000)
        held = [net.ring.records(id) for id in range(n)]
        assert all(one == held[0] for one in held), seed
        kept = net.payloads(0)
        assert max(kept.values()) == 1, seed
        assert len(kept) >= 15, seed
        for id in range(n):
            lives = net.applications.handed[id]
            assert all(count == 1 for life in lives for count in life.values()), seed
            if not net.ring.retention.count:
                # Its own, cut off between disk and application, only a reader by position gets.
                others = {one for one in kept if published[one] != id}
                assert others <= net.applications.ever(id), seed


def _topics(state: State) -> Collection[str]:
    assert isinstance(state, PeerState)
    return state.topics


@pytest.mark.parametrize("nemesis", FAULTS)
def test_publications_on_disk_survive(nemesis: str, tmp_path: Path) -> None:
    """The same as in memory: published before, during and after the fault."""
    before, after = parse_schedule("at 0 publish count=6"), parse_schedule("at 7 publish count=4")
    faults = compose(before, load_schedule(nemesis), after)
    with closing(DiskRing(tmp_path)) as ring:
        disks = Disks(ring)
        trial = Trial(ring, Spec(8, 3, "legitimate", faults, intervals=150), [disks])
        outcome = trial.run()
        assert outcome.failure is None
        states = trial.simulator.states()
        alive = [id for id in ring.databases if id in states and TOPIC in _topics(states[id])]
        assert len({frozenset(ring.records(id)) for id in alive}) == 1
        assert len(ring.store(alive[0])) >= 6
        assert disks.commits > 8
    assert ring.said == []


def test_arbitrary_memory_of_all_peers_at_once_costs_nothing_that_is_on_disk(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    """Found by `planaria chaos`: an index was mended from its own damaged entries, not the file."""
    faults = parse_schedule("at 0 publish count=8\nat 6 corrupt share=1\nat 30 corrupt share=1")
    for seed in range(seeds(3, 400)):
        with closing(DiskRing(tmp_path / str(seed))) as ring:
            trial = Trial(ring, Spec(4, seed, "legitimate", faults, intervals=200), [Disks(ring)])
            assert trial.run().failure is None, seed
            for id in ring.databases:
                held = {one.payload for one in ring.store(id).read({}).publications()}
                assert {f"publication {number}".encode() for number in range(8)} <= held, seed
        assert ring.said == []


def test_a_state_holds_no_record_that_is_on_disk(network: Callable[..., Network]) -> None:
    """`snapshot` is as long with a full history as with an empty one: it never stops the loop."""
    net = network(3)
    state = net.simulator.nodes[0].snapshot()
    for _ in range(40):
        net.simulator.command(0, PublishMany(TOPIC, [Publish(TOPIC, bytes(1000))] * 20))
        net.simulator.run(20)
    net.simulator.run(60)
    for id in range(3):
        peer = net.simulator.nodes[id]
        assert isinstance(peer, Peer)
        assert len(net.ring.store(id)) == 800
        assert peer.topics[TOPIC].history.broadcast.handed_bytes > 100_000 or id
        assert len(peer.snapshot()) < len(state) + 500
    net.simulator.remove(1)
    again = net.ring.spawn(1, net.simulator.rng)
    net.simulator.add(again)
    again.restore(peer.snapshot())
    assert len(net.ring.store(1)) == 800, "they were on disk all the time"


def test_a_store_that_refuses_is_told_and_gets_it_from_peers_later(
    network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is back-pressure at one peer, no loss."""
    net = network(4)
    writer = net.ring.databases[2].writer
    assert writer is not None
    writer.stalled = OSError("disk full")
    net.simulator.command(0, Publish(TOPIC, b"while full"))
    net.simulator.run(200)
    assert net.payloads(2) == {}
    writer.stalled = None
    net.simulator.run(3000)
    assert all(net.payloads(id) == {b"while full": 1} for id in range(4))
    assert net.applications.ever(2) == {b"while full"}


@pytest.mark.parametrize("damage", ["cut in half", "bytes flipped", "emptied"])
def test_what_a_damaged_disk_lost_comes_back_from_peers_and_nothing_wrong_is_handed_out(
    tmp_path: Path, damage: str
) -> None:
    net = Network(tmp_path, 4, 0)
    with closing(net.ring) as ring:
        payloads = Counter(b"%d" % number * 300 for number in range(40))
        for number, payload in enumerate(payloads):
            net.simulator.command(number % 4, Publish(TOPIC, payload))
            net.simulator.run(20)
        net.simulator.run(1000)
        assert net.payloads(2) == payloads
        net.simulator.remove(2)
        ring.databases.pop(2).close()
        file = tmp_path / "2" / FILE
        data = bytearray(file.read_bytes())
        if damage == "bytes flipped":
            for at in range(5000, len(data), 3000):
                data[at] ^= 0xFF
        file.write_bytes(data if damage == "bytes flipped" else data[: len(data) // 2])
        if damage == "emptied":
            file.write_bytes(b"")
        net.simulator.add(ring.spawn(2, net.simulator.rng))
        assert len(net.payloads(2)) < 40
        net.simulator.run(3000)
        assert net.payloads(2) == payloads
        assert all(ring.records(id) == ring.records(0) for id in range(4))
        assert {*net.applications.handed[2][-1]} <= {*payloads}
        assert ring.said
    assert len(ring.said) <= 2, "one line for what was found at the start, one for what is read"


def test_a_start_remembers_what_was_delivered_in_whatever_order_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks made row by row would have more holes on the way than are remembered."""
    held = [record(A, number, 1, time=NOW + number // 50) for number in range(60) if number != 5]
    monkeypatch.setattr(positions, "INTERVALS_MAX", 1000)
    with Database(tmp_path) as before:
        store = before.topic(TOPIC)
        store.append(shuffled(held, 3))
        commit(store)
    monkeypatch.setattr(positions, "INTERVALS_MAX", 8)
    with Database(tmp_path) as after:
        store = after.topic(TOPIC)
        assert store.delivered.given_up == 0
        (arrival,) = store.append([record(A, 5, 1, time=NOW)])
        assert arrival.new == [(5, 6)]
        (arrival,) = store.append([record(A, 3, 5, time=NOW)])
        assert arrival.new == [], "other bounds, the same positions"
        store.append([record(A, 60, 1, time=NOW + 50)])
        store.show(Window(NOW + 1))  # hides the first fifty
        store.purge([Window()])
        commit(store)
    with Database(tmp_path) as last:
        store = last.topic(TOPIC)
        store.show(Window(NOW + 1))
        (arrival,) = store.append([record(A, 48, 4, time=NOW + 1)])
        assert arrival.new == []
        commit(store)
