"""The handlers of a subscriber: what it compares, whom it wakes, what it keeps."""

from collections.abc import Sequence
from random import Random

import pytest

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Send, Subscribe
from planaria.protocols.ring.messages import Check, Introduce
from planaria.protocols.skipring.broadcast_messages import Nack
from planaria.protocols.skipring.messages import (
    WINDOW_MAX,
    GetConfiguration,
    Greeting,
    IntroduceShortcut,
    Ref,
    RemoveConnections,
    SetData,
    Unsubscribe,
    Wake,
)
from planaria.protocols.skipring.peer import Peer
from planaria.protocols.skipring.place import SUM_AGE_MAX
from planaria.protocols.skipring.subscriber import SILENCE_MAX, Subscriber
from ring_lab import hear

ME, SUPERVISOR = 50, 1000


def member(label: int | None, pred: Ref | None = None, succ: Ref | None = None) -> Subscriber:
    """A calm member that believes in this place."""
    one = Subscriber("news", ME, (SUPERVISOR,), Random(1))
    one.label, one.pred, one.succ = label, pred, succ
    one.inquiry.calm()
    return one


def usual() -> Subscriber:
    """Label 2 (at 1/4) of SR(8), between 4 and 5; its shortcuts are 0 and 1."""
    return member(2, (4, 14), (5, 15))


def sent(effects: Sequence[Send]) -> list[tuple[NodeId, Message]]:
    return [(send.target, send.message) for send in effects]


def configure(
    label: int | None, pred: Ref | None, succ: Ref | None, probe: bool = False
) -> SetData:
    return SetData("news", SUPERVISOR, 1, label, pred, succ, 9, probe)


def test_check_that_agrees_causes_nothing() -> None:
    one = usual()
    assert one.on_greeting(Greeting("news", (4, 14), 2, None)) == []
    assert not one.alarmed


@pytest.mark.parametrize(("sender", "believed"), [((4, 14), 3), ((6, 14), 2), ((4, 99), 2)])
def test_check_that_disagrees_lets_both_ask(sender: Ref, believed: int) -> None:
    """A1: waking only one would livelock when the other is the wrong one."""
    one = usual()
    ((woken, message),) = sent(one.on_greeting(Greeting("news", sender, believed, None)))
    assert woken == sender[1]
    assert isinstance(message, Wake)
    assert one.alarmed
    assert (one.pred, one.succ) == ((4, 14), (5, 15)), "peers write nothing"


def test_configuration_replaces_everything_and_wakes_whom_it_displaces() -> None:
    """A2, E18: the displaced are woken, not kept."""
    one = usual()
    one.shortcuts = {0: 10, 1: 11}
    one.inquiry.alarm(1)
    effects = sent(one.on_set_data(configure(2, (4, 14), (1, 11))))
    assert effects == [(15, Wake("news", 9))]
    assert (one.label, one.pred, one.succ) == (2, (4, 14), (1, 11))
    assert not one.alarmed


def test_configuration_with_another_label_wakes_all_neighbours() -> None:
    """S3."""
    one = usual()
    one.shortcuts = {0: 10, 1: 11}
    woken = [id for id, _ in sent(one.on_set_data(configure(7, (3, 13), (0, 20))))]
    assert sorted(woken) == [10, 11, 14, 15]
    assert one.shortcuts == {}


def test_probe_is_answered_at_once() -> None:
    one = usual()
    ((target, message),) = sent(one.on_set_data(configure(2, (4, 14), (5, 15), probe=True)))
    assert target == SUPERVISOR
    assert isinstance(message, GetConfiguration)


def test_configuration_of_itself_as_neighbour_is_not_kept() -> None:
    """E2."""
    one = usual()
    one.on_set_data(configure(0, (1, ME), (1, ME)))
    assert one.ring == []


def test_shortcut_fills_its_slot_and_two_claimants_both_ask() -> None:
    """A4; the same one again is no second claimant (E5)."""
    one, word = usual(), IntroduceShortcut("news", (4, 14), (0, 10), None, None)
    assert one.on_introduce_shortcut(word) == one.on_introduce_shortcut(word) == []
    assert one.shortcuts == {0: 10}
    woken = one.on_introduce_shortcut(IntroduceShortcut("news", (4, 14), (0, 20), None, None))
    assert [id for id, _ in sent(woken)] == [10, 20]
    assert one.shortcuts == {0: 20}


