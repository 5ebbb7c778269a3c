"""A legitimate skip ring stays so (Theorem 13), for thousands of intervals and many sizes."""

from collections.abc import Callable
from random import Random

import pytest

from planaria.core.chance import any_integer, stream
from planaria.core.message import Message
from planaria.protocols.skipring.arbitrary import any_sorted_ring, any_wire_integer
from planaria.protocols.skipring.inquiry import PATIENCE
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    SetData,
    Wake,
)
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.subscriber import SILENCE_MAX, Subscriber
from planaria.protocols.skipring.topic_supervisor import CLAIM_MAX, DOUBTS_MAX, UNHEARD_MAX
from planaria.protocols.skipring.topic_supervisor import PATIENCE as ANSWER_PATIENCE
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SCHEDULERS, ConstantDelays, last_in_first_out
from planaria.simulator.trial import Spec, must_heal
from ring_lab import RingLab

SMALL = (*range(1, 18), 24, 31, 32, 33, 40)
LARGE = (63, 64, 65, 128)


@pytest.mark.parametrize("n", [*SMALL, *LARGE])
def test_legitimate_ring_stays_legitimate(n: int, seeds: Callable[[int, int], int]) -> None:
    """In all 928 intervals, each judged at its end with everything in flight."""
    intervals = seeds(40 if n <= 40 else 12, 5_000)
    lab = RingLab.legitimate(n, seed=n)
    assert not lab.violations()
    for _ in range(intervals):
        lab.run()
        assert not lab.violations()
    assert lab.simulator.delivered >= intervals, "nothing was ever said"


