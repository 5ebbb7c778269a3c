"""Errata 2.1-2.6 and 2.18-2.21 of the second paper: the literal reading, and the amended one."""

from functools import cache
from math import ceil, exp, log, log2
from random import Random

import pytest

from gossip_world import World, chain_wishes
from planaria.core.node import Publish, Send
from planaria.lab.gossip import analysis
from planaria.lab.gossip.experiment import Setting, run
from planaria.lab.gossip.prediction import reliability
from planaria.literal import gossip_analysis as printed
from planaria.literal.gossip import LiteralProcess
from planaria.protocols.gossip.messages import Event
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.worlds.reach import GroupReach, estimated, summarize

DIALS = Parameters()
PAPER = Setting(coins=True, publisher_relays=False)  # Figure 7 with `<`, as printed otherwise


def literal(size: int, dials: Parameters = DIALS, seed: int = 1) -> LiteralProcess:
    table = [*range(1, 1 + min(size - 1, ceil(4 * log(size))))]
    return LiteralProcess(
        "a/b",
        {"a/b": table},
        {"a/b": [901, 902, 903]},
        {"a/b": size},
        dials,
        Random(seed),
    )


@cache
def runs_of(setting: Setting, events: int = 600) -> list[list[GroupReach]]:
    """The experiment, once for all tests that look at it."""
    return run(setting, events, Random(2))


def p_reached(rows: list[GroupReach]) -> float:
    return sum(row.reached > 0 for row in rows) / len(rows)


def test_erratum_1_electing_with_rand_not_below_p_sel_makes_nearly_everybody_a_relay() -> None:
    process = literal(1000)
    relayed = sum(len(process.disseminate("a/b")[0]) for _ in range(1000))
    assert 930 < relayed < 1060  # for one event in a group of 1000: 995 instead of 5
    everybody = literal(30, Parameters(g=30))
    assert sum(len(everybody.disseminate("a/b")[0]) for _ in range(100)) == 0  # g = S: none at all
    amended = summarize(runs_of(PAPER)[2])["intergroup_sent"]
    assert abs(amended.mean - 5) < 3 * amended.half


def test_erratum_2_the_loop_sends_once_too_often_where_ln_s_plus_c_is_whole() -> None:
    whole = Parameters(c=6 - log(40))
    assert len(literal(40, whole).disseminate("a/b")[1]) == 7
    assert whole.fanout(40) == 6
    assert len(literal(1000).disseminate("a/b")[1]) == DIALS.fanout(1000) == 12
    binary = LiteralProcess(
        "a/b", {"a/b": [*range(40)]}, {"a/b": []}, {"a/b": 1000}, DIALS, Random(1), log2
    )
    assert len(binary.disseminate("a/b")[1]) == 15  # `log` to base 2 sends a quarter more


@pytest.mark.parametrize("size", range(2, 9))
def test_erratum_3_small_groups_select_from_an_empty_set(size: int) -> None:
    with pytest.raises(IndexError):
        literal(size).disseminate("a/b")
    assert DIALS.fanout(size) == size - 1


def test_erratum_4_pit_needs_independent_coins_and_is_958_not_99992() -> None:
    coins = analysis.pit(1000, DIALS, 0.85, coins=True)
    exactly = analysis.pit(1000, DIALS, 0.85)
    assert round(printed.pit(1000, DIALS, 0.85), 5) == 0.99992
    assert round(coins, 3) == 0.958
    assert round(exactly, 3) == 0.986
    simulated = [p_reached(runs_of(PAPER)[1])]
    simulated.append(p_reached(runs_of(Setting(publisher_relays=False))[1]))
    assert abs(simulated[0] - coins) < 0.016
    assert abs(simulated[1] - exactly) < 0.010


def test_erratum_4_what_9999_over_a_link_really_takes() -> None:
    """g=15 with a=1, or g=10 with a=3, says the erratum: so it is with coins.

    Sending to exactly a, 11 relays of one message each are enough.
    """
    assert analysis.pit(1000, Parameters(g=15), 0.85, coins=True) > 0.9999
    assert analysis.pit(1000, Parameters(g=10, a=3), 0.85, coins=True) > 0.9999
    assert analysis.pit(1000, Parameters(g=11), 0.85) > 0.9999


def test_erratum_5_the_product_must_not_hold_a_link_above_the_destination() -> None:
    """One group alone: no link is needed, and the print still demands one."""
    literal_value = printed.reliability([1000], DIALS, 0.85)
    assert literal_value == pytest.approx(exp(-exp(-5)) * printed.pit(1000, DIALS, 0.85))
    assert literal_value < exp(-exp(-5))
    assert analysis.reliability_of([1000], DIALS, 1.0) == pytest.approx(
        analysis.everybody(1000, DIALS, 1.0)
    )


