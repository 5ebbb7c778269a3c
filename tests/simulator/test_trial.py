"""Trials judge: safety at every step, then convergence, then closure; and what fails, shrinks."""

import shlex
from collections.abc import Callable, Mapping
from random import Random

import pytest

from broken import Chatty, DeafToFailure, Forgetful, Raising, Repeating, UnfairSimulator
from hunted import Storming
from planaria.cli.main import main
from planaria.core.chance import combination
from planaria.core.errors import InvariantViolation, UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Deliver
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.core.state import State
from planaria.simulator import trial as trial_module
from planaria.simulator.checkers import DeliveredOnce, SafetyBroken
from planaria.simulator.engine import ENVIRONMENT, Entry
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import NAMED, compose, load_schedule, parse_schedule
from planaria.simulator.shrink import TRIALS_MAX, shrink
from planaria.simulator.trial import Spec, Trial, must_heal
from toys import ROOT, Log, ProbeOverlay, sorted_list

# What the toy does not have: it reads no clock, and nobody leaves it in good order.
NOT_IN_THE_TOY = ("skew", "leave")
STARTS = ("corrupt", "fresh", "legitimate")
DELAYS = ("uniform:1:50", "heavy:5", "late:1:50", "fixed:20")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("nemesis", NAMED)
def test_sorted_list_heals_from_any_state_under_every_nemesis_and_scheduler(
    nemesis: str, scheduler: str, seeds: Callable[[int, int], int]
) -> None:
    faults, effective = load_schedule(nemesis), set()
    for seed in range(seeds(4, 200)):
        n, start, drift, delay = combination(seed, range(5, 14), STARTS, (0.0, 0.1), DELAYS)
        spec = Spec(n, seed, start, faults, scheduler, delay, drift)
        outcome = Trial(sorted_list(), spec).run()
        assert outcome.failure is None, spec.command(sorted_list())
        effective |= {it.action for it in outcome.faults if it.affected}
    wanted = {str(action) for action in faults if action.kind not in NOT_IN_THE_TOY}
    assert effective >= wanted


def test_sorted_list_heals_from_many_corrupt_states(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(200, 5000)):
        must_heal(sorted_list(), Spec(1 + seed % 20, seed, intervals=60))


def test_all_named_schedules_compose_into_one_that_heals() -> None:
    faults = compose(*(load_schedule(name) for name in NAMED if name not in ("skew", "churn")))
    for seed in range(5):
        outcome = Trial(sorted_list(), Spec(12, seed, faults=faults)).run()
        assert outcome.failure is None
        assert len(outcome.faults) == len(faults)


def test_handler_that_drops_the_farther_neighbour_does_not_converge() -> None:
    with pytest.raises(InvariantViolation) as broken:
        must_heal(Forgetful(), Spec(8, 3, intervals=40))
    assert broken.value.checker == "convergence"
    assert "replay: planaria sim tests/broken.py:Forgetful --n 8 --seed 3" in str(broken.value)


def test_handler_that_raises_breaks_a_promise_and_says_where() -> None:
    with pytest.raises(InvariantViolation, match=r"no-exception: KeyError.* in broken.py:\d+"):
        Trial(Raising(), Spec(4, 1)).run()


def test_fair_driver_heals_what_an_unfair_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    must_heal(Chatty(), Spec(6, 1))
    monkeypatch.setattr(trial_module, "Simulator", UnfairSimulator)
    with pytest.raises(InvariantViolation, match="convergence: sane at"):
        must_heal(Chatty(), Spec(6, 1, intervals=30))


def test_application_that_is_handed_a_publication_twice_is_seen_at_that_step() -> None:
    with pytest.raises(InvariantViolation, match="was handed 6964 a second time") as broken:
        Trial(Repeating(), Spec(3, 1)).run()
    assert broken.value.checker == "delivered-once"
    assert 100 < broken.value.tick <= 200


def test_overlay_that_promises_less_is_not_held_to_single_deliveries() -> None:
    class Repeated(Repeating):
        delivers_once = False

    assert Trial(Repeated(), Spec(3, 1)).run().failure is None


def watched(*events: tuple[str, NodeId, object]) -> DeliveredOnce:
    checker = DeliveredOnce()
    for kind, node, effect in events:
        checker.record(7, kind, node, Entry(node, None, 0, 0, 0), effect)
    return checker


ONE, TWO = Deliver.one("news", b"1", b""), Deliver.one("news", b"2", b"")


def test_delivered_once_lets_different_publications_and_different_nodes_pass() -> None:
    checker = watched(("effect", 0, ONE), ("effect", 0, TWO), ("effect", 1, ONE))
    assert checker.delivered == 3


