"""Two subscribers with any stores, caches and messages in flight end up with the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antientropy_lab import ALL, TOPIC, Channel, held, peer, record
from planaria.core.chance import stream
from planaria.core.node import Send
from planaria.protocols.publications import exchanges
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import Difference, Done, More, Push
from planaria.protocols.publications.exchanges import PATIENCE
from planaria.protocols.publications.push import PUSH_BYTES_MAX, PUSH_FRAMES_MAX
from planaria.records.window import Window


def test_equal_stores_exchange_nothing_but_digests() -> None:
    channel = Channel(peer(1, [1, 2, 3]), peer(2, [3, 2, 1]))
    channel.interval()
    assert channel.tags == []


@pytest.mark.parametrize("difference", [1, 2, 10, 100, 1000])
def test_one_digest_brings_both_sides_everything(difference: int) -> None:
    ours = list(range(1000 + difference // 2))
    theirs = [*range(1000), *range(5000, 5000 + difference - difference // 2)]
    one, two = peer(1, ours), peer(2, theirs)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two) == held(peer(3, ours + theirs))
    assert len(channel.tags) + 1 <= 7
    assert len(channel.delivered[1]) == difference - difference // 2
    assert len(channel.delivered[2]) == difference // 2


def test_single_difference_takes_four_messages_and_less_than_400_bytes() -> None:
    one, two = peer(1, list(range(1000))), peer(2, list(range(999)))
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    assert channel.tags == ["publications.estimate", "publications.difference"]
    assert channel.size < 400


@pytest.mark.parametrize("starter", [1, 2])
def test_empty_store_is_filled_whoever_starts(starter: int) -> None:
    one, two = peer(1, []), peer(2, list(range(500)))
    channel = Channel(one, two)
    started, other = (one, two) if starter == 1 else (two, one)
    channel.send(started.on_digest(other.id, other.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    assert len(held(one)) == 500


def backlog(id: int, numbers: int) -> AntiEntropy:
    """One that holds so many records of a quarter of a frame."""
    one = peer(id, [])
    one.holdings.append([record(it, size=PUSH_BYTES_MAX // 4 - 200) for it in range(numbers)])
    return one


@pytest.mark.parametrize("starter", [1, 2])
@pytest.mark.parametrize("descend", [False, True])
def test_one_digest_brings_more_than_one_answer_may(starter: int, descend: bool) -> None:
    """Answers are cut where the window of a link ends; who got all of one asks again at once."""
    one, two = backlog(1, 4 * PUSH_FRAMES_MAX * 3 + 5), peer(2, [])
    started, other = (one, two) if starter == 1 else (two, one)
    if descend:
        started._doubt(other.id)
    channel = Channel(one, two)
    channel.send(started.on_digest(other.id, other.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    assert len(channel.delivered[2]) == channel.pushed == len(held(one))


def test_answers_that_bring_nothing_new_are_not_asked_for_again() -> None:
    one, two = backlog(1, 4 * PUSH_FRAMES_MAX * 2), peer(2, [])
    channel = Channel(one, two)
    channel.take = lambda target: lambda _: None  # type: ignore[method-assign]
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run(40)
    told = ["publications.estimate", "publications.difference"]  # with the first frame
    assert channel.tags == told + ["publications.push"] * (PUSH_FRAMES_MAX - 1)


def test_who_holds_more_is_in_no_doubt_while_a_peer_catches_up() -> None:
    """It changes nothing of its own for many exchanges; to audit all it has would take longer."""
    one, two = peer(1, list(range(40))), peer(2, [])
    for held_by_two in range(10):
        two.holdings.append([record(held_by_two, time=3 + held_by_two % 3)])
        channel = Channel(one, two, lost=lambda message: isinstance(message, Push | Difference))
        channel.send(one.on_digest(2, two.digest(0, ALL)))
        channel.run()
        one._finish(2)
    assert one.holdings.audit_due == 0
    assert "publications.root" not in channel.tags


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    st.lists(st.integers(0, 60), max_size=50),
    st.lists(st.integers(0, 60), max_size=50),
    st.booleans(),
)
def test_any_two_stores_become_their_union(
    ours: list[int], theirs: list[int], descend: bool
) -> None:
    one, two = peer(1, ours), peer(2, theirs)
    if descend:
        one._doubt(2)
        two._doubt(1)
    Channel(one, two).heal(3)
    assert held(one) == held(peer(3, ours + theirs))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 80), max_size=40), st.lists(st.integers(0, 80), max_size=40))
def test_full_stores_agree_on_the_largest_of_the_union(ours: list[int], theirs: list[int]) -> None:
    one, two = peer(1, ours, limit=10), peer(2, theirs, limit=10)
    Channel(one, two).heal(4)
    assert held(one) == held(peer(3, ours + theirs))[-10:]


def test_full_store_is_not_pushed_what_it_would_refuse() -> None:
    full = peer(1, list(range(20)), limit=10)
    for lower, pushed in ((True, 0), (False, 1)):
        other = peer(2, [])
        other.holdings.append(full.holdings.at(held(full)))
        other.holdings.append([record(77, time=2 if lower else 9)])
        channel = Channel(full, other)
        channel.send(full.on_digest(2, other.digest(0, ALL)))
        channel.run()
        assert channel.pushed == pushed


def test_descent_alone_finds_the_losses_of_both_sides_in_one_start() -> None:
    chance = stream(7, "descent")
    ours = chance.sample(range(3000), 2000)
    theirs = chance.sample(range(3000), 2000)
    one, two = peer(1, ours), peer(2, theirs)
    two._doubt(1)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two) == held(peer(3, ours + theirs))
    assert set(channel.tags) <= {"publications.root", "publications.compare", "publications.push"}
    assert channel.pushed == len(set(ours) ^ set(theirs))


def test_digest_of_a_lower_window_is_left_to_the_peer() -> None:
    one, two = peer(1, list(range(9))), peer(2, list(range(6)))
    two.holdings.show(Window(4))
    assert two.on_digest(1, one.digest(0, ALL)) == []
    channel = Channel(one, two)
    channel.send(one.on_digest(2, two.digest(0, ALL)))
    channel.run()
    assert one.holdings.digest(4, ALL) == two.holdings.digest(4, ALL)
    assert two.holdings.places(0, ALL) == two.holdings.places(4, ALL) != []


def test_node_begins_two_exchanges_in_an_interval_and_slow_ones_hold_up_nobody() -> None:
    hub = peer(9, list(range(20)))
    others = [peer(id, list(range(id))) for id in range(1, 7)]
    for start in (0, 2, 4):
        started = [hub.on_digest(other.id, other.digest(0, ALL)) for other in others[start:]]
        assert [len(effects) for effects in started] == [1, 1, 0, 0, 0, 0][: len(started)]
        hub.on_timeout()
    assert len(hub.exchanges) == 6


def test_node_answers_every_exchange_while_it_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "EXCHANGES_MAX", 3)
    hub = peer(9, list(range(20)))
    others = [peer(id, list(range(id))) for id in range(1, 6)]
    answers = []
    for other in others:
        (offer,) = other.on_digest(9, hub.digest(0, ALL))
        assert isinstance(offer, Send)
        (answer,) = hub.on_message(offer.message)
        assert isinstance(answer, Send)
        answers.append(isinstance(answer.message, Done))
        other.on_message(answer.message)
    assert answers == [False, False, False, True, True]
    assert others[4].exchanges == {}, "a refusal is taken at once"


def test_exchange_with_a_silent_peer_is_given_up() -> None:
    one = peer(1, [1])
    foreign = peer(2, [2]).digest(0, ALL)
    assert one.on_digest(2, foreign)
    for _ in range(PATIENCE):
        assert one.on_digest(2, foreign) == []
        one.on_timeout()
    one.on_timeout()
    assert one.on_digest(2, foreign)


def test_chattering_peer_cannot_keep_an_exchange_open_for_ever() -> None:
    one = peer(1, [1])
    one.on_digest(2, peer(2, [2]).digest(0, ALL))
    number = one.exchanges[2].number
    for _ in range(exchanges.LIFETIME + 1):
        one.on_message(More(TOPIC, 2, number, 77, 1))
        one.on_timeout()
    assert one.exchanges == {}


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
def test_lost_messages_only_delay_agreement(rate: float) -> None:
    for seed in range(12):
        chance = stream(seed, "loss")
        one, two = peer(1, list(range(90))), peer(2, list(range(40, 130)))
        channel = Channel(one, two, lost=lambda _, c=chance: c.random() < rate)  # type: ignore[misc]
        channel.heal(2000)
        assert len(held(one)) == 130


def test_what_may_be_on_its_way_is_left_alone_and_the_rest_is_found() -> None:
    """Both compare at the cut that the digest names; who lacks only younger records exchanges
    nothing."""
    one, two = peer(1, list(range(60))), peer(2, list(range(60)))
    one.holdings.append([record(number, time=20) for number in range(100, 120)])
    channel = Channel(one, two)
    for cut in (13, 18, 20):
        channel.send(two.on_digest(1, one.digest(0, cut)))
        channel.send(one.on_digest(2, two.digest(0, cut)))
    assert channel.tags == []
    one.holdings.append([record(99, time=17)])
    channel.send(two.on_digest(1, one.digest(0, 18)))
    channel.run()
    assert [it.first for it in channel.delivered[2]] == [99]
    channel.send(two.on_digest(1, one.digest(0, 21)))
    channel.run()
    assert held(one) == held(two)


def test_what_is_stamped_far_ahead_is_not_waited_for() -> None:
    one, two = peer(1, [1]), peer(2, [1])
    one.holdings.append([record(7, time=1 << 33)])
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, 100)))
    channel.run()
    assert held(one) == held(two)
