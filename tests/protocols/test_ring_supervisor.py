"""The handlers of the supervisor: requests, leave-takings, suspicions, probes among supervisors."""

from collections.abc import Sequence

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, LinkDown, Send
from planaria.core.state import encode_state
from planaria.protocols.skipring.messages import (
    GetConfiguration,
    Moved,
    Probe,
    ProbeReply,
    SetData,
    Unsubscribe,
)
from planaria.protocols.skipring.placement import preference
from planaria.protocols.skipring.sums import place_sum
from planaria.protocols.skipring.supervisor import MOVED_AGE_MAX, Supervisor
from planaria.protocols.skipring.topic_supervisor import (
    CLAIM_MAX,
    DOUBTS_MAX,
    PATIENCE,
    RATE_MIN,
    RECOUNT_EVERY,
    SHARES,
    SIZE_FACTOR_MAX,
    SPREAD_TIMEOUTS,
    TopicSupervisor,
)
from ring_lab import hear

NO_SUMS = (None, None)
CLOSE, FAR = preference("news", (1000, 1001))


def topic(*members: NodeId) -> TopicSupervisor:
    served = TopicSupervisor("news", CLOSE)
    served.database.entries = list(members)
    return served


def ask(id: NodeId, *missing: NodeId, label: int | None = None) -> GetConfiguration:
    return GetConfiguration("news", id, label, NO_SUMS, list(missing))


def configured(effects: Sequence[Effect]) -> dict[NodeId, SetData]:
    return {
        effect.target: effect.message
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message, SetData)
    }


def sent(effects: Sequence[Effect]) -> list[tuple[NodeId, Message]]:
    return [(effect.target, effect.message) for effect in effects if isinstance(effect, Send)]


def test_asker_is_recorded_and_configured_with_its_new_neighbours() -> None:
    """SUBSCRIBE and S1."""
    served = topic(10, 11)
    answers = configured(served.on_get_configuration(ask(12)))
    assert served.database.entries == [10, 11, 12]
    assert answers[12].label == 2
    assert (answers[12].pred, answers[12].succ) == ((0, 10), (1, 11))
    assert sorted(answers) == [10, 11, 12]


def test_single_member_has_no_neighbours() -> None:
    """E15."""
    answer = configured(topic().on_get_configuration(ask(7)))[7]
    assert (answer.label, answer.pred, answer.succ) == (0, None, None)


def test_node_that_others_miss_is_never_recorded_by_that() -> None:
    """E6: only the asker itself."""
    served = topic(10, 11)
    served.on_get_configuration(ask(10, 77, label=0))
    assert 77 not in served.database
    assert not served.suspects


def test_missed_member_is_asked_and_removed_when_it_does_not_answer() -> None:
    """3.3."""
    served = topic(10, 11, 12)
    answers = configured(served.on_get_configuration(ask(10, 12, label=0)))
    assert answers[12].probe
    probes = 1
    for _ in range(PATIENCE + 1):
        assert 12 in served.database, "it had no time to answer"
        answers = configured(served.on_timeout())
        probes += 12 in answers and answers[12].probe
    assert probes >= 2, "the question may have been lost"
    assert served.database.entries == [10, 11]


def test_damage_that_nobody_looks_at_is_repaired_at_the_next_timeout() -> None:
    served = topic(*range(10, 18))
    served.database._entries[4] = 10
    served.on_timeout()
    assert served.database._entries == [10, 11, 12, 13, 17, 15, 16]


def test_no_fault_makes_patience_endless() -> None:
    served = topic(10, 11, 12)
    served.suspects[12] = 1 << 70
    for _ in range(PATIENCE + 1):
        served.on_timeout()
    assert served.database.entries == [10, 11]


def test_missed_member_that_answers_stays() -> None:
    served = topic(10, 11, 12)
    served.on_get_configuration(ask(10, 12, label=0))
    served.on_get_configuration(ask(12, label=2))
    for _ in range(PATIENCE + 1):
        served.on_timeout()
    assert 12 in served.database


def test_nobody_can_accuse_itself() -> None:
    served = topic(10, 11)
    served.on_get_configuration(ask(10, 10, label=0))
    assert not served.suspects


def test_leaver_is_always_let_go() -> None:
    """E7: also one that is not recorded."""
    served = topic(10, 11, 12)
    for leaver in (10, 10, 77):
        answers = configured(served.on_unsubscribe(Unsubscribe("news", leaver)))
        assert answers[leaver].label is None
    assert served.database.entries == [12, 11]


def test_timeout_configures_one_member_in_turn() -> None:
    """Round robin; E16: nobody if there is nobody."""
    served = topic(*range(5))
    turn = [list(configured(served.on_timeout())) for _ in range(10)]
    assert turn == [[1], [2], [3], [4], [0]] * 2
    assert not topic().on_timeout()