@pytest.mark.parametrize("other_topic", ["news", "news/sport"])
def test_delivered_once_sees_a_second_delivery_also_by_another_subscription(
    other_topic: str,
) -> None:
    with pytest.raises(SafetyBroken, match="node 0 was handed 31 a second time"):
        watched(("effect", 0, ONE), ("effect", 0, Deliver.one(other_topic, b"1", b"")))


@pytest.mark.parametrize("state", ["none", "stale"])
def test_delivered_once_takes_a_node_that_lost_its_state_for_a_new_application(state: str) -> None:
    watched(("effect", 0, ONE), ("restart", 0, state), ("effect", 0, ONE))


def test_delivered_once_takes_a_node_whose_variables_were_changed_for_a_new_application() -> None:
    watched(("effect", 0, ONE), ("fault", 0, "corrupt"), ("effect", 0, ONE))
    with pytest.raises(SafetyBroken):
        watched(("effect", 0, ONE), ("fault", 1, "corrupt"), ("effect", 0, ONE))
    with pytest.raises(SafetyBroken):
        watched(("effect", 0, ONE), ("fault", ENVIRONMENT, "at 1 crash"), ("effect", 0, ONE))


def test_delivered_once_holds_a_node_that_kept_its_state_to_its_promise() -> None:
    with pytest.raises(SafetyBroken):
        watched(("effect", 0, ONE), ("restart", 0, "kept"), ("effect", 0, ONE))
    with pytest.raises(SafetyBroken):
        watched(("effect", 0, ONE), ("restart", 1, "none"), ("effect", 0, ONE))


class Flapping(ProbeOverlay):
    """Legitimate when a script of interval ends says so."""

    name = "toys:Flapping"

    def __init__(self, script: str) -> None:
        self.script = list(script)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        bad = self.script.pop(0) == "-" if self.script else False
        return [Violation("script", None, "says no")] if bad else []


@pytest.mark.parametrize(
    ("script", "legitimate", "intervals", "relapsed"),
    [
        ("+", True, 0, False),
        ("-+++", True, 1, False),
        ("---+++", True, 3, False),
        ("-++-+-++-+++", True, 9, False),
        ("+-+++", True, 2, False),
        ("-+++" + "+" * 9 + "-", True, 1, True),
        ("-+++" + "+" * 10 + "-", True, 1, False),
        ("-" * 19 + "+++", True, 19, False),
        ("-" * 20 + "+++", True, 20, False),
        ("-" * 21 + "+++", False, 21, False),
        ("-" + "++-" * 30, False, 22, False),
    ],
)
def test_convergence_needs_calm_and_closure_needs_it_to_stay(
    script: str, legitimate: bool, intervals: int, relapsed: bool
) -> None:
    outcome = Trial(Flapping(script), Spec(2, 1, start="legitimate", intervals=20)).run()
    assert outcome.legitimate == legitimate
    assert outcome.intervals == intervals
    assert bool(outcome.relapse) == relapsed
    assert (outcome.failure is None) == (legitimate and not relapsed)
    assert bool(outcome.violations) == (not legitimate)


def test_messages_are_counted_until_the_interval_in_which_it_healed() -> None:
    spec = Spec(10, 1, start="legitimate")
    assert Trial(Flapping("+"), spec).run().messages == 0
    assert Trial(Flapping("-----+++"), spec).run().messages == 5 * 10


def test_must_heal_refuses_faults_that_did_nothing() -> None:
    spec = Spec(4, 1, faults=parse_schedule("at 1 for 1 loss rate=0"))
    with pytest.raises(InvariantViolation, match="effect: these faults did nothing"):
        must_heal(sorted_list(), spec)


@pytest.mark.parametrize(
    "wrong",
    [
        Spec(0, 1),
        Spec(-3, 1),
        Spec(10**7, 1),
        Spec(3, 1, intervals=0),
        Spec(3, 1, closure=-1),
        Spec(3, 1, drift=float("nan")),
        Spec(3, 1, drift=0.9),
        Spec(3, 1, start="warm"),
        Spec(3, 1, delay="soon"),
        Spec(3, 1, phases="0,5"),
        Spec(3, 1, phases="5,101"),
        Spec(3, 1, phases="5,,6"),
        Spec(3, 1, phases="-5"),
        Spec(3, 1, scheduler="random"),
    ],
)
def test_trial_that_cannot_be_is_a_usage_error(wrong: Spec) -> None:
    with pytest.raises(UsageError):
        Trial(sorted_list(), wrong)


