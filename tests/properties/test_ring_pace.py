"""A calm topic speaks less and less, wakes at the first doubt, and accuses nobody."""

from collections import Counter
from collections.abc import Callable

import pytest

from planaria.core.chance import combination
from planaria.core.node import Busy, Publish, Ready, Send
from planaria.protocols.publications.exchange import Exchange
from planaria.protocols.publications.retention import Horizon, Retention
from planaria.protocols.skipring.deposits import Entrust
from planaria.protocols.skipring.messages import GetConfiguration, Greeting
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.pace import PACE_MAX, Pace
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.topic_supervisor import TopicSupervisor
from planaria.records.record import Draft, seal
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal

DEEP = 120  # intervals after which a topic is as calm as it gets
FAULTS = (
    "corrupt share=0.5",
    "crash share=0.4",
    "restart share=0.5 state=kept",
    "publish count=3",
    "forge count=20",
)


def test_the_pace_doubles_up_to_the_longest() -> None:
    pace = Pace(8)
    said = [pace.on_timeout(doubt=False) for _ in range(24)]
    assert said == [2, 0, 4, 0, 0, 0, 8, *[0] * 7, 8, *[0] * 7, 8, 0]


@pytest.mark.parametrize("cause", ["doubt", "news", "reset", "garbage"])
def test_the_pace_falls_back_at_once(cause: str) -> None:
    pace = Pace(8)
    for _ in range(8):
        pace.on_timeout(doubt=False)
    assert pace.pace == 8
    if cause == "reset":
        pace.reset()
    if cause == "garbage":
        pace.left = 10**9
    said = pace.on_timeout(doubt=cause == "doubt", shown=int(cause == "news"))
    assert said == (2 if cause == "reset" else 1)


def calm(n: int, seed: int, drift: float = 0.0) -> Trial:
    """A legitimate ring in which nothing has happened for long."""
    trial = Trial(RingOverlay(pace=PACE_MAX), Spec(n=n, seed=seed, start="legitimate", drift=drift))
    for _ in range(DEEP):
        trial.simulator.run_interval()
    return trial


def peers(trial: Trial) -> list[Peer]:
    return [node for node in trial.simulator.nodes.values() if isinstance(node, Peer)]


def paces(trial: Trial) -> set[int]:
    return {peer.topics[TOPIC].subscriber.pace.pace for peer in peers(trial)}


def test_a_calm_topic_says_a_sixteenth() -> None:
    quick = Trial(RingOverlay(), Spec(n=8, seed=1, start="legitimate"))
    slow = calm(8, 1)
    sent = []
    for trial in (quick, slow):
        before = trial.simulator.sent
        for _ in range(4 * PACE_MAX):
            trial.simulator.run_interval()
        sent.append(trial.simulator.sent - before)
    assert 12 * sent[1] < sent[0]
    assert slow.violations() == []


def test_a_publication_wakes_everybody_whom_it_reaches() -> None:
    trial = calm(6, 2)
    assert paces(trial) == {PACE_MAX}
    publisher = peers(trial)[3]
    trial.simulator.command(publisher.id, Publish(TOPIC, b"news"))
    trial.simulator.run_interval()
    trial.simulator.run_interval()
    assert max(paces(trial)) <= 4


def test_a_deposit_wakes_its_topic() -> None:
    peer = peers(calm(3, 6))[0]
    record = seal((7, bytes(12)), 0, [Draft(b"deposited")], time=DEEP)
    peer.on_command(Entrust(TOPIC, record, (peer.id,), spread=True))
    assert peer.topics[TOPIC].subscriber.pace.pace == 1


def test_a_link_that_was_full_and_has_room_wakes_the_topic() -> None:
    """Who is behind compares digests soon; a link that was not full wakes nobody."""
    peer = peers(calm(3, 7))[0]
    one = peer.topics[TOPIC].subscriber
    neighbour = one.neighbours()[0][1]
    peer.on_command(Ready(neighbour))
    assert one.pace.pace == PACE_MAX
    peer.on_command(Busy(neighbour))
    peer.on_command(Ready(neighbour))
    assert one.pace.pace == 1


