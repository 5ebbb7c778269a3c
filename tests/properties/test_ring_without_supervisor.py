"""Supervisors crash and come back: a database is soft state, and peers help themselves without."""

from collections.abc import Callable, Sequence

import pytest

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Restarted, Subscribe
from planaria.protocols.skipring.legitimacy import topic_violations
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.reference import skip_ring
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.topic_supervisor import SETTLE_TIMEOUTS
from planaria.simulator.engine import Simulator
from ring_lab import RingLab, ring_order

TOPICS = [f"topic/{number}" for number in range(7)]
SEEDS = range(2)
PATIENCE = 120  # intervals: a silent supervisor is waited for, then the next one is tried
CALM = RingOverlay.calm


class TopicsLab:
    """Peers that subscribe to many topics, three supervisors that share them."""

    def __init__(self, n: int, seed: int) -> None:
        overlay, self.simulator = RingOverlay(supervisors=3, topic=TOPICS[0]), Simulator(seed)
        self.supervisors = overlay.supervisors
        for node in overlay.fresh(n, self.simulator.rng):
            self.simulator.add(node)
        rng = stream(seed, "subscriptions")
        for id in range(n):
            for topic in rng.sample(TOPICS, 4):
                self.simulator.command(id, Subscribe(topic))

    def databases(self) -> dict[str, tuple[NodeId, list[NodeId | None]]]:
        """Who serves which topic with which entries."""
        found = {}
        for id in self.supervisors:
            node = self.simulator.nodes.get(id)
            if isinstance(node, Supervisor):
                for topic, served in node.topics.items():
                    assert topic not in found, "two supervisors serve the same topic"
                    found[topic] = (id, list(served.database.entries))
        return found

    def broken(self) -> list[str]:
        return [
            str(violation)
            for topic in TOPICS
            for violation in topic_violations(
                topic, self.supervisors, self.simulator.states(), self.simulator.channel()
            )
        ]

    def heal(self) -> None:
        calm = 0
        for _ in range(PATIENCE + CALM):
            self.simulator.run_interval()
            calm = 0 if self.broken() else calm + 1
            if calm == CALM:
                return
        raise AssertionError(self.broken()[:3])

    def topics_of(self, supervisor: NodeId) -> list[str]:
        return [topic for topic, (id, _) in self.databases().items() if id == supervisor]

    def busiest(self) -> NodeId:
        return max(self.supervisors, key=lambda one: len(self.topics_of(one)))


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_of_a_crashed_supervisor_go_to_their_next_in_order_and_no_others(seed: int) -> None:
    """1.3: the database is rebuilt from the subscribers alone."""
    lab = TopicsLab(12, seed)
    lab.heal()
    before, victim = lab.databases(), lab.busiest()
    assert len(lab.topics_of(victim)) >= 2
    lab.simulator.remove(victim)
    assert any("supervisor" in line or "database" in line for line in lab.broken())
    lab.heal()
    after = lab.databases()
    assert after.keys() == before.keys()
    for topic, (id, entries) in before.items():
        order = [one for one in preference(topic, lab.supervisors) if one != victim]
        assert after[topic][0] == order[0]
        assert sorted(after[topic][1], key=str) == sorted(entries, key=str)
        assert id == victim or after[topic] == (id, entries)


@pytest.mark.parametrize("memory", ["empty", "stale"])
@pytest.mark.parametrize("seed", SEEDS)
def test_supervisor_that_returns_takes_its_topics_back(seed: int, memory: str) -> None:
    """With nothing, or with databases in which the dead live and the new are unknown."""
    lab = TopicsLab(8, seed)
    lab.heal()
    victim = lab.busiest()
    topics, stale = lab.topics_of(victim), lab.simulator.nodes[victim].snapshot()
    lab.simulator.remove(victim)
    lab.simulator.remove(3)
    lab.heal()
    assert not lab.topics_of(victim)
    returned = Supervisor(victim, lab.supervisors)
    if memory == "stale":
        returned.restore(stale)
        assert any(3 in served.database for served in returned.topics.values())
    lab.simulator.add(returned)
    assert lab.broken()
    lab.heal()
    assert sorted(lab.topics_of(victim)) == sorted(topics)
    assert not any(3 in entries for _, entries in lab.databases().values())


# All supervisors down