def test_start_brings_faults_of_its_own() -> None:
    class Partitioned(ProbeOverlay):
        starts = ("partitioned",)

        def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
            return Start(self.legitimate(n, protocol), [], "at 0 for 2 partition groups=2")

    faults = parse_schedule("at 1 crash count=1")
    outcome = Trial(Partitioned(), Spec(6, 1, start="partitioned", faults=faults)).run()
    assert [it.action for it in outcome.faults] == [
        "at 0 for 2 partition groups=2",
        "at 1 crash count=1",
    ]


def test_a_storm_of_messages_ends_at_its_bound_with_a_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every message becomes two more, up to 50 ticks later: 200 intervals would never end."""
    trial = Trial(Storming(), Spec(3, 1, messages=5_000))
    outcome, violation = trial.judge()
    assert violation is not None
    assert (violation.checker, violation.detail) == ("messages", "more than 5,000 messages")
    assert not outcome.legitimate
    assert 5_000 < outcome.messages < 10_000
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(violation.replay)
    assert (program, main([*words, "--no-shrink"])) == ("planaria", 1)
    assert "failed      messages, seed 1" in capsys.readouterr().out


def test_a_bound_that_is_just_kept_changes_nothing() -> None:
    free = Trial(sorted_list(), Spec(6, 1))
    expected, _ = free.judge()
    sent = free.simulator.sent
    outcome, violation = Trial(sorted_list(), Spec(6, 1, messages=sent)).judge()
    assert (outcome, violation) == (expected, None)
    _, violation = Trial(sorted_list(), Spec(6, 1, messages=sent - 1)).judge()
    assert violation is not None


def fails(overlay: Overlay) -> Callable[[Spec], bool]:
    return lambda spec: Trial(overlay, spec).run().failure is not None


def test_planted_bug_shrinks_to_the_one_fault_it_needs_and_replays_from_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = DeafToFailure()
    names = ("lossy", "partition", "crash", "slow", "pause", "bitflip")
    faults = compose(*(load_schedule(name) for name in names))
    spec = Spec(14, 5, faults=faults, scheduler="newest", intervals=30)
    assert fails(overlay)(spec)
    small = shrink(spec, fails(overlay))
    assert [str(action) for action in small.faults] == ["at 1 crash share=0.33"]
    assert (small.n, small.scheduler) == (2, "fifo")
    program, *words = shlex.split(small.command(overlay))
    monkeypatch.chdir(ROOT)
    assert (program, main([*words, "--no-shrink"])) == ("planaria", 1)
    assert "failed      convergence, seed 5" in capsys.readouterr().out


def test_trial_that_needs_all_it_has_does_not_shrink() -> None:
    spec = Spec(1, 5, faults=parse_schedule("at 1 crash count=1"))
    assert shrink(spec, lambda smaller: smaller == spec) == spec


def test_shrinking_halves_durations_and_counts() -> None:
    spec = Spec(4, 5, faults=parse_schedule("at 1 for 8 loss\nat 2 forge count=16"))
    small = shrink(spec, lambda smaller: len(smaller.faults) == 2)
    assert [str(action) for action in small.faults] == ["at 1 for 1 loss", "at 2 forge count=1"]


def test_shrinking_is_bounded() -> None:
    tried: list[Spec] = []

    def always(smaller: Spec) -> bool:
        tried.append(smaller)
        return True

    faults = parse_schedule("at 1 forge count=1000\n" * 300)
    shrink(Spec(10**6, 1, faults=faults), always)
    assert len(tried) == TRIALS_MAX


def test_phases_asked_for_are_kept_and_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crafted counterexample is a command: nodes in the order of joining take turns."""
    spec, log = Spec(5, 1, "legitimate", phases="1,51", closure=0), Log()
    trial = Trial(ProbeOverlay(), spec, [log])
    trial.run()
    ticks = [sorted({tick % 100 for tick in log.ticks("timeout", id)}) for id in range(5)]
    assert ticks == [[1], [51], [1], [51], [1]]
    command = Spec(5, 1, phases="1,51").command(sorted_list())
    assert command.endswith("--n 5 --seed 1 --phases 1,51")
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:]) == 0
    pasted = capsys.readouterr().out.replace("\\\n", "")
    assert f"replay {command}" in " ".join(pasted.split())


def test_silent_failures_tell_nobody_and_are_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The toy has no other way to notice a crash, so that it does not heal is the effect."""
    crash = parse_schedule("at 1 crash count=2")
    must_heal(sorted_list(), Spec(6, 1, faults=crash))
    spec = Spec(6, 1, faults=crash, silent_failures=True)
    outcome, violation = Trial(sorted_list(), spec).judge()
    assert violation is not None
    assert "--silent-failures" in violation.replay
    monkeypatch.chdir(ROOT)
    assert main([*shlex.split(violation.replay)[1:], "--no-shrink"]) == 1
    assert f"messages    {outcome.messages}\n" in capsys.readouterr().out
