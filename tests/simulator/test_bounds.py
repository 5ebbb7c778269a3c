"""How long a trial may take is what its overlay promises for that many nodes and those delays."""

import shlex
from collections.abc import Mapping
from math import inf
from random import Random

import pytest
from msgspec import structs

from planaria.cli.main import main
from planaria.core.errors import InvariantViolation
from planaria.core.ids import NodeId
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.network.overlays.registry import PARTS
from planaria.simulator import trial as trial_module
from planaria.simulator.delays import INTERVAL, parse_delay
from planaria.simulator.engine import Simulator
from planaria.simulator.links import SCHEDULERS, use_scheduler
from planaria.simulator.schedule import load_schedule, parse_schedule
from planaria.simulator.trial import Spec, Trial, must_heal
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from toys import ROOT, Log, Note, Probe, ProbeOverlay, sorted_list


class Promising(ProbeOverlay):
    """Never legitimate; promises 7 intervals for a node and 100 for an interval of delay."""

    name = "tests/simulator/test_bounds.py:Promising"
    delay_max = 4.0

    def bound(self, n: int, delay: float) -> int:
        return 7 * n + round(100 * delay)

    def unnoticed(self, n: int) -> int:
        return 1000 * n

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return [Violation("never", None, "is it")]


def test_a_trial_lasts_as_long_as_the_overlay_promises_for_its_nodes_and_delays() -> None:
    outcome = Trial(Promising(), Spec(3, 1, "legitimate")).run()
    assert (outcome.bound, outcome.delay) == (3 * 7 + 50, 0.5)
    assert outcome.intervals == 3 * 7 + 50 + Promising.calm - 1
    assert outcome.failure == ("convergence", "never: is it")


def test_where_failed_sends_are_not_noticed_a_trial_lasts_longer() -> None:
    trial = Trial(Promising(), Spec(3, 1, "legitimate", silent_failures=True))
    next(iter(trial.heal()))
    assert trial.bound == 3 * 7 + 50 + 3000


def test_no_promise_makes_a_trial_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "INTERVALS_MAX", 60)
    trial = Trial(Promising(), Spec(3, 1, "legitimate"))
    next(iter(trial.heal()))
    assert trial.bound == 60


@pytest.mark.parametrize("name", REGISTERED)
def test_every_overlay_of_ours_says_how_slow_messages_may_be_and_how_long_it_takes(
    name: str,
) -> None:
    def bound(n: int, delay: float) -> int:
        overlay = find_kind(name).make()
        overlay.start("legitimate", n, Random(1), Random(1))
        return overlay.bound(n, delay)

    overlay = find_kind(name).make()
    assert 4.5 <= overlay.delay_max < inf, "less than schedulers may add, or not stated"
    assert type(overlay).bound is not Overlay.bound
    assert bound(4, 0.5) < bound(64, 0.5) < bound(64, 4.5)


def test_intervals_asked_for_override_the_promise() -> None:
    outcome = Trial(Promising(), Spec(3, 1, "legitimate", intervals=5)).run()
    assert (outcome.bound, outcome.intervals) == (5, 5 + Promising.calm - 1)


def test_the_nodes_that_count_are_all_that_ever_lived() -> None:
    faults = parse_schedule("at 1 join count=4\nat 2 crash count=3\nat 3 restart count=2")
    outcome = Trial(Promising(), Spec(3, 1, "legitimate", faults)).run()
    assert outcome.bound == (3 + 4) * 7 + 50