@pytest.mark.parametrize("ref", [(3, 13), (0, ME)])
def test_unexpected_shortcut_is_dropped(ref: Ref) -> None:
    one = usual()
    assert one.on_introduce_shortcut(IntroduceShortcut("news", (4, 14), ref, None, None)) == []
    assert one.shortcuts == {}


def test_timeout_greets_neighbours_and_introduces_them_to_each_other() -> None:
    one = usual()
    one.shortcuts = {0: 10, 1: 11}
    messages = sent(one.on_timeout())
    checked = {id: m.believed for id, m in messages if isinstance(m, Greeting)}
    shown = {id: m.ref for id, m in messages if isinstance(m, IntroduceShortcut)}
    assert checked == {14: 4, 15: 5}
    assert shown == {10: (1, 11), 11: (0, 10)}
    assert len(messages) == 4


@pytest.mark.parametrize(
    ("label", "pred", "succ"), [(2, (4, 14), (3, 13)), (1 << 39, (4, 14), (5, 15)), (2, None, None)]
)
def test_implausible_gaps_raise_the_alarm(label: int, pred: Ref | None, succ: Ref | None) -> None:
    """A3."""
    one = member(label, pred, succ)
    one.on_timeout()
    assert one.alarmed


def test_silent_neighbour_is_missed_and_accused() -> None:
    """E21."""
    one, requests = usual(), list[GetConfiguration]()
    for _ in range(SILENCE_MAX + 6):
        one.on_greeting(Greeting("news", (5, 15), 2, None))
        messages = [message for _, message in sent(one.on_timeout())]
        requests += [m for m in messages if isinstance(m, GetConfiguration)]
    assert requests
    assert {id for request in requests for id in request.missing} == {14}
    one.on_greeting(Greeting("news", (4, 14), 2, None))
    assert one.missing == [], "it was heard, and is accused no longer"


def test_leaver_repeats_its_request_until_it_is_let_go() -> None:
    """E7."""
    one = usual()
    assert sent(one.leave()) == [(SUPERVISOR, Unsubscribe("news", ME))]
    assert (SUPERVISOR, Unsubscribe("news", ME)) in sent(one.on_timeout())
    late = sent(one.on_set_data(configure(2, (4, 14), (5, 15))))
    assert late == [(SUPERVISOR, Unsubscribe("news", ME))]
    farewell = sent(one.on_set_data(configure(None, None, None)))
    assert farewell == [(id, RemoveConnections("news", ME)) for id in (14, 15)]
    assert not one.member


def test_member_that_is_told_it_is_none_asks_again() -> None:
    one = usual()
    one.on_set_data(configure(None, None, None))
    assert one.label is None
    assert [type(message) for _, message in sent(one.on_timeout())] == [GetConfiguration]


def test_stranger_declines_to_be_a_neighbour_but_a_joiner_waits() -> None:
    """E11; the first to be configured know neighbours that are not yet."""
    one = member(None)
    gone = [(14, RemoveConnections("news", ME))]
    assert sent(one.on_greeting(Greeting("news", (4, 14), 2, None))) == gone
    one.on_timeout()
    assert one.on_greeting(Greeting("news", (4, 14), 2, None)) == []
    one.leaving = True
    assert sent(one.on_greeting(Greeting("news", (4, 14), 2, None))) == gone


def test_joiner_asks_at_once_and_then_ever_more_rarely() -> None:
    one = Subscriber("news", ME, (SUPERVISOR,), Random(1))
    asked = [at for at in range(20) if one.on_timeout()]
    assert asked[0] == 0
    assert 3 <= len(asked) <= 10


