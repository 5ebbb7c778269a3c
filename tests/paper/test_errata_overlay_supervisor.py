"""Errata E6-E10, E16: the supervisor (Algorithm 3) as printed, and leaving (section 4.1)."""

import pytest

from planaria.core.chance import stream
from planaria.core.node import Send, Unsubscribe
from planaria.literal.skipring import messages
from planaria.literal.skipring.amendments import ALL, E6_TEXT
from planaria.literal.skipring.labels import label
from planaria.literal.skipring.messages import SetData
from planaria.literal.skipring.supervisor import Supervisor
from planaria.studies.skipring.literal import Run, without


def _supervisor(amendments: frozenset[str], database: dict[str, int | None]) -> Supervisor:
    supervisor = Supervisor(0, stream(1, "supervisor"), amendments)
    supervisor.database = dict(database)
    return supervisor


def _with_two_crashes(amendments: frozenset[str], seed: int) -> int | None:
    run = Run.legitimate(amendments, 8, seed, detection=20.0)
    first = seed % 8
    for id in (1 + first, 1 + (first + 3) % 8):
        run.simulator.remove(id)
    return run.heals(200)


def test_e6_inserting_whomever_one_is_asked_about_brings_back_the_dead() -> None:
    """The prose inserts; neighbours' action (iii) names the crashed, which are thus inserted again.

    n = 8, two crashes, failure detector with a mean delay of 20 intervals, 6 seeds. The
    pseudocode, which inserts nobody, is as safe as the amendment.
    """
    seeds = range(6)
    assert [_with_two_crashes(without("E6") | {E6_TEXT}, seed) for seed in seeds] == [None] * 6
    assert None not in [_with_two_crashes(without("E6"), seed) for seed in seeds]
    assert None not in [_with_two_crashes(ALL, seed) for seed in seeds]


def test_e6_answering_bottom_costs_an_unrecorded_node_one_more_round_trip() -> None:
    """Pseudocode: bottom, then SUBSCRIBE at the next timeout, then the configuration."""
    for amendments, recorded in ((ALL, True), (without("E6"), False)):
        supervisor = _supervisor(amendments, {})
        supervisor.on_message(messages.GetConfiguration(7, 7))
        assert (supervisor.database == {"0": 7}) is recorded
        supervisor = _supervisor(amendments, {})
        supervisor.on_message(messages.GetConfiguration(7, 1))
        assert supervisor.database == {}


def _after_leaving(amendments: frozenset[str]) -> Run:
    run = Run.legitimate(amendments, 3)
    run.simulator.command(run.holder("1").id, Unsubscribe("literal"))
    return run


def test_e7_a_node_that_was_let_go_subscribes_again_at_its_next_timeout() -> None:
    """Lemma 6 fails: n = 3, one leaves, and is a member again for ever."""
    assert _after_leaving(without("E7")).heals(100) is None
    assert _after_leaving(ALL).heals(20) is not None


@pytest.mark.parametrize("amendments", [without("E7"), ALL], ids=["literal", "amended"])
def test_e7_unsubscribe_overtaking_subscribe_is_answered_and_repeated(
    amendments: frozenset[str],
) -> None:
    """A newcomer changed its mind; its UNSUBSCRIBE arrives first and finds nothing to remove."""
    run = Run.legitimate(amendments, 3)
    newcomer = run.overlay.spawn(4, run.simulator.rng)
    run.simulator.add(newcomer)
    run.simulator.command(4, Unsubscribe("literal"))
    run.simulator.inject(0, messages.Subscribe(4), 60)
    assert (run.heals(60) is not None) is (amendments == ALL)
    assert (4 in run.supervisor.database.values()) is (amendments != ALL)


def test_e7_an_unrecorded_leaver_gets_no_answer_from_the_printed_supervisor() -> None:
    for amendments, answers in ((without("E7"), 0), (ALL, 1)):
        effects = _supervisor(amendments, {}).on_message(messages.Unsubscribe(4))
        assert len(effects) == answers


def test_e7_a_configuration_that_arrives_after_the_permission_is_refused() -> None:
    run = _after_leaving(ALL)
    assert run.heals(20) is not None
    leaver = next(node for node in run.subscribers if not node.wants)
    late = SetData(messages.Ref("0", run.holder("0").id), "1", None)
    assert leaver.on_message(late) == [Send(0, messages.Unsubscribe(leaver.id))]
    assert leaver.label is None


@pytest.mark.parametrize("database", [{"10": 1}, {"": 1, "10": 2}], ids=["10", "empty-and-10"])
def test_e8_the_supervisor_is_stuck_on_a_label_outside_the_image_of_l(
    database: dict[str, int | None],
) -> None:
    """There is no tuple (l(j), w) with j > i to fill the hole with, at any timeout."""
    state: dict[int, dict[str, str]] = {id: {} for id in database.values() if id is not None}
    literal = Run.given(without("E8"), database, state)
    assert literal.heals(100) is None
    assert literal.supervisor.undefined >= 100
    assert Run.given(ALL, database, state).heals(20) is not None


def test_e9_subscribe_over_a_hole_overwrites_a_member() -> None:
    """n = 3, label '1' is removed by the failure detector, then somebody subscribes.

    Finding: the overwritten member recovers by itself later (600 random states, 0 failures).
    """
    for amendments, overwritten in ((without("E9"), True), (ALL, False)):
        supervisor = _supervisor(amendments, {"0": 1, "1": 2, "01": 3})
        supervisor.suspects = [2]
        supervisor.detect_failures()
        supervisor.on_message(messages.Subscribe(4))
        assert (3 not in supervisor.database.values()) is overwritten
        assert 4 in supervisor.database.values()


@pytest.mark.parametrize(("leaver", "n"), [("0", 2), ("0", 3), ("1", 3), ("1", 4)])
def test_e10_the_mover_is_told_that_it_is_its_own_neighbour(leaver: str, n: int) -> None:
    """Finding: transient once E2 is amended, for the self reference is dropped on receipt."""
    for amendments, own_neighbour in ((without("E10"), True), (ALL, False)):
        supervisor = _supervisor(amendments, {label(i): i + 1 for i in range(n)})
        owner = supervisor.database[leaver]
        assert owner is not None
        effects = supervisor.on_message(messages.Unsubscribe(owner))
        move = next(e for e in effects if isinstance(e, Send) and e.target != owner)
        assert isinstance(move.message, SetData)
        neighbours = [ref.id for ref in (move.message.pred, move.message.succ) if ref is not None]
        assert (move.target in neighbours) is own_neighbour


def test_e16_the_round_robin_divides_by_zero_while_the_database_is_empty() -> None:
    for amendments, undefined in ((without("E16"), 1), (ALL, 0)):
        supervisor = _supervisor(amendments, {})
        assert supervisor.on_timeout() == []
        assert supervisor.undefined == undefined