@pytest.mark.parametrize("delay", ["fixed:20", "uniform:1:50", "heavy:5", "late:1:50"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_no_message_takes_longer_than_scheduler_and_delays_allow(
    scheduler: str, delay: str
) -> None:
    for seed in range(6):
        simulator, log = Simulator(seed, delay=parse_delay(delay)), Log()
        simulator.watch(log)
        for node in ProbeOverlay().legitimate(5, simulator.rng):
            simulator.add(node)
        use_scheduler(simulator, scheduler, Random(seed))
        simulator.run(40 * INTERVAL)
        assert 0 < max(log.travels().values()) <= simulator.delay_max()


@pytest.mark.parametrize(
    ("scheduler", "ticks"),
    [("fifo", 20), ("lifo", 20), ("newest", 200), ("starve", 400), ("priority", 420)],
)
def test_a_scheduler_states_how_long_it_holds_a_message(scheduler: str, ticks: int) -> None:
    simulator = Simulator(1, delay=parse_delay("fixed:20"))
    simulator.add(Probe(0))
    use_scheduler(simulator, scheduler, Random(1))
    assert simulator.delay_max() == ticks
    simulator.link_delays[0, 1] = parse_delay("fixed:500")
    assert simulator.delay_max() == {"newest": 200, "priority": 900}.get(scheduler, 500)


def test_a_message_that_a_fault_made_slow_is_waited_for() -> None:
    """The node is slow for one interval, and what it sent then takes ten more."""
    slow = parse_schedule("at 1 for 1 slow share=1 factor=20")
    trial = Trial(Promising(), Spec(3, 1, "legitimate", slow, delay="fixed:60"))
    trial.suffer()
    assert 2 + 17 <= trial.simulator.interval <= 2 + 20  # timeouts were slow as well
    assert trial.simulator.overdue() < INTERVAL
    outcome = trial.run()
    assert (outcome.bound, outcome.delay) == (3 * 7 + 60, 0.6)


def test_what_arrives_beyond_every_patience_belongs_to_the_fault() -> None:
    """Messages of four intervals take up to sixty more; only then time begins to count."""
    late = load_schedule("late")
    trial = Trial(sorted_list(), Spec(6, 1, "legitimate", late))
    trial.suffer()
    assert 50 <= trial.simulator.interval <= 65
    assert trial.nemesis.report[0].affected > 5
    assert trial.run().failure is None
    simulator = Simulator(1)
    simulator.add(Probe(0))
    simulator.inject(0, Note(1), delay=50)
    assert simulator.overdue() == 0
    simulator.inject(0, Note(1), delay=750)
    assert simulator.overdue() == 700
    simulator.slowness[0] = 9.0
    simulator.run(INTERVAL)
    assert simulator.overdue() >= 700  # its timeout, nine intervals after the last


def test_beyond_the_delays_of_the_promise_safety_alone_is_judged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Spec(2, 1, "legitimate", delay="fixed:401")
    trial = Trial(Promising(), spec)
    outcome, violation = trial.judge()
    assert (outcome.legitimate, outcome.promised, violation) == (False, False, None)
    _, violation = Trial(Promising(), Spec(2, 1, "legitimate", delay="fixed:400")).judge()
    assert violation is not None
    _, violation = Trial(Promising(), Spec(2, 1, delay="fixed:401", intervals=9)).judge()
    assert violation is not None
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(spec.command(Promising()))[1:]) == 0
    assert "no; not promised where messages take so long" in capsys.readouterr().out


def test_what_must_heal_must_be_promised() -> None:
    """Else the test that says so could not fail."""

    class Healing(ProbeOverlay):
        delay_max = 4.0

    slow = Spec(2, 1, "legitimate", delay="fixed:401")
    with pytest.raises(InvariantViolation, match=r"promise: messages of 4.01 intervals") as raised:
        must_heal(Healing(), slow)
    assert raised.value.checker == "promise"
    must_heal(Healing(), structs.replace(slow, intervals=9))


def test_an_overlay_that_states_no_bound_has_one_that_grows_with_nodes_and_delays() -> None:
    overlay: Overlay = sorted_list()
    assert overlay.bound(8, 0.5) == 198
    assert overlay.bound(8, 0.5) < overlay.bound(9, 0.5) < overlay.bound(9, 4.5)


def test_the_bound_is_told_and_the_replay_command_has_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(Promising(), Spec(3, 1, "legitimate", scheduler="starve"))
    _, violation = trial.judge()
    assert violation is not None
    assert "--intervals" not in violation.replay
    monkeypatch.chdir(ROOT)
    assert main([*shlex.split(violation.replay)[1:], "--no-shrink"]) == 1
    line = f"bound       {trial.bound} intervals, with messages of up to 4\n"
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(("n", "delay"), [(64, 0.5), (100, 1.0), (200, 4.5)])
def test_live_parts_promise_what_the_simulator_does(n: int, delay: float) -> None:
    """Chaos and doctor ask these; of a mobile network they do not know the graph."""
    for name in ("gossip", "content"):
        assert PARTS[name].bound(n, delay) == find_kind(name).make().bound(n, delay)
    any_graph = MovingOverlay().bound(2 * n, delay)  # not made yet: its size for the way
    assert PARTS["mobile"].bound(n, delay) == any_graph


def rows(page: str) -> dict[str, list[str]]:
    """The first cell of each row of every table of a page, and its other cells."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    cells = [[it.strip() for it in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    return {first: rest for first, *rest in cells[::-1]}


def test_the_table_of_bounds_is_what_overlays_promise_and_hunts_measured() -> None:
    table = rows("proofs/index.md")
    text = (ROOT / "docs" / "recovery.md").read_text()
    slow = text.partition("<!-- schedulers -->")[2].partition("<!-- end of schedulers -->")[0]
    head, _, *lines = [
        line.strip("| ").split(" | ") for line in slow.split("\n") if line[:1] == "|"
    ]
    took = {it[0].partition(" ")[0]: it[head.index("priority")] for it in lines}
    for name in REGISTERED:
        _, bound, measured, share, status = table[name]
        assert int(bound) == find_kind(name).make().bound(8, 4.5), name
        assert took[name] == measured, name
        assert f"{float(measured.split(' / ')[-1]) / int(bound):.2f}" == share, name
        assert status.startswith(("proved", "conjectured")), name