@pytest.mark.parametrize(
    ("label", "pred", "succ", "sides"),
    [
        (0, (3, 13), (2, 12), (None, (2, 12), (3, 13))),  # the minimum
        (3, (1, 11), (0, 10), ((1, 11), None, (0, 10))),  # the maximum
        (2, (0, 10), (1, 11), ((0, 10), (1, 11), None)),
        (2, (1, 11), (0, 10), ((0, 10), (1, 11), None)),  # the wrong way round
    ],
)
def test_place_becomes_one_of_a_sorted_ring(
    label: int, pred: Ref, succ: Ref, sides: tuple[Ref | None, Ref | None, Ref | None]
) -> None:
    ring = member(label, pred, succ).as_sorted_ring("news")
    assert (ring.left, ring.right, ring.ring) == sides


def test_helper_corrects_an_orphan_and_greets_nobody() -> None:
    """Two helpers that greeted would greet each other for ever."""
    one = usual()
    believes_right = Check("news", (9, 19), 2, False)
    assert not [m for _, m in sent(one.on_ring_message(believes_right)) if isinstance(m, Check)]
    assert one.alarmed
    corrections = sent(one.on_ring_message(Check("news", (9, 19), 7, False)))
    assert (19, Check("news", (2, ME), 9, False)) in corrections


def test_helper_does_not_hand_a_reference_on_for_ever() -> None:
    one = usual()
    assert one.on_ring_message(Introduce("news", (3, 13), False, 0))
    assert one.on_ring_message(Introduce("news", (3, 13), False, 1000)) == []


@pytest.mark.parametrize("sender", [(5, 15), (0, 10), (1, 11), (8, 18), (9, 14)])
def test_shortcut_is_believed_only_from_the_member_between(sender: Ref) -> None:
    """H6: label 4 lies between 2 and 0; nobody else can know who is there."""
    one = usual()
    one.shortcuts = {1: 11}
    false = IntroduceShortcut("news", sender, (0, 99), None, None)
    assert one.on_introduce_shortcut(false) == []
    assert one.shortcuts == {1: 11}


def test_shortcut_beyond_a_shortcut_comes_from_that_one() -> None:
    """Label 0 of SR(8) on its right: 4 on the ring, then 2, then 1."""
    one = member(0, (7, 17), (4, 14))
    assert one.around.right == (2, 1)
    for sender, slot, heard in ((4, 1, False), (4, 2, True), (2, 1, True), (2, 2, False)):
        one.shortcuts = {}
        introduction = IntroduceShortcut("news", (sender, 30), (slot, 40), None, None)
        one.on_introduce_shortcut(introduction)
        assert one.shortcuts == ({slot: 40} if heard else {})


def test_failed_send_takes_the_shortcut_and_accuses_the_ring_neighbour() -> None:
    one = usual()
    one.shortcuts = {0: 10, 1: 11}
    one.on_link_down(10)
    assert one.shortcuts == {1: 11}
    assert not one.missing
    assert not one.alarmed
    one.on_link_down(14)
    assert one.missing == [14]
    assert one.alarmed


def test_sum_of_a_child_counts_for_a_few_timeouts() -> None:
    """A child that is gone must not speak for its subtree for ever."""
    one = usual()
    one.on_introduce_shortcut(IntroduceShortcut("news", (4, 14), None, 123, None))
    assert one.children_sums() == (123, None)
    for _ in range(SUM_AGE_MAX):
        one.on_timeout()
    assert one.children_sums() == (123, None)
    one.on_timeout()
    assert one.children_sums() == (None, None)


@pytest.mark.parametrize("age", [-1, -(10**9), SUM_AGE_MAX, 1 << 80])
def test_sum_of_an_impossible_age_is_dropped(age: int) -> None:
    one = usual()
    one.child_sums = {4: (123, age)}
    one.on_timeout()
    assert one.children_sums() == (None, None)


@pytest.mark.parametrize(
    ("id", "label", "doubted"),
    [
        (14, 4, False),
        (14, 9, True),
        (14, None, True),
        (10, 0, False),
        (10, 3, True),
        (99, 9, False),
    ],
)
def test_neighbour_that_refuses_a_broadcast_under_another_label_is_doubted(
    id: NodeId, label: int | None, doubted: bool
) -> None:
    one = usual()
    one.shortcuts = {0: 10}
    one.doubt(id, label)
    assert one.alarmed == doubted