@pytest.mark.parametrize("what", ["exchange", "hole"])
def test_who_waits_for_publications_speaks_in_every_interval(what: str) -> None:
    peer = peers(calm(3, 8))[0]
    membership = peer.topics[TOPIC]
    neighbour = membership.subscriber.neighbours()[0][1]
    if what == "exchange":
        membership.history.antientropy.exchanges[neighbour] = Exchange(1, 0, DEEP, started=True)
    else:
        membership.history.reader.holes[7, bytes(12)] = (3, 0)
    while membership.subscriber.pace.resting:  # nobody said so: it is seen at the next look
        peer.on_timeout()
    sent = peer.on_timeout()
    greetings = [it.message for it in sent if isinstance(it, Send)]
    assert [it.promise for it in greetings if isinstance(it, Greeting)] == [1, 1]


def test_one_in_doubt_among_the_calm_accuses_nobody() -> None:
    """Counted in own timeouts, it would miss each neighbour every eight intervals."""
    trial = calm(4, 3, drift=0.3)
    said: Counter[str] = Counter()
    doubtful = peers(trial)[1]
    for _ in range(400):
        doubtful.topics[TOPIC].subscriber.pace.reset()
        trial.simulator.run_interval()
        said["missing"] += sum(len(p.topics[TOPIC].subscriber.missing) for p in peers(trial))
        said["alarmed"] += sum(p.topics[TOPIC].subscriber.alarmed for p in peers(trial))
    assert not any(said.values())
    assert PACE_MAX in paces(trial)


def test_a_supervisor_suspects_nobody_for_being_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Label 0 asks at every other word: of a calm topic that is once in 32 intervals."""
    trial = calm(3, 5)
    suspected: list[int] = []
    monkeypatch.setattr(TopicSupervisor, "_suspect", lambda _, who: suspected.append(who))
    for _ in range(400):
        trial.simulator.run_interval()
    assert suspected == []


def test_what_is_not_kept_of_a_promise_is_missed() -> None:
    """Where nobody tells of failed sends, a calm neighbour's silence is noticed all the same."""
    trial = Trial(
        RingOverlay(pace=PACE_MAX),
        Spec(
            n=4,
            seed=4,
            start="legitimate",
            faults=parse_schedule(f"at {DEEP} crash count=1", "test"),
            silent_failures=True,
        ),
    )
    outcome, violation = trial.judge()
    assert violation is None
    assert outcome.intervals > PACE_MAX


def test_a_calm_ring_heals(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(36, 3000)):
        n, supervisors, fault, drift = combination(seed, range(1, 9), (1, 2, 3), FAULTS, (0.0, 0.3))
        schedule = parse_schedule(f"at {DEEP} {fault}", "test")
        spec = Spec(n=n, seed=seed, start="legitimate", faults=schedule, drift=drift)
        must_heal(RingOverlay(supervisors, pace=PACE_MAX), spec)


def test_any_start_heals_at_any_pace(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(24, 3000)):
        axes = RingOverlay.starts, range(1, 9), (2, 5, 16), (1, 2)
        start, n, pace, supervisors = combination(seed, *axes)
        must_heal(RingOverlay(supervisors, pace=pace), Spec(n=n, seed=seed, start=start))


def test_large_calm_rings_heal(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(2, 60)):
        n, fault = combination(seed, (48, seeds(48, 256)), FAULTS)
        schedule = parse_schedule(f"at {DEEP} {fault}", "test")
        must_heal(RingOverlay(2, pace=PACE_MAX), Spec(n, seed, "legitimate", schedule, closure=3))


def test_the_clock_of_a_calm_neighbour_goes_on() -> None:
    """Else the low median of three clocks would stand still between two words, and jump then."""
    horizon = Horizon(Retention())
    horizon.read_clock(1000)
    for peer in (1, 2):
        horizon.hear(peer, 1000, 0, PACE_MAX)
    for second in range(1001, 1001 + PACE_MAX):
        horizon.read_clock(second)
        horizon.on_timeout([1, 2])
        assert horizon.present == second


def test_a_clock_that_jumps_takes_no_vote_along() -> None:
    horizon = Horizon(Retention())
    horizon.read_clock(1000)
    for peer in (1, 2):
        horizon.hear(peer, 1000, 0, PACE_MAX)
    horizon.read_clock(900_000)
    assert horizon.present == 1000


def test_messages_without_a_promise_are_of_the_next_interval() -> None:
    """As those of nodes that know nothing of paces are."""
    assert Greeting(TOPIC, (0, 1), 1, None).promise == 1
    assert "promise" not in GetConfiguration.__struct_fields__