def test_rate_of_configurations_is_bounded_and_nobody_is_forgotten() -> None:
    served, seen = topic(), set[NodeId]()
    for id in range(1000):
        seen |= configured(served.on_get_configuration(ask(id))).keys()
    assert len(seen) <= RATE_MIN + 1000 // 10
    for _ in range(40):
        answers = configured(served.on_timeout())
        assert len(answers) <= served.rate
        seen |= answers.keys()
    assert seen == set(range(1000))


def test_load_is_told_along() -> None:
    served = topic()
    calm = configured(served.on_get_configuration(ask(0)))[0].window
    for id in range(1, 2000):
        served.on_get_configuration(ask(id))
    answers = configured(served.on_timeout())
    assert calm == 1 < max(answer.window for answer in answers.values())


def test_different_sum_of_a_child_is_followed_down_when_all_is_calm() -> None:
    """Digest: the child is configured and must answer at once."""
    served = topic(*range(8))
    false = GetConfiguration("news", 1, 1, (12345, served.database.sum_of(3)), [])
    assert 2 not in configured(served.on_get_configuration(false)), "sums need time to climb"
    served.calm = 100
    answers = configured(served.on_get_configuration(false))
    assert answers[2].probe
    assert 3 not in answers


def test_corrupt_sum_does_not_last() -> None:
    """It would send the supervisor after a member that is right, for ever."""
    served = topic(*range(8))
    right = served.database.sum_of(2)
    served.database._sums[2] = 12345
    for _ in range(RECOUNT_EVERY):
        served.on_timeout()
    assert served.database.sum_of(2) == right


@pytest.mark.parametrize("calm", [-1, -(10**15)])
def test_corrupt_calm_does_not_silence_the_comparison(calm: int) -> None:
    served = topic(*range(8))
    served.calm = calm
    for _ in range(20):
        served.on_timeout()
    false = GetConfiguration("news", 1, 1, (12345, served.database.sum_of(3)), [])
    assert configured(served.on_get_configuration(false))[2].probe


def test_equal_sums_cause_nothing() -> None:
    served = topic(*range(8))
    served.calm = 100
    sums = served.database.sum_of(2), served.database.sum_of(3)
    answers = configured(served.on_get_configuration(GetConfiguration("news", 1, 1, sums, [])))
    assert list(answers) == [1]


# Several supervisors


def test_supervisor_farther_from_the_topic_probes_the_closer_one_and_hands_over() -> None:
    far = Supervisor(FAR, (CLOSE, FAR))
    hear(far, ask(7))
    assert (CLOSE, Probe("news", FAR)) in sent(far.on_timeout())
    hear(far, ProbeReply("news", CLOSE))
    assert sent(hear(far, ask(8))) == [(8, Moved("news", FAR, CLOSE))]
    assert (7, Moved("news", FAR, CLOSE)) in sent(far.on_timeout())
    assert not far.topics


