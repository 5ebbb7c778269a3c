"""Every action of a schedule has its effect, counts it, and says so when it had none."""

from typing import cast

import pytest

from planaria.core.errors import UsageError
from planaria.core.node import Clock, Publish, Unsubscribe
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Simulator
from planaria.simulator.nemesis import Injection, Nemesis
from planaria.simulator.schedule import ACTIONS, LASTING, LIVE, parse_schedule
from planaria.simulator.trial import Spec, Trial
from toys import Log, Probe, ProbeOverlay, sorted_list


class Run:
    """Eight probes in a ring under a schedule, watched."""

    def __init__(self, schedule: str, n: int = 8) -> None:
        self.log = Log()
        spec = Spec(n, 1, start="legitimate", faults=parse_schedule(schedule))
        self.trial = Trial(ProbeOverlay(), spec, [self.log])
        self.simulator: Simulator = self.trial.simulator
        self.nemesis: Nemesis = self.trial.nemesis

    def until(self, interval: float) -> "Run":
        end = round(interval * INTERVAL)
        while (due := self.nemesis.next_tick) is not None and due <= end:
            self.simulator.run(due - self.simulator.tick)
            self.nemesis.advance()
        self.simulator.run(end - self.simulator.tick)
        return self

    @property
    def probes(self) -> list[Probe]:
        return [cast(Probe, self.simulator.nodes[id]) for id in sorted(self.simulator.nodes)]

    @property
    def injection(self) -> Injection:
        return self.nemesis.report[0]


def lost(run: Run, first: float, last: float) -> int:
    return sum(first * INTERVAL <= tick < last * INTERVAL for tick in run.log.ticks("drop"))


@pytest.mark.parametrize("schedule", ["at 1 for 3 partition groups=2", "at 1 for 3 loss rate=0.5"])
def test_lossy_fault_loses_messages_while_it_lasts_and_counts_them(schedule: str) -> None:
    run = Run(schedule).until(8)
    assert lost(run, 0, 1) == lost(run, 4, 8) == 0
    assert run.injection.affected == lost(run, 1, 4) > 3
    assert run.simulator.rules == []


def test_partition_into_as_many_groups_as_nodes_lets_nothing_pass() -> None:
    run = Run("at 0 for 3 partition groups=8").until(3)
    assert run.log.ticks("deliver") == []


def test_one_way_partition_lets_one_direction_pass() -> None:
    one_way = Run("at 0 for 6 partition groups=2 one_way=yes").until(6).injection.affected
    assert 0 < one_way < Run("at 0 for 6 partition groups=2").until(6).injection.affected


def test_partition_shorter_than_a_timeout_loses_only_what_was_sent_meanwhile() -> None:
    run = Run("at 2 for 0.2 partition groups=8").until(5)
    assert run.injection.affected == lost(run, 2, 2.2) == lost(run, 0, 5) > 0


def test_duplication_delivers_some_messages_twice() -> None:
    run = Run("at 0 for 5 duplicate rate=0.5").until(9)
    numbers = [row[3].number for row in run.log.rows if row[1] == "deliver"]
    assert len(numbers) - len(set(numbers)) == run.injection.affected > 5


def test_reordering_delays_some_messages_and_loses_none() -> None:
    run = Run("at 0 for 5 reorder rate=0.5").until(9)
    assert run.injection.affected >= sum(ticks > 50 for ticks in run.log.travels().values()) > 5
    assert lost(run, 0, 9) == 0


def test_slow_node_is_slow_while_it_lasts_only() -> None:
    run = Run("at 1 for 6 slow count=2 factor=10").until(1.01)
    victims = sorted(run.simulator.slowness)
    assert len(victims) == 2
    run.until(20)
    assert run.simulator.slowness == {}
    assert run.injection.affected > 0
    counts = [probe.timeouts for probe in run.probes]
    assert all((counts[id] < 16) == (id in victims) for id in range(8))


def test_paused_nodes_do_nothing_while_it_lasts_and_then_all_of_it() -> None:
    run = Run("at 1 for 4 pause share=0.5").until(4.99)
    assert sorted(probe.timeouts for probe in run.probes) == [1] * 4 + [5] * 4
    run.until(12)
    assert run.injection.injected == 4
    assert run.injection.affected >= 4
    assert lost(run, 0, 12) == 0


def test_skewed_clock_tells_another_time_while_it_lasts() -> None:
    run = Run("at 1 for 2 skew count=1 seconds=5000").until(5)
    skewed = [
        [command.seconds > 1000 for command in probe.commands if isinstance(command, Clock)]
        for probe in run.probes
    ]
    assert max(skewed) == [False, True, True, False, False]
    assert sum(map(any, skewed)) == run.injection.affected == 1


def test_crash_takes_its_share_of_nodes_and_not_those_that_must_not() -> None:
    run = Run("at 1 crash share=0.5").until(2)
    assert len(run.simulator.nodes) == 4
    assert run.injection.injected == run.injection.affected == len(run.log.ticks("stop")) == 4
    trial = Trial(sorted_list(), Spec(5, 1, faults=parse_schedule("at 1 crash share=1")))
    trial.suffer()
    assert list(trial.simulator.nodes) == [0]


def test_restart_with_state_kept_goes_on_where_it_was() -> None:
    run = Run("at 3 restart share=1 state=kept").until(3)
    assert [probe.timeouts for probe in run.probes] == [3] * 8
    assert all(probe.heard for probe in run.probes)
    assert run.injection.affected == len(run.log.ticks("restart")) == 8


def test_restart_with_stale_state_goes_back_to_the_start() -> None:
    run = Run("at 0 corrupt share=1\nat 3 restart share=1 state=stale").until(3)
    assert [probe.timeouts for probe in run.probes] == [0] * 8
    assert run.nemesis.report[1].affected == 8