def connected(n: int, dead: Sequence[NodeId]) -> bool:
    """Do the edges of SR(n) still hold the survivors together?"""
    places, live = skip_ring(n), [id for id in range(n) if id not in dead]
    found, waiting = {live[0]}, [live[0]]
    while waiting:
        place = places[waiting.pop()]
        for other in (place.pred, place.succ, *place.shortcuts):
            if other is not None and other not in found and other not in dead:
                found.add(other)
                waiting.append(other)
    return len(found) == len(live)


def victims(n: int, seed: int) -> list[NodeId]:
    """Up to a third of the members, such that the rest still hangs together."""
    rng = stream(seed, "victims", n)
    while True:
        dead = rng.sample(range(n), rng.randint(1, max(1, n // 3)))
        if connected(n, dead):
            return dead


def closed(lab: RingLab) -> bool:
    """Has every live member its right live neighbours, in the order of positions?"""
    members = lab.members
    if len(members) == 1:
        return members[0].ring == []
    beside = {one.id: tuple(ref and ref[1] for ref in (one.pred, one.succ)) for one in members}
    return all(beside[id] == (before, after) for before, id, after in ring_order(members))


def wait_until(lab: RingLab, true: Callable[[RingLab], bool], within: int) -> None:
    for _ in range(within):
        lab.run()
        if true(lab):
            return
    raise AssertionError(f"not within {within} intervals")


@pytest.mark.parametrize("detected", [True, False])
@pytest.mark.parametrize(
    ("n", "few"), [(2, 2), (3, 2), (8, 1), (13, 1), (20, 1), (32, 0), (100, 0)]
)
def test_peers_close_the_ring_over_the_dead_while_no_supervisor_is_left(
    n: int, few: int, detected: bool, seeds: Callable[[int, int], int]
) -> None:
    """AUTH alone cannot: peers fall back to BuildRing, and stop when a supervisor is back."""
    for seed in range(seeds(few, 60)):
        lab = RingLab.legitimate(n, seed)
        lab.simulator.detects_failed_sends = detected
        (supervisor,) = lab.overlay.supervisors
        for id in (*victims(n, seed), supervisor):
            lab.simulator.remove(id)
        assert not closed(lab)
        wait_until(lab, closed, within=160)
        lab.run(40)
        assert closed(lab), "the ring did not stay closed"
        assert any(one.orphan for one in lab.members)
        lab.simulator.add(Supervisor(supervisor, lab.overlay.supervisors))
        lab.heal(PATIENCE)
        assert not any(one.orphan for one in lab.members)
        assert sorted(lab.recorded, key=str) == sorted(lab.peers, key=str)


@pytest.mark.parametrize("seed", SEEDS)
def test_whole_ring_stays_as_it_is_while_no_supervisor_is_left(seed: int) -> None:
    lab = RingLab.legitimate(20, seed)
    before = [(one.label, one.pred, one.succ, one.shortcuts) for one in lab.members]
    for id in lab.overlay.supervisors:
        lab.simulator.remove(id)
    lab.run(200)
    assert lab.simulator.undeliverable, "nobody asked"
    assert [(one.label, one.pred, one.succ, one.shortcuts) for one in lab.members] == before


# Who knows how many members there are


@pytest.mark.parametrize("returns", [False, True])
def test_a_supervisor_that_is_sure_of_its_members_knows_all_of_them(*, returns: bool) -> None:
    """Publishers rely on it: with a copy at each member there can be no more."""
    for seed in range(8):
        n = 2 + seed % 4
        lab = RingLab.legitimate(n, seed, supervisors=3)
        topic, simulator = lab.overlay.topic, lab.simulator
        first, second, _ = preference(topic, lab.overlay.supervisors)
        for _ in range(8):
            simulator.run_interval()
        simulator.remove(first)
        if returns:
            simulator.run_interval()
            simulator.add(Supervisor(first, lab.overlay.supervisors))
            simulator.command(first, Restarted())
        simulator.add(Peer(n, lab.overlay.supervisors, simulator.rng))
        simulator.command(n, Subscribe(topic))
        serving = lab.supervisor(first if returns else second)
        sure = 0
        for _ in range(3 * SETTLE_TIMEOUTS):
            simulator.run_interval()
            if serving.settled(topic):
                assert len(serving.topics[topic].database) == n + 1
                sure += 1
        assert sure > SETTLE_TIMEOUTS
