"""The driver keeps its promises: order, fair clocks, nothing lost that no fault takes."""

from itertools import pairwise

import pytest

from planaria.core.node import Clock, LinkDown, Publish, Send
from planaria.simulator.delays import INTERVAL, fixed, uniform
from planaria.simulator.engine import ENVIRONMENT, Simulator
from toys import Letter, Log, Note, Probe


def probes(simulator: Simulator, n: int) -> list[Probe]:
    nodes = [Probe(id) for id in range(n)]
    for node in nodes:
        simulator.add(node)
    return nodes


def gaps(ticks: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(ticks)]


def test_messages_of_one_tick_arrive_in_the_order_they_were_sent() -> None:
    simulator = Simulator(1, delay=fixed(7))
    _, listener = probes(simulator, 2)
    simulator.nodes[0] = Probe(0, [Send(1, Note(number)) for number in range(50)])
    simulator.run(2 * INTERVAL)
    assert listener.heard[:50] == list(range(50))


def test_injected_messages_of_one_tick_arrive_in_order_after_those_sent_before() -> None:
    simulator = Simulator(1)
    (node,) = probes(simulator, 1)
    for number in range(10):
        simulator.inject(0, Note(number), delay=3)
    simulator.run(3)
    assert node.heard == list(range(10))


def test_message_arrives_after_exactly_its_delay() -> None:
    simulator, log = Simulator(1, delay=fixed(13)), Log()
    simulator.watch(log)
    probes(simulator, 2)
    simulator.nodes[0] = Probe(0, [Send(1, Note(1))])
    simulator.run(3 * INTERVAL)
    assert set(log.travels().values()) == {13}


def test_every_live_node_runs_one_timeout_per_interval_at_its_own_phase() -> None:
    simulator, log = Simulator(5), Log()
    simulator.watch(log)
    nodes = probes(simulator, 40)
    simulator.run(6 * INTERVAL)
    for node in nodes:
        ticks = log.ticks("timeout", node.id)
        assert len(ticks) == 6
        assert gaps(ticks) == [INTERVAL] * 5
    assert len({log.ticks("timeout", node.id)[0] % INTERVAL for node in nodes}) > 20


def test_timeouts_come_however_busy_the_inbox_is() -> None:
    simulator = Simulator(1)
    node = Probe(0, [Send(0, Note(1)) for _ in range(500)])
    simulator.add(node)
    simulator.run(5 * INTERVAL)
    assert node.timeouts == 5


def test_drift_varies_the_period_within_its_share() -> None:
    simulator, log = Simulator(3, drift=0.2), Log()
    simulator.watch(log)
    nodes = probes(simulator, 10)
    simulator.run(50 * INTERVAL)
    for node in nodes:
        periods = gaps(log.ticks("timeout", node.id))
        assert min(periods) >= 0.8 * INTERVAL
        assert max(periods) <= 1.2 * INTERVAL
        assert len(set(periods)) > 10


def test_restarted_node_has_one_clock_only() -> None:
    simulator, log = Simulator(2), Log()
    simulator.watch(log)
    probes(simulator, 3)
    simulator.run(INTERVAL)
    for _ in range(5):
        simulator.remove(1)
        simulator.add(Probe(1))
    before = len(log.ticks("timeout", 1))
    simulator.run(10 * INTERVAL)
    after = log.ticks("timeout", 1)[before:]
    assert len(after) == 10
    assert gaps(after) == [INTERVAL] * 9


def test_removed_node_runs_no_timeout_and_hears_nothing() -> None:
    simulator = Simulator(2)
    node, _ = probes(simulator, 2)
    assert simulator.remove(0) is node
    simulator.inject(0, Note(1))
    simulator.run(3 * INTERVAL)
    assert (node.timeouts, node.heard, simulator.undeliverable) == (0, [], 1)


def test_paused_node_loses_nothing_and_knows_nothing() -> None:
    simulator = Simulator(2)
    node, other = probes(simulator, 2)
    other.says = [Send(0, Note(1)), Send(0, Letter(2))]
    node.says = [Send(9, Note(3))]
    simulator.run(INTERVAL)
    node.commands.clear()
    timeouts, heard, silence = node.timeouts, len(node.heard), list(node.commands)
    simulator.pause(0)
    simulator.command(0, Publish("news", b"x"))
    simulator.inject(0, Note(7))
    simulator.run(5 * INTERVAL)
    assert (node.timeouts, len(node.heard), node.commands) == (timeouts, heard, silence)
    waiting = simulator.resume(0)
    assert waiting >= 2 * 4 + 3  # the other's notes, one timeout, one note, one command
    simulator.run(INTERVAL)
    assert node.timeouts == timeouts + 1
    assert 7 in node.heard
    assert Publish("news", b"x") in node.commands
    sent_to_node = [entry for entry, _ in simulator.channel() if entry == 0]
    assert len(node.heard) + len(sent_to_node) == 2 * other.timeouts + 1


def test_paused_sender_hears_of_a_failed_send_only_when_resumed() -> None:
    simulator = Simulator(2, delay=fixed(5))
    (node,) = probes(simulator, 1)
    node.says = [Send(9, Note(1))]
    while not simulator.sent:
        simulator.run(1)
    simulator.pause(0)
    simulator.run(50)
    assert LinkDown(9, (Note(1),)) not in node.commands
    assert simulator.resume(0) == 1
    simulator.run(1)
    assert node.commands[-1] == LinkDown(9, (Note(1),))
    assert simulator.undeliverable == 1