def test_restart_with_no_state_is_a_newcomer_under_an_old_name() -> None:
    run = Run("at 3 restart count=3 state=none").until(3)
    assert sorted(probe.timeouts for probe in run.probes) == [0] * 3 + [3] * 5
    assert sorted(run.simulator.nodes) == list(range(8))


def test_join_adds_nodes_under_new_names() -> None:
    run = Run("at 1 join count=2\nat 2 crash count=8\nat 3 join count=1").until(4)
    assert 10 in run.simulator.nodes
    assert [injection.affected for injection in run.nemesis.report] == [2, 8, 1]


def test_leave_asks_only_nodes_that_may() -> None:
    run = Run("at 1 leave share=1").until(2)
    asked = [Unsubscribe("news") in probe.commands for probe in run.probes]
    assert asked == [False] + [True] * 7
    assert run.injection.affected == 7


def test_publish_gives_each_publication_another_payload() -> None:
    run = Run("at 1 publish count=5\nat 2 publish count=3").until(3)
    payloads = [
        command.payload
        for probe in run.probes
        for command in probe.commands
        if isinstance(command, Publish)
    ]
    assert sorted(payloads) == [b"%d" % number for number in range(8)]
    assert [injection.affected for injection in run.nemesis.report] == [5, 3]


def test_forged_messages_arrive() -> None:
    run = Run("at 1 forge count=12").until(3)
    assert sum(number >= 10_000 for probe in run.probes for number in probe.heard) == 12
    assert run.injection.affected == 12


def test_forged_messages_to_the_departed_are_injected_and_affect_nobody() -> None:
    run = Run("at 1 crash count=7\nat 2 forge count=50").until(4)
    _, forged = run.nemesis.report
    assert forged.injected == 50
    assert 0 < forged.affected < 50


def test_replayed_messages_are_old_ones() -> None:
    run = Run("at 3 replay count=20").until(5)
    begun = [row[1] for row in run.log.rows].index("fault") + 1
    replayed = [row for row in run.log.rows[begun:] if row[0] == 300 and row[1] == "send"]
    assert run.injection.affected == len(replayed) == 20
    assert all(0 <= row[3].message.number < 8 for row in replayed)  # type: ignore[union-attr]


def test_corruption_changes_the_variables_of_its_victims_only() -> None:
    run = Run("at 3 corrupt count=3").until(3)
    assert sum(probe.timeouts != 3 for probe in run.probes) == run.injection.affected == 3


def test_scramble_changes_messages_in_flight_and_no_timeouts() -> None:
    run = Run("at 3 scramble share=1").until(3)
    assert 0 < run.injection.affected <= run.injection.injected
    run.until(9)
    assert [probe.timeouts for probe in run.probes] == [9] * 8


@pytest.mark.parametrize(
    "schedule",
    [
        "at 1 for 1 partition groups=1",
        "at 1 for 1 loss rate=0",
        "at 0 for 0.001 duplicate rate=1",
        "at 0 replay",
        "at 0 scramble",
        "at 1 forge count=0",
    ],
)
def test_fault_that_changes_nothing_is_reported(schedule: str) -> None:
    run = Run(schedule).until(4)
    assert run.nemesis.ineffective() == [str(action) for action in parse_schedule(schedule)]


def test_fault_on_what_the_overlay_does_not_have_is_reported() -> None:
    schedule = parse_schedule("at 1 leave count=1\nat 1 publish\nat 1 for 1 skew")
    trial = Trial(sorted_list(), Spec(4, 1, faults=schedule))
    assert trial.run().ineffective == [str(action) for action in schedule]


def test_every_action_can_be_carried_out() -> None:
    lines = [
        f"at 1 {'for 2 ' if kind in LASTING else ''}{kind}" for kind in ACTIONS if kind not in LIVE
    ]
    run = Run("\n".join(lines)).until(5)
    assert [injection.action for injection in run.nemesis.report] == lines
    assert run.nemesis.next_tick is None


@pytest.mark.parametrize("kind", LIVE)
def test_what_needs_a_running_network_is_refused_in_one_line(kind: str) -> None:
    with pytest.raises(UsageError, match=f"'{kind}' needs a running network: planaria chaos"):
        Run(f"at 1 {kind}")


def test_leaving_out_one_fault_leaves_the_choices_of_the_others_as_they_were() -> None:
    both = Run("at 1 crash count=2\nat 2 restart count=2 state=none").until(3)
    alone = Run("at 1 crash count=2").until(3)
    stopped = [row[2] for row in both.log.rows if row[1] == "stop" and row[0] == INTERVAL]
    assert stopped == [row[2] for row in alone.log.rows if row[1] == "stop"]


def test_the_same_action_at_the_same_time_chooses_anew() -> None:
    run = Run("at 1 restart count=1\n" * 3, n=50).until(2)
    assert len({row[2] for row in run.log.rows if row[1] == "restart"}) > 1


@pytest.mark.parametrize("kind", ["crash", "restart", "leave"])
def test_the_node_that_is_named_is_the_victim_and_no_other(kind: str) -> None:
    run = Run(f"at 1 {kind} node=5").until(2)
    logged = {"crash": "stop", "restart": "restart", "leave": "command"}[kind]
    rows = [row for row in run.log.rows if row[1] == logged and not isinstance(row[4], Clock)]
    victims = {row[2] for row in rows}
    assert victims == {5}
    assert run.injection.affected == 1
    nobody = Run(f"at 1 {kind} node=99").until(2)
    assert nobody.nemesis.ineffective() == [f"at 1 {kind} node=99"]
