"""Members hold what others deposit, on disk before they say so, and deliver nothing twice."""

from random import Random

import pytest

from planaria.core.node import Deliver, Effect, Effects, Notice, Persist, Publish, Send, Subscribe
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring import history
from planaria.protocols.skipring.broadcast_messages import Arc
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.deposits import (
    ANSWER_SECONDS,
    CROWDED,
    EXPIRED,
    FULL,
    MALFORMED,
    PATIENCE_SECONDS,
    STRANGER,
    VOLATILE,
    Copies,
    DepositAnswered,
    Entrust,
)
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.records.record import Draft, Record, record_key, seal
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from records_lab import no_room
from ring_lab import RingLab

ENTRY = 99  # a node that is not in the ring
CLIENT = (12345, bytes(12))


def record(first: int = 0, payload: bytes = b"news", time: int = 0) -> Record:
    return seal(CLIENT, first, [Draft(payload)], time=time)


def member(id: int = 0, n: int = 4) -> Peer:
    node = RingLab.legitimate(n).simulator.nodes[id]
    assert isinstance(node, Peer)
    return node


def deposited(peer: Peer, one: Record, *, spread: bool = False, durable: bool = True) -> Effects:
    return peer.on_message(Deposit(TOPIC, ENTRY, one.data, spread, durable), ENTRY)


def kinds(effects: Effects) -> list[type]:
    return [type(it.message) if isinstance(it, Send) else type(it) for it in effects]


def answers(effects: Effects) -> list[object]:
    return [it.message for it in effects if isinstance(it, Send) and it.target == ENTRY]


def test_a_deposit_is_delivered_and_on_disk_before_it_is_held() -> None:
    peer, one = member(), record()
    effects = deposited(peer, one)
    assert kinds(effects) == [Deliver, Persist, Held]
    assert answers(effects) == [Held(TOPIC, 0, one.key)]
    assert one.place in peer.topics[TOPIC].history.holdings.store


def test_a_deposit_to_spread_begins_the_broadcast_as_its_publisher_would() -> None:
    effects = deposited(member(), record(), spread=True)
    assert kinds(effects)[-3:] == [Deliver, Persist, Held]
    assert {*kinds(effects)[:-3]} == {Arc}
    own = member().on_command(Publish(TOPIC, b"news"))
    assert _targets(effects) == _targets(own) != []


def _targets(effects: Effects) -> list[tuple[int, int, int]]:
    arcs = [it for it in effects if isinstance(it, Send) and isinstance(it.message, Arc)]
    return [(it.target, it.message.lo, it.message.hi) for it in arcs]  # type: ignore[attr-defined]


def test_memory_is_enough_for_who_says_so() -> None:
    assert kinds(deposited(member(), record(), durable=False)) == [Held, Deliver, Persist]


@pytest.mark.parametrize("spread", [False, True])
def test_a_repeated_deposit_is_held_again_after_the_disk_and_delivers_nothing(spread: bool) -> None:
    peer = member()
    deposited(peer, record(), spread=spread)
    assert kinds(deposited(peer, record(), spread=spread)) == [Persist, Held]


def test_a_crash_after_the_disk_and_before_the_answer_is_mended_by_asking_again() -> None:
    peer, one = member(), record()
    effects = deposited(peer, one)
    stored = peer.snapshot()  # what `Persist` puts on disk; `Held` never left
    assert kinds(effects)[-2:] == [Persist, Held]
    again = Peer(0, (SUPERVISOR_BASE,), Random(1))
    again.restore(stored)
    assert kinds(deposited(again, one)) == [Persist, Held]


def test_a_crash_before_the_disk_leaves_nothing_and_the_next_deposit_is_delivered() -> None:
    peer = member()
    before = peer.snapshot()
    deposited(peer, record())
    again = Peer(0, (SUPERVISOR_BASE,), Random(1))
    again.restore(before)
    assert kinds(deposited(again, record())) == [Deliver, Persist, Held]


def test_who_got_it_by_broadcast_does_not_broadcast_it_again() -> None:
    one = record()
    sent = deposited(member(0), one, spread=True)
    arc = next(it for it in sent if isinstance(it, Send) and isinstance(it.message, Arc))
    receiver = member(arc.target)
    assert Deliver in kinds(receiver.on_message(arc.message, 0))
    assert kinds(deposited(receiver, one, spread=True)) == [Persist, Held]


