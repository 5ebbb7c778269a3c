"""Three ways to one number: event-driven simulation, arrays, and the exact chain."""

from collections import Counter
from random import Random
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import derive, stream
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects
from planaria.lab.gossip.baselines import Work, da_multicast, hierarchical
from planaria.lab.gossip.experiment import Reading, Setting, failure_sweep, read_as, run
from planaria.lab.gossip.prediction import complete, predict, reached_distribution
from planaria.lab.gossip.sampling import distinct, others, uniform
from planaria.protocols.gossip.memory import event_memory
from planaria.protocols.gossip.node import GossipNode
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.worlds.gossip import (
    MeasuredGossip,
    StillNode,
    disseminate_once,
    still_copies,
)
from planaria.simulator.worlds.reach import MEASURES, GroupReach, estimated, summarize

Failures = Literal["stillborn", "observer"]

SMALL = (6, 20, 60)
POINTS: list[tuple[float, Failures]] = [
    (0.0, "stillborn"),
    (0.3, "stillborn"),
    (0.6, "stillborn"),
    (0.3, "observer"),
]


def event_driven(
    failed: float, failures: Failures, events: int, seed: int
) -> list[list[GroupReach]]:
    """The same experiment with real processes, one message at a time; new tables now and then."""
    overlay = GossipOverlay(",".join(map(str, SMALL)))
    found: list[list[GroupReach]] = [[] for _ in SMALL]
    still: list[GossipNode] = []
    for number in range(events):
        rng = stream(seed, "tables", number)
        if number % 6 == 0:
            still = still_copies({node.id: node for node in overlay.legitimate(0, rng)}, rng)
        for node in still:
            for topic, group in node.groups.items():
                group.membership.size = SMALL[overlay.topics.index(topic)]
        rows = disseminate_once(
            still, overlay.topics, overlay.topics[-1],
            failed=failed, loss=0.15, failures=failures, seed=derive(seed, number),
        )  # fmt: skip
        for level, topic in enumerate(overlay.topics):
            found[level].append(rows[topic])
    return found


@pytest.mark.parametrize(("failed", "failures"), POINTS)
def test_arrays_agree_with_the_event_driven_simulator(failed: float, failures: Failures) -> None:
    slow = event_driven(failed, failures, 100, 5)
    setting = Setting(SMALL, failed=failed, failures=failures)
    fast = run(setting, 3000, Random(5))
    for level in range(3):
        one, other = summarize(slow[level]), summarize(fast[level])
        for name in MEASURES:
            assert one[name].agrees(other[name], 1e-3), (level, name, one[name], other[name])


@pytest.mark.parametrize(("failed", "failures"), [(0.0, "stillborn"), (0.3, "observer")])
@pytest.mark.parametrize("level", [-1, 1])
def test_arrays_agree_with_the_exact_chain(failed: float, failures: Failures, level: int) -> None:
    setting = Setting(
        SMALL, failed=failed, failures=failures, level=level, parameters=Parameters(c=1.0, g=3.0),
    )  # fmt: skip
    for rows, exact in zip(run(setting, 4000, Random(6)), predict(setting), strict=True):
        found = summarize(rows)
        for name in ("of_all", "of_alive", "p_all", "sent"):
            estimate, value = found[name], float(getattr(exact, name))
            assert abs(estimate.mean - value) <= 2 * estimate.half + 2e-3, (name, estimate, value)


def test_deviation_of_the_chain_is_that_of_many_runs() -> None:
    setting = Setting(SMALL, failed=0.3, failures="observer", parameters=Parameters(c=1.0, g=3.0))
    for rows, exact in zip(run(setting, 4000, Random(7)), predict(setting), strict=True):
        found = float(np.std([row.of_all for row in rows]))
        assert found == pytest.approx(exact.deviation, rel=0.1)


def test_chain_of_three_is_what_counting_all_cases_gives() -> None:
    """Three processes, each sends to one other: the second is always told, the third if lucky.

    Without loss: 0 tells 1 or 2; that one tells 0 or the third. With arrival p: by hand.
    """
    p = 0.8
    found = reached_distribution(3, 3, 1, p, np.array([0.0, 1.0]))
    assert found == pytest.approx([0.0, 1 - p, p * (1 - p / 2), p * p / 2])


@settings(max_examples=30)
@given(
    size=st.integers(2, 40),
    c=st.integers(-3, 6),
    arrives=st.floats(0.05, 1.0),
    dead=st.floats(0.0, 0.9),
)
def test_chain_is_a_distribution(size: int, c: int, arrives: float, dead: float) -> None:
    alive = max(1, round(size * (1 - dead)))
    fanout = Parameters(c=float(c)).fanout(size)
    found = reached_distribution(size, alive, fanout, arrives, np.array([0.0, 1.0]))
    assert found.sum() == pytest.approx(1.0)
    assert (found >= -1e-12).all()
    assert found[0] == 0.0


def test_without_loss_and_with_full_fanout_everybody_is_reached() -> None:
    assert complete(20, Parameters(c=20.0), 1.0) == pytest.approx(1.0)
    rows = run(Setting((5, 10), Parameters(g=10, c=20.0), loss=0.0), 50, Random(1))
    assert all(row.reached == row.members for group in rows for row in group)