def test_erratum_6_losses_within_a_group_count() -> None:
    assert round(exp(-exp(-5.0)), 3) == 0.993
    c_eff = 0.85 * (log(1000) + 5) - log(1000)
    assert round(c_eff, 2) == 3.21
    assert round(exp(-exp(-c_eff)), 3) == 0.961
    simulated = summarize(runs_of(PAPER)[2])["p_all"]
    assert simulated.mean + simulated.half < 0.985  # not .993
    assert abs(simulated.mean - analysis.everybody(1000, DIALS, 0.85)) < 2 * simulated.half


def test_erratum_6_all_lower_members_receiving_is_sufficient_but_not_necessary() -> None:
    """With two thirds of T2 missing, T1 can still get the event."""
    events = list(zip(*run(Setting(failed=0.5), 300, Random(4)), strict=True))
    assert any(t1.reached and t2.reached < t2.alive for _, t1, t2 in events)


def test_erratum_18_literally_a_forwarder_joins_the_group_of_the_event() -> None:
    process = LiteralProcess(
        "a",
        {"a": [*range(20)], "a/b": [*range(100, 140)]},
        {"a": [1], "a/b": [2]},
        {"a": 20, "a/b": 1000},
        DIALS,
        Random(1),
    )
    _, within = process.receive("a/b", b"event")
    assert process.subscribed == ["a", "a/b"]
    assert all(target >= 100 for target in within)  # back down, and nobody in its own group
    world = World(chain_wishes(6, 6))
    node = world[0]
    event = Event("a", "a/b", b"id", b"x", 9, 0, 9, 1)
    targets = [it.target for it in node.on_message(event) if isinstance(it, Send)]
    assert list(node.groups) == ["a"]
    assert sorted(targets) == [1, 2, 3, 4, 5]


def test_erratum_19_a_publisher_that_does_not_mark_its_event_sends_it_twice() -> None:
    process = literal(1000)
    once = len(process.publish("a/b")[1])
    again = len(process.receive("a/b", b"event")[1])
    assert (once, again) == (12, 12)
    assert process.delivered == [b"event"]
    world = World(chain_wishes(3, 9))
    world.simulator.command(5, Publish("a/b", b"x"))
    world.run(3)
    assert world.deliveries.of[b"x"].count(5) == 1
    copies = [message for _, message in world.simulator.channel() if isinstance(message, Event)]
    assert copies == []
    [msg_id] = world[5].memory
    assert list(world[5].on_message(Event("a/b", "a/b", msg_id, b"x", 5, 0, 7, 1))) == []


def test_erratum_20_electing_the_publisher_always_raises_982_for_one_message() -> None:
    elected = Setting(coins=True, publisher_relays=True)
    rows = runs_of(elected)
    assert abs(p_reached(rows[1]) - 0.982) < 0.013
    both = runs_of(Setting())
    assert p_reached(both[1]) > 0.993  # with exactly a of z besides: what the protocol does


def test_erratum_21_at_half_failed_t1_gets_nothing_in_two_fifths_of_the_runs() -> None:
    rows = runs_of(Setting(failed=0.5, coins=True, publisher_relays=False))
    link = summarize(rows[2])
    assert abs(link["intergroup_sent"].mean - 2.48) < 0.2
    assert abs(link["intergroup_received"].mean - 1.06) < 0.15
    assert abs(1 - p_reached(rows[1]) - 0.40) < 0.04


def test_figures_10_and_11_only_of_all_agrees_with_the_text() -> None:
    """'The reception probability depends on the probability of failure': .5 at half failed."""
    half = summarize(run(Setting(failed=0.5), 300, Random(8))[2])
    assert abs(half["of_all"].mean - 0.5) < 0.02
    assert half["of_alive"].mean > 0.98
    observer = summarize(run(Setting(failed=0.5, failures="observer"), 300, Random(9))[2])
    assert observer["of_all"].mean > 0.98  # 'a much better reliability'
    assert observer["p_all"].mean < half["p_all"].mean + 0.05  # P(all) says the contrary


def test_dials_chosen_for_a_target_keep_it() -> None:
    choice = reliability(target=0.99, loss=0.15)
    assert choice is not None
    assert 0.99 <= choice.predicted < 0.995
    rows = runs_of(Setting(parameters=choice.parameters), 1200)
    everywhere = [float(all(row.p_all for row in event)) for event in zip(*rows, strict=True)]
    got = estimated(everywhere)
    assert abs(got.mean - choice.predicted) < 2 * got.half
    sent = sum(
        summarize(group)[name].mean for group in rows for name in ("sent", "intergroup_sent")
    )
    assert abs(sent - choice.messages) / choice.messages < 0.002


def test_cheaper_dials_miss_the_target() -> None:
    choice = reliability(target=0.99, loss=0.15)
    assert choice is not None
    g, a, z, c = choice.dials
    for fewer in (Parameters(g=g - 1, a=a, z=z, c=c), Parameters(g=64, a=a, z=z, c=c - 1)):
        inside = analysis.reliability_of((10, 100, 1000), fewer, 0.85)
        assert inside < 0.99


def test_impossible_target_has_no_dials() -> None:
    assert reliability(target=1.0, loss=0.5, sizes=(5, 20)) is None