def test_who_holds_it_without_having_passed_it_on_can_still_spread_it() -> None:
    peer, one = member(), record()
    deposited(peer, one)
    assert Arc in kinds(deposited(peer, one, spread=True))


@pytest.mark.parametrize("data", [b"", b"garbage", record().data[:-1]])
def test_what_is_no_record_is_refused_by_its_key(data: bytes) -> None:
    effects = member().on_message(Deposit(TOPIC, ENTRY, data, True), ENTRY)
    assert answers(effects) == [NotHeld(TOPIC, 0, record_key(data), MALFORMED)]
    assert kinds(effects) == [NotHeld]


def test_who_is_no_member_is_no_copy() -> None:
    stranger = Peer(7, (SUPERVISOR_BASE,), Random(1))
    joining = Peer(7, (SUPERVISOR_BASE,), Random(1))
    joining.on_command(Subscribe(TOPIC))
    leaving = member(0)
    leaving.topics[TOPIC].subscriber.leaving = True
    for peer in (stranger, joining, leaving):
        effects = deposited(peer, record())
        assert answers(effects) == [NotHeld(TOPIC, peer.id, record().key, STRANGER)]
        assert kinds(effects) == [NotHeld]


def test_what_is_expired_is_not_held() -> None:
    peer = member()
    part = peer.topics[TOPIC].history
    part.retain(Retention(age=100))
    part.read_clock(10_000)
    assert answers(deposited(peer, record(time=1))) == [
        NotHeld(TOPIC, 0, record(time=1).key, EXPIRED)
    ]


@pytest.mark.parametrize("time", [9_000, 10_000])
def test_what_a_count_lets_go_at_once_is_held_spread_and_delivered_all_the_same(time: int) -> None:
    """In whatever order two come: within one second the order of retention is any."""
    one, other = sorted([record(5, time=10_000), record(4, time=time)], key=lambda it: it.place)
    for first, second in (one, other), (other, one):
        peer = member()
        part = peer.topics[TOPIC].history
        part.retain(Retention(count=1))
        part.read_clock(10_000)
        for it in (first, second):
            effects = deposited(peer, it, spread=True)
            assert kinds(effects)[-3:] == [Deliver, Persist, Held]
            assert Arc in kinds(effects)
            assert answers(deposited(peer, it)) == [Held(TOPIC, 0, it.key)]
        assert [*part.holdings.store.index.shown] == [other.place]


def test_a_store_that_takes_nothing_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = member()

    monkeypatch.setattr(peer.topics[TOPIC].history.holdings.store, "_admit", no_room)
    effects = deposited(peer, record(), spread=True)
    assert answers(effects) == [NotHeld(TOPIC, 0, record().key, FULL)]
    assert Arc not in kinds(effects)