@pytest.mark.parametrize("n", [3, RATE_MIN, 3 * RATE_MIN + 5])
def test_hand_over_at_the_rate_forgets_nobody(n: int) -> None:
    """Whoever is not told would wait for its own coin."""
    far, informed, timeouts = Supervisor(FAR, (CLOSE, FAR)), set[NodeId](), 0
    served = far.serve("news")
    assert served is not None
    served.database.entries = list(range(n))
    while far.topics:
        hear(far, ProbeReply("news", CLOSE))
        moved = [id for id, message in sent(far.on_timeout()) if isinstance(message, Moved)]
        assert len(moved) <= RATE_MIN
        informed |= set(moved)
        timeouts += 1
    assert informed == set(range(n))
    assert timeouts == -(-n // RATE_MIN)


def test_closer_supervisor_probes_nobody_and_answers_probes() -> None:
    close = Supervisor(CLOSE, (CLOSE, FAR))
    hear(close, ask(7))
    assert not [m for _, m in sent(close.on_timeout()) if isinstance(m, Probe)]
    assert sent(hear(close, Probe("news", FAR))) == [(FAR, ProbeReply("news", CLOSE))]
    assert not hear(close, Probe("news", 5)), "a stranger got an answer"


def test_answer_to_a_probe_counts_for_a_few_timeouts() -> None:
    far = Supervisor(FAR, (CLOSE, FAR))
    hear(far, ProbeReply("news", CLOSE))
    for _ in range(MOVED_AGE_MAX + 1):
        far.on_timeout()
    assert configured(hear(far, ask(8)))[8].label == 0


def test_failed_send_to_a_member_makes_it_a_suspect() -> None:
    close = Supervisor(CLOSE, (CLOSE, FAR))
    hear(close, ask(7))
    close.on_command(LinkDown(7))
    assert 7 in close.topics["news"].suspects


def test_stored_database_of_any_content_is_taken() -> None:
    close = Supervisor(CLOSE, (CLOSE, FAR))
    close.serve("news")
    state = close.state()
    state.topics["news"].database.entries[:] = [3, None, 3, -1, 4]
    again = Supervisor(CLOSE, (CLOSE, FAR))
    again.restore(encode_state(state))
    assert again.state() == state
    again.on_timeout()
    assert again.topics["news"].database.entries == [3, 4]


# Queue and rate


def right(served: TopicSupervisor, id: NodeId) -> GetConfiguration:
    """The request of a member that has what is recorded for it."""
    label = served.database.label_of(id)
    assert label is not None
    pred, succ = served.database.neighbours(label) or (None, None)
    return GetConfiguration("news", id, label, NO_SUMS, [], place_sum(label, pred, succ))


def slow(monkeypatch: pytest.MonkeyPatch, rate: int) -> None:
    """As if n were so large that the queue takes long."""
    monkeypatch.setattr(TopicSupervisor, "rate", property(lambda served: rate))


def test_nobody_is_removed_before_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience does not run while the question is in the queue (Lemma 9)."""
    slow(monkeypatch, 2)
    served = topic(*range(60))
    asked = set[NodeId]()
    answers = configured(served.on_get_configuration(ask(0, 1)))
    for accused in range(2, 60):
        answers |= configured(served.on_get_configuration(ask(0, accused)))
    for timeout in range(80):
        for id, answer in answers.items():
            if answer.probe:
                asked.add(id)
                served.on_get_configuration(right(served, id))
        answers = configured(served.on_timeout())
        assert timeout < PATIENCE or len(asked) > PATIENCE
    assert asked >= set(range(1, 60)), "the queue was not worked off"
    assert len(served.database) == 60


def test_full_queue_does_not_delay_the_removal_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 8)
    served = topic(*range(500))
    served.outbox = dict.fromkeys(range(400), False)
    served.on_get_configuration(ask(0, 450))
    timeouts = 0
    while 450 in served.database:
        served.on_timeout()
        timeouts += 1
    assert timeouts <= PATIENCE + 2
    assert served.outbox, "the queue was not full all the while"


def test_those_who_are_wrong_are_answered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, SHARES)
    served = topic(*range(100))
    served.sent = SHARES  # no more before the next timeout
    for id in range(40):
        served.on_get_configuration(right(served, id))
    for id in range(40, 80):
        served.on_get_configuration(ask(id, label=3))
    for _ in range(4):
        answers = configured(served.on_timeout())
        assert len([id for id in answers if id < 40]) == 1, "those who are right have their share"
    for _ in range(8):
        served.on_timeout()
    assert served.queued <= 20


@pytest.mark.parametrize("claim", [0, 1, 300, 1 << 19, 1 << 61])
def test_claims_of_askers_raise_the_rate_by_a_factor_at_most(claim: int) -> None:
    """Labels may be corrupt, all of them."""
    served = topic(*range(4000))
    nominal = served.rate
    for id in range(2000):
        served.on_get_configuration(ask(id, label=claim))
    assert nominal <= served.rate <= SIZE_FACTOR_MAX * nominal
    if claim >= 1 << 19:
        assert served.rate > 1.5 * nominal, "nobody listens"


@pytest.mark.parametrize("value", [-1, -(10**18), 10**18, CLAIM_MAX])
def test_whatever_the_counters_hold_rate_and_window_are_bounded(value: int) -> None:
    served = topic(*range(1000))
    served.claimed = served.spread = served.doubts = served.unsettled = value
    assert RATE_MIN <= served.rate <= SIZE_FACTOR_MAX * 1000 // 9
    for _ in range(SPREAD_TIMEOUTS + 1):
        served.on_get_configuration(ask(3, label=77))
        served.on_timeout()
    assert not served.spread
    assert 1 <= served.window <= 11


@pytest.mark.parametrize(
    ("recorded", "label", "spread"),
    [
        (0, 0, True),  # the first one of a ring that was forgotten
        (5, 10, True),
        (5, None, False),  # one that joins
        (5, 3, False),  # one that was removed by mistake: its label is in use
        (5, 1 << 40, False),  # no ring has such labels
    ],
)
def test_unknown_ring_has_everybody_woken(recorded: int, label: int | None, spread: bool) -> None:
    served = topic(*range(recorded))
    answers = configured(served.on_get_configuration(ask(99, label=label)))
    assert answers[99].spread == spread
    for _ in range(SPREAD_TIMEOUTS):
        answers = configured(served.on_timeout())
    assert not any(answer.spread for answer in answers.values())


@pytest.mark.parametrize(("wrong", "spread"), [(2, False), (DOUBTS_MAX + 1, True)])
def test_many_wrong_labels_have_everybody_woken_but_two_do_not(wrong: int, spread: bool) -> None:
    served = topic(*range(100))
    for _ in range(SPREAD_TIMEOUTS):
        served.on_timeout()
    for id in range(wrong):
        answers = configured(served.on_get_configuration(ask(id, label=50 + id)))
    assert answers[wrong - 1].spread == spread


def test_wrong_labels_right_after_a_change_are_no_news() -> None:
    served = topic(*range(100))
    for id in range(2 * DOUBTS_MAX):
        served.on_get_configuration(ask(id, label=50 + id))
    assert not served.spread
