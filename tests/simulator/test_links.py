"""Every link rule and scheduler does what it says, counts it, and keeps to its bound."""

from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.node import Send
from planaria.simulator.delays import INTERVAL, fixed, uniform
from planaria.simulator.engine import Simulator
from planaria.simulator.links import (
    FAIRNESS_TICKS,
    SCHEDULERS,
    AlternatingDelays,
    ConstantDelays,
    Duplication,
    Loss,
    NewestFirst,
    Partition,
    Reordering,
    Rule,
    SlowNodes,
    Starve,
    TypePriorities,
    use_scheduler,
)
from toys import Letter, Log, Note, Probe

TRIES = 4000


def applied(rule: Rule, delays: list[int]) -> list[list[int]]:
    return [rule.apply(0, 1, Note(number), delays) for number in range(TRIES)]


def test_loss_loses_its_share_and_counts_it() -> None:
    rule = Loss(0.25, Random(1))
    lost = sum(not delays for delays in applied(rule, [5]))
    assert rule.affected == lost
    assert 0.22 < lost / TRIES < 0.28


def test_loss_of_copies_is_independent() -> None:
    left = [len(delays) for delays in applied(Loss(0.5, Random(1)), [5, 6])]
    assert {0, 1, 2} == set(left)


def test_duplication_adds_one_later_copy_and_counts_it() -> None:
    rule = Duplication(0.25, Random(1))
    results = applied(rule, [5])
    doubled = [delays for delays in results if len(delays) == 2]
    assert rule.affected == len(doubled)
    assert 0.22 < len(doubled) / TRIES < 0.28
    assert all(first == 5 <= second < 5 + INTERVAL for first, second in doubled)


def test_duplication_does_not_revive_what_is_lost() -> None:
    assert applied(Duplication(1.0, Random(1)), []) == [[]] * TRIES


def test_reordering_holds_back_its_share_and_loses_none() -> None:
    rule = Reordering(0.25, Random(1))
    results = applied(rule, [5])
    assert all(len(delays) == 1 for delays in results)
    held = [ticks for (ticks,) in results if ticks > 5]
    assert rule.affected == len(held)
    assert 0.22 < len(held) / TRIES < 0.28
    assert max(held) < 5 + 2 * INTERVAL


@pytest.mark.parametrize(
    ("source", "target", "one_way", "passes"),
    [
        (0, 1, False, True),
        (0, 2, False, False),
        (2, 0, False, False),
        (4, 5, False, True),
        (0, 2, True, True),
        (2, 0, True, False),
        (4, 2, True, False),
        (0, 99, False, True),
        (99, 2, False, False),
    ],
)
def test_partition_cuts_between_groups(
    source: int, target: int, one_way: bool, passes: bool
) -> None:
    rule = Partition([[0, 1], [2, 3], [4, 5]], one_way=one_way)
    assert rule.apply(source, target, Note(1), [5]) == ([5] if passes else [])
    assert rule.affected == (not passes)


def test_slow_nodes_stretch_both_directions_and_nothing_else() -> None:
    rule = SlowNodes([1], 3.0)
    assert rule.apply(1, 0, Note(1), [5]) == [15]
    assert rule.apply(0, 1, Note(1), [5, 6]) == [15, 18]
    assert rule.apply(0, 2, Note(1), [5]) == [5]
    assert rule.affected == 2


def test_starved_victim_hears_late_up_to_the_fairness_bound_and_never_beyond() -> None:
    simulator, log = Simulator(1, delay=uniform(1, 50)), Log()
    simulator.watch(log)
    for id in range(2):
        simulator.add(Probe(id, [Send(1 - id, Note(id))]))
    simulator.rules.append(Starve(1))
    simulator.run(20 * INTERVAL)
    travels = log.travels()
    to = {row[3].number: row[3].target for row in log.rows if row[1] == "deliver"}
    assert {ticks for number, ticks in travels.items() if to[number] == 1} == {FAIRNESS_TICKS}
    assert max(ticks for number, ticks in travels.items() if to[number] == 0) <= 50


def test_newest_first_turns_round_the_order_within_a_window_and_only_there() -> None:
    simulator, log = Simulator(1), Log()
    simulator.watch(log)
    for id in range(20):
        simulator.add(Probe(id, [Send(0, Note(id))]))
    simulator.rules.append(NewestFirst(simulator))
    simulator.run(5 * INTERVAL)
    windows: dict[int, list[tuple[int, int]]] = {}
    sent = {row[3].number: row[0] for row in log.rows if row[1] == "send"}
    for tick, kind, _, entry, _ in log.rows:
        if kind == "deliver":
            windows.setdefault(sent[entry.number] // INTERVAL, []).append(
                (sent[entry.number], tick)
            )
    assert len(windows) >= 3
    for window, times in windows.items():
        assert [start for start, _ in times] == sorted((s for s, _ in times), reverse=True)
        assert all((window + 1) * INTERVAL < at <= (window + 2) * INTERVAL for _, at in times)
    assert max(log.travels().values()) <= 2 * INTERVAL <= FAIRNESS_TICKS