def test_event_on_an_inner_topic_does_not_go_down() -> None:
    rows = run(Setting(SMALL, level=1), 20, Random(1))
    assert all(row.reached == row.sent == 0 for row in rows[2])
    assert any(row.reached for row in rows[0])


def test_sweep_gives_a_table_for_each_failed_share() -> None:
    found = failure_sweep([0.0, 0.5, 1.0], 40, Random(1), Setting(SMALL))
    means = [summarize(groups[2])["of_all"].mean for _, groups in found]
    assert means[0] > means[1] > means[2] == 0.0


@given(
    rows=st.integers(1, 20),
    limit=st.integers(1, 30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_distinct_numbers_are_distinct_and_in_range(
    rows: int, limit: int, share: float, seed: int
) -> None:
    count = round(share * limit)
    found = distinct(Random(seed), rows, count, limit)
    assert found.shape == (rows, count)
    for row in found.tolist():
        assert len(set(row)) == count
        assert all(0 <= value < limit for value in row)


def test_distinct_numbers_are_uniform_over_all_subsets() -> None:
    pairs = Counter(tuple(sorted(row)) for row in distinct(Random(1), 30_000, 2, 4).tolist())
    assert len(pairs) == 6
    assert all(abs(count / 30_000 - 1 / 6) < 0.01 for count in pairs.values())
    assert abs(uniform(Random(1), 1000, 10).mean() - 0.5) < 0.01


def test_others_never_name_oneself() -> None:
    found = others(Random(1), 50, 7, 3)
    assert not (found == np.arange(7)[None, :, None]).any()
    assert set(found.reshape(-1).tolist()) == set(range(7))


def test_interval_of_values_all_alike_is_not_empty() -> None:
    assert estimated([1.0] * 30).half == pytest.approx(0.1)


class Forgetful(StillNode):
    """Forgets once that it has had an event."""

    forgot = False

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """As always, but the second copy counts as a first."""
        if len(self.memory) and not self.forgot:
            self.memory, self.forgot = event_memory(), True
        return super().on_message(message, sender)


def test_event_handed_twice_to_one_is_seen_although_others_lack_it() -> None:
    overlay, rng = GossipOverlay("3,8,20"), Random(1)
    still = still_copies({node.id: node for node in overlay.legitimate(0, rng)}, rng)
    again = Forgetful(still[-1].id, still[-1].configuration, rng)
    again.restore(still[-1].snapshot())
    for last, repeated in ((still[-1], 0), (again, 1)):
        rows = disseminate_once(
            [*still[:-1], last], overlay.topics, overlay.topics[-1],
            failed=0.0, loss=0.7, failures="stillborn", seed=1,
        )  # fmt: skip
        assert rows[overlay.topics[-1]].repeated == repeated
        assert sum(row.repeated for row in rows.values()) == repeated
        assert any(row.reached < row.alive for row in rows.values())


def test_measuring_does_not_disturb_the_trial() -> None:
    overlay = MeasuredGossip(groups="3,8,20", failed=0.2, events=5)
    nodes = {node.id: node for node in overlay.legitimate(0, Random(1))}
    before = [node.snapshot() for node in nodes.values()]
    found = overlay.metrics({id: node.state() for id, node in nodes.items()})
    assert [node.snapshot() for node in nodes.values()] == before
    keys = (
        "members alive sent received intergroup_sent intergroup_received of_all of_alive p_all "
        "parasites table_max"
    ).split()
    for row in found["groups"]:
        assert set(keys) <= set(row)
        assert row["parasites"] == 0
    assert [row["members"] for row in found["groups"]] == [3, 8, 20]


def test_the_papers_reading_sends_g_times_a_upwards_and_ours_one_more() -> None:
    """Figure 7 as it reads; the same through the alternatives of section VI-E."""
    small = Setting(sizes=(10, 60))
    for reading, wanted in (("paper", 5.0), ("planaria", 6.0 - 5 / 60)):
        asked: Reading = "paper" if reading == "paper" else "planaria"
        bottom = run(read_as(small, asked), 1_500, Random(3))[1]
        sent = sum(row.intergroup_sent for row in bottom) / len(bottom)
        assert sent == pytest.approx(wanted, abs=0.2)
        job = Work((10, 60), runs=800, reading=asked)
        within = 60 * small.parameters.fanout(60) + 10 * small.parameters.fanout(10)
        got = da_multicast(job, Random(4)).of_interested.mean
        assert da_multicast(job, Random(4)).messages.mean == pytest.approx(
            within * got + wanted, rel=0.01
        )


def test_hierarchical_broadcast_has_as_many_clusters_as_topics_and_sends_what_it_should() -> None:
    """Everybody sends ceil(ln m + c) within, ceil(ln N + c) between."""
    work = Work((10, 20, 60), runs=20, loss=0.0)
    found = hierarchical(work, Random(1))
    assert work.clusters == 3
    assert found.messages.mean == 90 * (9 + 7)
    assert found.memory == 9 + 7
    assert found.of_interested.mean == 1.0