def test_a_repeat_at_a_disk_that_stalled_is_held_only_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is shown may not be on disk yet."""
    peer = member()
    deposited(peer, record())

    monkeypatch.setattr(peer.topics[TOPIC].history.holdings.store, "_admit", no_room)
    assert kinds(deposited(peer, record())) == [Notice, Persist, Held]


def test_a_topic_with_too_many_streams_opens_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "OPEN_STREAMS_MAX", 1)
    peer = member()
    assert isinstance(answers(deposited(peer, record()))[0], Held)
    other = seal((5, bytes(12)), 0, [Draft(b"x")], time=0)
    assert answers(deposited(peer, other)) == [NotHeld(TOPIC, 0, other.key, CROWDED)]
    assert isinstance(answers(deposited(peer, record(1)))[0], Held)


def test_nobody_is_answered_in_anothers_name() -> None:
    message = Deposit(TOPIC, ENTRY, record().data, True)
    assert member().on_message(message, 3) == ()
    assert member().on_message(message, None) == ()


def test_answers_reach_the_application_of_who_entrusted_whether_it_is_a_member_or_not() -> None:
    for peer in (member(), Peer(7, (SUPERVISOR_BASE,), Random(1))):
        key = record().key
        held = peer.on_message(Held(TOPIC, 3, key), 3)
        refused = peer.on_message(NotHeld(TOPIC, 3, key, FULL), 3)
        assert held == [DepositAnswered(TOPIC, 3, key)]
        assert refused == [DepositAnswered(TOPIC, 3, key, FULL)]


def test_entrusting_sends_to_others_and_holds_what_is_for_itself_in_order() -> None:
    peer, one = member(), record()
    effects = peer.on_command(Entrust(TOPIC, one, (2, 0), spread=False))
    assert kinds(effects) == [Deposit, Deliver, Persist, DepositAnswered]
    assert effects[0] == Send(2, Deposit(TOPIC, 0, one.data, False))
    assert effects[-1] == DepositAnswered(TOPIC, 0, one.key)
    stranger = Peer(7, (SUPERVISOR_BASE,), Random(1))
    refused = stranger.on_command(Entrust(TOPIC, one, (7,), spread=False))
    assert refused == [DepositAnswered(TOPIC, 7, one.key, STRANGER)]


def test_in_a_ring_one_deposit_reaches_everybody_once() -> None:
    overlay = RingOverlay()
    simulator = Trial(overlay, Spec(8, 3, "legitimate")).simulator
    one, effects = record(), list[tuple[int, Effect]]()

    class Watch:
        kinds = ("effect",)

        def record(self, tick: int, kind: str, node: int, entry: object, effect: Effect) -> None:
            effects.append((node, effect))

    simulator.watch(Watch())  # type: ignore[arg-type]
    simulator.command(5, Entrust(overlay.topic, one, (5,), spread=True))
    simulator.command(5, Entrust(overlay.topic, one, (2, 6), spread=False))
    simulator.run(3 * INTERVAL)
    delivered = [node for node, effect in effects if isinstance(effect, Deliver)]
    assert sorted(delivered) == list(range(8))
    held = [it.member for _, it in effects if isinstance(it, DepositAnswered) and not it.reason]
    assert sorted(held) == [2, 5, 6]


# Counting


def test_as_many_members_are_asked_as_copies_are_wanted_and_the_first_spreads() -> None:
    copies = Copies(2, 0.0)
    assert copies.ask([3, 1, 4], 0.0) == [(3, True), (1, False)]
    assert copies.ask([3, 1, 4], 0.1) == [], "answers are on their way"
    copies.answered(3, "")
    assert not copies.enough(3)
    copies.answered(1, "")
    assert copies.enough(3)


def test_who_is_silent_or_refuses_is_replaced_and_another_spreads() -> None:
    copies = Copies(2, 0.0)
    copies.ask([3, 1, 4, 5], 0.0)
    copies.answered(1, FULL)
    assert copies.ask([3, 1, 4, 5], 0.1) == [(4, False)]
    late = ANSWER_SECONDS + 0.05
    copies.answered(4, "")
    assert copies.ask([3, 1, 4, 5], late) == [(5, True)], "the spreader is silent"
    copies.answered(3, "")
    assert copies.enough(4), "a late answer counts all the same"


def test_when_all_were_asked_those_silent_for_longest_are_asked_again() -> None:
    copies = Copies(2, 0.0)
    copies.ask([1, 2], 0.0)
    assert copies.ask([1, 2], ANSWER_SECONDS - 0.1) == []
    assert copies.ask([1, 2], ANSWER_SECONDS + 0.1) == [(1, True), (2, False)]


def test_fewer_members_are_enough_unless_strict_and_never_nobody() -> None:
    for strict in (False, True):
        copies = Copies(3, 0.0, strict=strict)
        copies.ask([1, 2], 0.0)
        assert not copies.enough(0)
        copies.answered(1, "")
        assert not copies.enough(2)
        assert not copies.enough(None), "how many there are is not known"
        copies.answered(2, "")
        assert copies.enough(2) == (not strict)


def test_all_that_are_known_are_enough_when_their_number_stays_unknown() -> None:
    late = PATIENCE_SECONDS + 0.1
    for strict in (False, True):
        copies = Copies(3, 0.0, strict=strict)
        copies.ask([1, 2], 0.0)
        assert not copies.all_known([], late), "nobody holds it"
        copies.answered(1, "")
        assert not copies.all_known([1, 2], late)
        copies.answered(2, "")
        assert not copies.all_known([1, 2], PATIENCE_SECONDS)
        assert copies.all_known([1, 2], late) == (not strict)


def test_a_member_that_lost_it_counts_no_more_and_who_was_not_asked_never() -> None:
    copies = Copies(1, 0.0)
    copies.answered(9, "")
    assert not copies.enough(3)
    copies.ask([1], 0.0)
    copies.answered(1, "")
    copies.answered(1, FULL)
    assert not copies.enough(3)


def test_refusals_are_final_full_or_a_matter_of_patience() -> None:
    copies, late = Copies(2, 0.0), PATIENCE_SECONDS + 1
    copies.ask([1, 2, 3], 0.0)
    assert copies.refusal([1, 2, 3], 1.0, 3) is None
    copies.answered(1, FULL)
    copies.answered(2, FULL)
    assert copies.refusal([1, 2, 3], 1.0, 3) is None, "the third may have room"
    assert copies.refusal([1, 2], 1.0, 3) == FULL
    assert copies.refusal([], 1.0, 3) is None
    assert copies.refusal([1, 2, 3], late, 3) == FULL
    copies.answered(2, CROWDED)
    assert copies.refusal([1, 2, 3], 1.0, None) == CROWDED
    patient = Copies(2, 0.0, strict=True)
    assert patient.refusal([1], late, 3) is None


def test_too_old_is_what_all_members_say_for_long_and_not_what_one_says_at_once() -> None:
    late = PATIENCE_SECONDS + 1
    for strict in (False, True):
        copies = Copies(2, 0.0, strict=strict)
        copies.ask([1, 2], 0.0)
        copies.answered(1, EXPIRED)
        assert copies.refusal([1, 2], late, 3) == (None if strict else FULL)
        copies.answered(2, EXPIRED)
        assert copies.refusal([1, 2], 1.0, 3) is None, "memory may be repaired"
        assert copies.refusal([1, 2], late, 3) == EXPIRED
        unsure = copies.refusal([1, 2], late, None)
        assert unsure == (None if strict else FULL), "there may be others"
        assert copies.refusal([], late, 3) == (None if strict else FULL)
        copies.ask([1, 2], late)
        copies.answered(1, "")
        assert copies.refusal([1, 2], late, 3) != EXPIRED


def test_who_has_no_disk_holds_no_copy_that_was_to_be_on_disk() -> None:
    late = PATIENCE_SECONDS + 1
    for strict in (False, True):
        copies = Copies(2, 0.0, strict=strict)
        copies.ask([1, 2], 0.0)
        copies.answered(1, VOLATILE)
        assert copies.refusal([1, 2], 1.0, 2) is None
        copies.answered(2, VOLATILE)
        assert not copies.enough(2)
        assert copies.refusal([1, 2], 1.0, 2) == VOLATILE
        assert copies.refusal([1, 2], 1.0, 3) is None, "the third may have a disk"
        assert copies.refusal([1, 2], 1.0, None) is None
        assert copies.refusal([1, 2], late, None) == VOLATILE
        copies.answered(2, "")
        assert copies.enough(2) == (not strict), "all that have a disk"
        assert not copies.enough(3)
        assert copies.all_known([1, 2], late) == (not strict)
        assert len(copies.held) == 1


def test_a_member_without_a_disk_takes_nothing_that_is_to_be_on_disk() -> None:
    peer = member()
    history = peer.topics[TOPIC].history
    history.holdings.store.volatile = history.staging.holdings.store.volatile = True
    refused = [Send(ENTRY, NotHeld(TOPIC, 0, record().key, VOLATILE))]
    assert deposited(peer, record(), spread=True) == refused
    staged = Deposit(TOPIC, ENTRY, record().data, spread=False, stage=True)
    assert peer.on_message(staged, ENTRY) == refused
    assert len(history.holdings) == 0
    assert answers(deposited(peer, record(), durable=False)) == [Held(TOPIC, 0, record().key)]
    assert len(history.holdings) == 1


def test_a_state_of_a_peer_says_nothing_of_deposits() -> None:
    """Whoever deposits asks again: there is nothing to corrupt."""
    peer = member()
    before = peer.state()
    peer.on_message(Held(TOPIC, 3, record().key), 3)
    peer.on_command(Entrust(TOPIC, record(), (2,), spread=True))
    assert isinstance(before, PeerState)
    assert peer.state() == before