def test_refused_broadcast_reaches_the_ring() -> None:
    peer = Peer(ME, (SUPERVISOR,), Random(1))
    peer.on_command(Subscribe("news"))
    one = peer.topics["news"].subscriber
    one.label, one.pred, one.succ = 2, (4, 14), (5, 15)
    one.inquiry.calm()
    hear(peer, Nack("news", 14, b"k" * 16, 0, 8, 1, 9))
    assert one.alarmed


@pytest.mark.parametrize("label", [(1 << 40) + 3, (1 << 62) - 1])
def test_window_fits_the_wire_however_long_the_labels(label: int) -> None:
    one = member(label, (4, 14), (5, 15))
    wakes = [m for _, m in sent(one.on_greeting(Greeting("news", (9, 19), 3, None)))]
    assert wakes == [Wake("news", one.window)]
    assert 1 <= one.window <= WINDOW_MAX


def test_an_orphan_remembers_only_those_who_could_be_beside_it() -> None:
    one = usual()
    one.inquiry.waiting = one.inquiry.version_age = one.inquiry.waiting_max
    one.on_timeout()
    assert one.orphan is not None
    one.orphan.handed = {-1: 3, one.id: 1, 98: 1 << 70, 99: 2, 97: b"x"}
    one.repair()
    assert one.orphan.handed == {99: 2}


def test_orphan_that_is_none_any_more_forgets_it() -> None:
    one = usual()
    one.inquiry.waiting = one.inquiry.version_age = one.inquiry.waiting_max
    one.on_timeout()
    assert one.orphan is not None
    one.inquiry.waiting = 3
    one.on_wake(Wake("news", 1))
    assert one.orphan is None


# When everybody must ask


def spread(label: int, pred: Ref, succ: Ref) -> SetData:
    return SetData("news", SUPERVISOR, 1, label, pred, succ, 1, False, True)


def test_word_that_all_must_ask_reaches_every_former_neighbour() -> None:
    one = usual()
    one.shortcuts = {0: 10, 1: 11}
    woken = sent(one.on_set_data(spread(6, (2, 12), (1, 11))))
    assert woken == [(id, Wake("news", 3, 3)) for id in (14, 15, 10, 11)]


def test_who_is_right_wakes_nobody() -> None:
    one = usual()
    assert one.on_set_data(spread(2, (4, 14), (5, 15))) == []


def test_wake_of_all_is_passed_on_before_the_own_answer_once_per_window() -> None:
    one = usual()
    woken = sent(one.on_wake(Wake("news", 1, 5)))
    assert woken == [(14, Wake("news", 3, 4)), (15, Wake("news", 3, 4))]
    assert one.alarmed
    assert one.on_wake(Wake("news", 1, 5)) == [], "it would never end"
    for _ in range(one.window):
        one.on_timeout()
    assert one.on_wake(Wake("news", 1, 5)) != []


@pytest.mark.parametrize("pause", [-(10**18), -1, WINDOW_MAX, 10**18])
def test_corrupt_pause_does_not_keep_the_word_back_for_long(pause: int) -> None:
    one = usual()
    one.spread_pause = pause
    for _ in range(WINDOW_MAX):
        one.on_timeout()
    assert one.on_wake(Wake("news", 1, 5)) != []


@pytest.mark.parametrize("hops", [0, -5])
def test_wake_of_one_is_not_passed_on(hops: int) -> None:
    one = usual()
    assert one.on_wake(Wake("news", 1, hops)) == []
    assert one.alarmed


def test_new_neighbour_of_a_large_ring_has_a_window_to_be_configured_itself() -> None:
    """One that was heard is missed as soon as in a small ring (E21)."""
    label, pred, succ = 1 << 14, ((1 << 14) - 1, 14), ((1 << 14) + 1, 15)
    for heard in (False, True):
        one = member(label, pred, succ)
        one.silence = (0, 0)
        if heard:
            one.on_greeting(Greeting("news", pred, label, None))
        patience = next(at for at in range(50) if one.on_timeout() and pred[1] in one.missing)
        assert patience == (SILENCE_MAX if heard else one.window)


def test_labels_that_no_ring_has_do_not_slow_it() -> None:
    assert member(2, (1 << 39, 14), (5, 15)).window == 3
    assert member(1 << 39, (1 << 39, 14), (1 << 40, 15)).window == WINDOW_MAX