def test_resume_of_a_node_that_was_not_paused_does_nothing() -> None:
    simulator = Simulator(2)
    probes(simulator, 1)
    assert simulator.resume(0) == 0


def test_crash_of_a_paused_node_takes_what_waited_for_it() -> None:
    simulator = Simulator(2)
    probes(simulator, 1)
    simulator.pause(0)
    simulator.inject(0, Note(1))
    simulator.command(0, Publish("news", b"x"))
    simulator.run(INTERVAL)
    simulator.remove(0)
    reborn = Probe(0)
    simulator.add(reborn)
    simulator.resume(0)
    simulator.run(INTERVAL)
    assert (reborn.heard, reborn.timeouts) == ([], 1)
    assert not any(isinstance(command, Publish) for command in reborn.commands)


def test_sender_of_an_undeliverable_message_is_told_that_the_link_is_down() -> None:
    simulator, log = Simulator(2), Log()
    simulator.watch(log)
    (node,) = probes(simulator, 1)
    node.says = [Send(9, Note(1))]
    simulator.run(2 * INTERVAL)
    assert LinkDown(9, (Note(1),)) in node.commands
    assert len(log.ticks("drop", 9)) == simulator.undeliverable >= 1
    assert [
        row for row in log.rows if row[1] == "command" and row[4] == LinkDown(9, (Note(1),))
    ] != []


def test_sender_is_told_nothing_on_a_network_without_connections() -> None:
    simulator = Simulator(2)
    simulator.detects_failed_sends = False
    (node,) = probes(simulator, 1)
    node.says = [Send(9, Note(1))]
    simulator.run(2 * INTERVAL)
    assert simulator.undeliverable >= 1
    assert LinkDown(9, (Note(1),)) not in node.commands


def test_link_with_a_delay_of_its_own_keeps_to_it() -> None:
    simulator, log = Simulator(2, delay=uniform(1, 10)), Log()
    simulator.watch(log)
    probes(simulator, 2)
    simulator.link_delays[0, 1] = fixed(77)
    simulator.nodes[0] = Probe(0, [Send(1, Note(0))])
    simulator.nodes[1] = Probe(1, [Send(0, Note(1))])
    simulator.run(10 * INTERVAL)
    sender = {row[3].number: row[3].source for row in log.rows if row[1] == "send"}
    taken = [(sender[number], ticks) for number, ticks in log.travels().items()]
    assert {ticks for source, ticks in taken if source == 0} == {77}
    assert max(ticks for source, ticks in taken if source == 1) <= 10


def test_node_that_reads_clocks_gets_seconds_with_its_skew_before_each_timeout() -> None:
    simulator = Simulator(2)
    (node,) = probes(simulator, 1)
    simulator.clock_skew[0] = 1000
    simulator.run(3 * INTERVAL)
    seconds = [command.seconds for command in node.commands if isinstance(command, Clock)]
    assert seconds == [1000, 1001, 1002]


def test_slow_node_runs_its_timeouts_that_much_later() -> None:
    simulator = Simulator(2)
    node, other = probes(simulator, 2)
    simulator.slowness[0] = 4.0
    simulator.run(20 * INTERVAL)
    assert (node.timeouts, other.timeouts) == (5, 20)


def test_channel_lists_what_is_in_flight_and_what_waits_at_a_paused_node() -> None:
    simulator = Simulator(2)
    probes(simulator, 2)
    simulator.inject(1, Note(2), delay=9)
    simulator.inject(0, Note(1), delay=4)
    assert list(simulator.channel()) == [(0, Note(1)), (1, Note(2))]
    simulator.pause(1)
    simulator.run(10)
    assert list(simulator.channel()) == [(1, Note(2))]


def test_rewriting_the_channel_changes_messages_and_never_timeouts() -> None:
    simulator = Simulator(2)
    node, _ = probes(simulator, 2)
    for number in range(4):
        simulator.inject(0, Note(number))
    assert simulator.rewrite_channel(lambda entry: []) == 4
    simulator.run(3 * INTERVAL)
    assert (node.heard, node.timeouts) == ([], 3)


def test_observer_sees_only_the_kinds_it_asks_for() -> None:
    class Deliveries(Log):
        kinds = ("deliver",)

    simulator, some, everything = Simulator(2), Deliveries(), Log()
    simulator.watch(some)
    simulator.watch(everything)
    probes(simulator, 1)
    simulator.inject(0, Note(1))
    simulator.run(INTERVAL)
    assert [row[1] for row in some.rows] == ["deliver"]
    assert {row[1] for row in everything.rows} == {"start", "send", "deliver", "timeout", "command"}


def test_effects_and_causes_are_shown_to_observers() -> None:
    simulator, log = Simulator(2), Log()
    simulator.watch(log)
    probes(simulator, 1)
    simulator.command(0, Publish("news", b"x"))
    simulator.inject(0, Note(1))
    assert [row[1] for row in log.rows] == ["start", "command", "effect", "effect", "send"]
    assert log.rows[-1][3].source == ENVIRONMENT


@pytest.mark.parametrize("watched", [False, True])
def test_watching_changes_nothing(watched: bool) -> None:
    def run(watched: bool) -> list[list[int]]:
        simulator = Simulator(9, drift=0.1)
        nodes = probes(simulator, 8)
        for node in nodes:
            node.says = [Send((node.id * 3 + 1) % 8, Note(node.id)), Send(99, Note(5))]
        if watched:
            simulator.watch(Log())
        simulator.run(20 * INTERVAL)
        return [[*node.heard, node.timeouts] for node in nodes]

    assert run(watched) == run(False)