@pytest.mark.parametrize("scheduler", SCHEDULERS[1:])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16])
def test_legitimate_ring_survives_adversarial_schedulers(
    n: int, scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    """Messages late up to the bound of fairness are no reason to doubt anybody."""
    spec = Spec(n, n, "legitimate", scheduler=scheduler, closure=seeds(40, 2_000))
    assert must_heal(RingOverlay(), spec).intervals == 0


@pytest.mark.parametrize("n", [16, 48])
def test_legitimate_ring_bears_the_longest_delays(n: int) -> None:
    """Who asks again while its answer is on its way has nothing to fear."""
    spec = Spec(n, 1, "legitimate", delay="fixed:450", closure=100)
    assert must_heal(RingOverlay(), spec).intervals == 0


@pytest.mark.parametrize("drift", [0.1, 0.3])
def test_legitimate_ring_survives_clocks_that_drift(drift: float) -> None:
    spec = Spec(20, 1, "legitimate", drift=drift, delay="late:1:50", intervals=1, closure=100)
    outcome = must_heal(RingOverlay(), spec)
    assert outcome.intervals == 0


# Legitimate states with arbitrary values in whatever legitimacy leaves open


def served_by(rank: int, supervisors: int, n: int, simulator: Simulator) -> RingLab:
    """A legitimate ring whose first `rank` supervisors are dead."""
    overlay = RingOverlay(supervisors)
    lab = RingLab(overlay, overlay.legitimate(n, simulator.rng), simulator)
    order = preference(TOPIC, overlay.supervisors)
    served = lab.supervisor(order[rank]).serve(TOPIC)
    assert served is not None
    served.database.entries = list(range(n))
    for id in order[:rank]:
        simulator.remove(id)
    for one in lab.members:
        one.inquiry.contact = rank
    return lab


def disturb_member(one: Subscriber, ids: list[int], running: bool, rng: Random) -> None:
    one.inquiry.due = rng.choice([None, any_integer(rng, 0, WINDOW_MAX)])
    waited = PATIENCE // 2 - 1 if running else 0
    one.inquiry.waiting = min(any_integer(rng, 0, waited), waited)
    if one.inquiry.waiting > 0 and one.inquiry.due is not None:
        one.inquiry.due = min(one.inquiry.due, PATIENCE // 2 - one.inquiry.waiting)
    one.inquiry.version = any_integer(rng, 0, 1 << 62)
    one.inquiry.version_age = any_integer(rng, 0, 8, 2 * PATIENCE)
    one.silence = (any_integer(rng, 0, SILENCE_MAX), any_integer(rng, 0, SILENCE_MAX))
    one.missing = [rng.choice(ids) for _ in range(rng.randrange(3))]
    one.child_sums = {any_integer(rng, 2 * (one.label or 0)): (any_integer(rng), any_integer(rng))}
    one.orphan = any_sorted_ring(one, ids, rng) if rng.random() < 0.2 else None
    one.acquaintances = [any_integer(rng, 3)]
    one.spread_pause = any_integer(rng, 0, WINDOW_MAX)


def disturb_supervisors(
    lab: RingLab, rank: int, ids: list[int], running: bool, rng: Random
) -> None:
    order = preference(TOPIC, lab.overlay.supervisors)
    served = lab.supervisor(order[rank]).topics[TOPIC]
    served.next, served.version = any_integer(rng, 0), any_integer(rng, 0, 1 << 62)
    served.calm, served.unheard = any_integer(rng, 0, 64), any_integer(rng, 0, UNHEARD_MAX)
    served.requests, served.requests_before = any_integer(rng, 0), any_integer(rng, 0)
    served.claimed = any_integer(rng, 0, CLAIM_MAX)
    served.spread, served.doubts = any_integer(rng, 0, 4), any_integer(rng, 0, DOUBTS_MAX)
    served.unsettled = served.doubts
    for lane in ("probes", "outbox", "answers"):
        queued = {rng.choice([*ids, any_integer(rng, 0)]): rng.random() < 0.5}
        setattr(served, lane, queued)
    accused = rng.choice(ids)
    left = ANSWER_PATIENCE // 2 + 1 if running else ANSWER_PATIENCE
    patience = max(any_integer(rng, ANSWER_PATIENCE), left)
    served.suspects = {accused: patience, 10**6: any_integer(rng, 0)}
    if not running:
        served._enqueue(accused, probe=True)
    served.database._sums = [any_integer(rng) for _ in range(rng.randrange(2 * len(ids)))]
    budget = lab.supervisor(order[rank]).budget
    budget.limit, budget.cap, budget.spent = (any_integer(rng, 0, 64) for _ in range(3))
    lab.supervisor(order[rank]).turn = any_integer(rng, 0)
    lab.supervisor(order[rank]).absent = dict.fromkeys(ids, served.next)
    for id in order[rank + 1 :]:
        closer = rng.choice(order[: rank + 1])
        lab.supervisor(id).moved = {TOPIC: (closer, any_integer(rng, 0, 4))}


def true_message(lab: RingLab, serving: int, one: Subscriber, rng: Random) -> tuple[int, Message]:
    """A message to this member, or of it, that says nothing false but may say it at any time."""
    assert one.label is not None
    sender = rng.choice(lab.members)
    other = rng.choice(lab.members)
    assert sender.label is not None
    assert other.label is not None
    me, ref = (sender.label, sender.id), rng.choice([None, (other.label, other.id)])
    version, total = any_wire_integer(rng, 0), rng.getrandbits(64)
    right = (one.label, one.pred, one.succ)
    accused = [ref[1] for ref in one.ring if rng.random() < 0.5]
    sums, place = (rng.getrandbits(64), None), rng.choice([None, total])
    window, hops = rng.randrange(1, WINDOW_MAX + 1), rng.randrange(WINDOW_MAX + 1)
    flags = rng.random() < 0.5, rng.random() < 0.5
    return rng.choice(
        [
            (one.id, Greeting(TOPIC, me, one.label, None)),
            (one.id, IntroduceShortcut(TOPIC, me, ref, total, None)),
            (one.id, SetData(TOPIC, serving, version, *right, 3, *flags)),
            (one.id, Wake(TOPIC, window, hops)),
            (serving, GetConfiguration(TOPIC, one.id, rng.choice([None, 3]), sums, accused, place)),
        ]
    )


def any_legitimate(seed: int, *, running: bool) -> RingLab:
    """Any n up to 17, any supervisors dead, delays of at most 1.5 intervals.

    `running`: suspicions and waits may be half spent.
    """
    rng = stream(seed, "closure")
    n, supervisors = rng.randrange(1, 18), rng.randrange(1, 4)
    rank = rng.randrange(supervisors)
    delay = rng.choice(("uniform:1:50", "fixed:1", "fixed:23", "fixed:50", "fixed:150"))
    simulator = Simulator(seed, delay=parse_delay(delay))
    simulator.detects_failed_sends = rng.random() < 0.5
    lab = served_by(rank, supervisors, n, simulator)
    if rng.random() < 0.5:
        constant = ConstantDelays(rng)
        constant.high = rng.choice((INTERVAL // 2, INTERVAL, 3 * INTERVAL // 2))
        constant.common = None
        simulator.rules.append(constant)
    simulator.order = rng.choice([None, last_in_first_out])
    ids = list(range(n))
    for one in lab.members:
        disturb_member(one, ids, running, rng)
    disturb_supervisors(lab, rank, ids, running, rng)
    serving = preference(TOPIC, lab.overlay.supervisors)[rank]
    for _ in range(2 * n):
        target, message = true_message(lab, serving, rng.choice(lab.members), rng)
        lab.send(target, message, rng.randrange(1, INTERVAL))
    return lab


@pytest.mark.parametrize("batch", range(4))
def test_whatever_the_judge_calls_legitimate_stays_so(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """Theorem 2 of the proof: arbitrary values in all that the judge does not look at."""
    for seed in range(batch, seeds(24, 10_000), 4):
        lab = any_legitimate(seed, running=False)
        assert lab.violations() == [], seed
        for _ in range(40):
            lab.run()
            assert lab.violations() == [], seed


@pytest.mark.parametrize("batch", range(4))
def test_suspicions_and_waits_half_spent_cost_nobody_its_place(
    batch: int, seeds: Callable[[int, int], int]
) -> None:
    """They may be named while they run out; database, labels, ring and shortcuts stay."""
    for seed in range(batch, seeds(24, 10_000), 4):
        lab = any_legitimate(seed, running=True)
        assert lab.violations() == [], seed
        for _ in range(30):
            lab.run()
            assert lab.broken() <= {"suspects", "patience"}, seed
        for _ in range(10):
            lab.run()
            assert lab.violations() == [], seed
