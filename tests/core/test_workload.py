"""A workload is a part of a scenario: read, written, and offered to whoever can."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.core.node import Clock, Command, Leave, Publish, Subscribe, Unsubscribe
from planaria.core.scenario import WORKLOAD, parse_schedule, print_schedule
from planaria.core.workload import Ask, action_of, ask_of, offers
from planaria.simulator.engine import Simulator
from planaria.simulator.nemesis import Nemesis
from toys import Log, Probe, ProbeOverlay

TEXT = st.text(max_size=5)
PLAIN = st.dictionaries(TEXT, st.integers(-9, 9) | st.booleans() | TEXT, max_size=2)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Subscribe, TEXT, st.booleans(), st.none() | st.text(min_size=1), st.integers(0, 5)),
    st.builds(Unsubscribe, TEXT, st.none() | st.text(min_size=1), st.integers(0, 5)),
    st.builds(
        Publish,
        TEXT,
        st.binary(),
        PLAIN,
        st.none() | st.binary(),
        st.dictionaries(TEXT, TEXT, max_size=2),
        st.none() | st.integers(-(2**60), 2**60),
    ),
    st.just(Leave()),
)


def asks() -> st.SearchStrategy[Ask]:
    nodes = st.none() | st.integers(0, 99)
    return st.builds(Ask, st.floats(0, 999, allow_nan=False), COMMANDS, nodes, st.just(1))


@given(asks())
def test_what_is_asked_can_be_written_and_read_again(ask: Ask) -> None:
    (action,) = parse_schedule(print_schedule((action_of(ask),)))
    assert ask_of(action) == ask


@pytest.mark.parametrize("kind", WORKLOAD)
def test_a_line_without_arguments_asks_anybody(kind: str) -> None:
    (action,) = parse_schedule(f"at 2 {kind}")
    ask = ask_of(action)
    assert (ask.at, ask.node, ask.count) == (2.0, None, 1)
    assert action_of(ask) == action


def test_what_no_line_can_say_is_refused() -> None:
    with pytest.raises(UsageError, match="write it as text"):
        action_of(Ask(0, Subscribe(where=object())))
    with pytest.raises(UsageError, match="asks for subscribe"):
        action_of(Ask(0, Clock(1)))
    (half,) = parse_schedule(r'at 1 publish payload="\ud800"')
    with pytest.raises(UsageError, match="no text"):
        ask_of(half)


def test_anybody_who_can_is_offered_once_in_an_order_of_chance() -> None:
    class Silent(ProbeOverlay):
        def publication(self, id: int, number: int) -> Command | None:
            return None if id == 2 else super().publication(id, number)

    orders = set()
    for seed in range(20):
        offered = list(offers(Ask(0, Publish("")), range(4), Silent(), Random(seed), 7))
        assert sorted(id for id, _ in offered) == [0, 1, 3]
        assert all(command == Publish("news", b"7") for _, command in offered)
        orders.add(tuple(id for id, _ in offered))
    assert len(orders) > 3
    one = list(offers(Ask(0, Publish("t"), node=2), range(4), Silent(), Random(0)))
    assert one == [(2, Publish("t"))]
    assert list(offers(Ask(0, Publish("t"), node=9), range(4), Silent(), Random(0))) == []


def run(text: str, n: int = 4) -> tuple[Nemesis, list[Probe], Log]:
    simulator, log = Simulator(1), Log()
    simulator.watch(log)
    probes = [Probe(id) for id in range(n)]
    for probe in probes:
        simulator.add(probe)
    nemesis = Nemesis(simulator, ProbeOverlay(), parse_schedule(text))
    while (due := nemesis.next_tick) is not None:
        simulator.run(due - simulator.tick)
        nemesis.advance()
    return nemesis, probes, log


def test_the_simulator_asks_the_node_that_is_named() -> None:
    nemesis, probes, _ = run(
        "at 0 subscribe pattern=news/# node=3\nat 1 publish topic=news payload=hi count=2 node=1\n"
        "at 2 unsubscribe pattern=news/# node=3\nat 3 leave node=2"
    )
    commands = [[it for it in probe.commands if not isinstance(it, Clock)] for probe in probes]
    assert commands == [
        [],
        [Publish("news", b"hi")] * 2,
        [Unsubscribe("news")],
        [Subscribe("news/#"), Unsubscribe("news/#")],
    ]
    assert [it.affected for it in nemesis.report] == [1, 2, 1, 1]
    assert nemesis.ineffective() == []


def test_a_refusal_is_counted_and_seen() -> None:
    nemesis, _, log = run("at 1 subscribe where=x\nat 1 publish topic=t node=77")
    (conditional, absent) = nemesis.report
    assert (conditional.injected, conditional.affected, conditional.refused) == (1, 0, 1)
    assert (absent.injected, absent.affected, absent.refused) == (0, 0, 1)
    assert len(log.ticks("refuse")) == 4  # everybody was asked
    assert not any(isinstance(row[4], Subscribe) for row in log.rows if row[1] == "command")