def test_type_priorities_hold_each_type_by_its_own_constant_within_the_bound() -> None:
    rule = TypePriorities(Random(3))
    held: dict[type, int] = {}
    for message in (Note(1), Letter(1), Note(2), Letter(2)):
        (ticks,) = rule.apply(0, 1, message, [5])
        assert held.setdefault(type(message), ticks) == ticks
        assert 5 <= ticks <= 5 + FAIRNESS_TICKS
    assert held[Note] != held[Letter]


def test_lifo_turns_round_the_order_within_a_tick() -> None:
    simulator = Simulator(1)
    use_scheduler(simulator, "lifo", Random(1))
    node = Probe(0)
    simulator.add(node)
    for number in range(5):
        simulator.inject(0, Note(number), delay=3)
    simulator.inject(0, Note(9), delay=2)
    simulator.run(3)
    assert node.heard == [9, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_no_scheduler_holds_a_message_beyond_the_bound_or_touches_a_timeout(name: str) -> None:
    simulator, log = Simulator(1, delay=fixed(10)), Log()
    simulator.watch(log)
    nodes = [Probe(id, [Send((id + 1) % 6, Note(id))]) for id in range(6)]
    for node in nodes:
        simulator.add(node)
    use_scheduler(simulator, name, Random(1))
    simulator.run(30 * INTERVAL)
    assert max(log.travels().values()) <= FAIRNESS_TICKS + 10
    assert [node.timeouts for node in nodes] == [30] * 6
    late = [row[3].number for row in log.rows if row[1] == "send" and row[0] < 24 * INTERVAL]
    assert {*late} <= {*log.travels()}


def test_constant_delays_differ_between_links_and_never_within_one() -> None:
    kinds = set()
    for seed in range(40):
        rule = ConstantDelays(Random(seed))
        links = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]
        rounds = [[rule.apply(*link, Note(1), [5]) for link in links] for _ in range(3)]
        assert rounds[0] == rounds[1] == rounds[2]
        assert all(1 <= ticks <= FAIRNESS_TICKS for (ticks,) in rounds[0])
        kinds.add(len({ticks for (ticks,) in rounds[0]}) == 1)
    assert kinds == {True, False}
    assert ConstantDelays(Random(1)).apply(0, 1, Note(1), []) == []


def test_alternating_delays_take_two_in_turn_and_let_every_other_message_be_overtaken() -> None:
    overtaken = 0
    for seed in range(40):
        rule = AlternatingDelays(Random(seed))
        links = [(0, 1), (1, 0), (0, 2), (2, 0)]
        rounds = [[rule.apply(*link, Note(1), [5]) for link in links] for _ in range(4)]
        assert rounds[0] == rounds[2]
        assert rounds[1] == rounds[3]
        assert all(1 <= ticks <= rule.delay_max(5) for row in rounds for (ticks,) in row)
        overtaken += sum(
            first > INTERVAL + then for (first,), (then,) in zip(rounds[0], rounds[1], strict=True)
        )
    assert overtaken > 10, "though it is sent an interval later"
    assert AlternatingDelays(Random(1)).apply(0, 1, Note(1), []) == []


def test_unknown_scheduler_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"unknown scheduler 'random' \(one of fifo"):
        use_scheduler(Simulator(1), "random", Random(1))


def test_draws_of_a_link_rule_do_not_shift_the_delays() -> None:
    class Thirsty(Loss):
        def change(self, *arguments: object) -> list[int]:
            for _ in range(7):
                self.rng.random()
            return super().change(*arguments)  # type: ignore[arg-type]

    def travels(rule: Rule) -> dict[int, int]:
        simulator, log = Simulator(1), Log()
        simulator.watch(log)
        simulator.rules.append(rule)
        for id in range(10):
            simulator.add(Probe(id, [Send((id + 1) % 10, Note(id))]))
        simulator.run(10 * INTERVAL)
        return log.travels()

    one, other = travels(Loss(0.3, Random(1))), travels(Thirsty(0.3, Random(1)))
    both = [number for number in one if number in other]
    assert set(one) != set(other)
    assert len(both) > 20
    assert [one[number] for number in both] == [other[number] for number in both]
