"""Who is far behind names what it lacks once, and then asks for the rest of it."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from antientropy_lab import ALL, TOPIC, Channel, held, peer, record
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.protocols.publications.antientropy import FIRST_CELLS, AntiEntropy
from planaria.protocols.publications.antientropy_messages import (
    IDS_MAX,
    Difference,
    Estimate,
    Push,
    Sketch,
)
from planaria.protocols.publications.exchange import (
    WANT_BITS,
    Coming,
    Exchange,
    begin_of,
    count_frame,
)
from planaria.protocols.publications.holdings import id_of
from planaria.protocols.publications.push import PUSH_BYTES_MAX, PUSH_FRAMES_MAX
from planaria.protocols.publications.sketch import pack_tug_of_war
from planaria.records.record import Record

T = TypeVar("T", bound=Message)
ANSWER = PUSH_FRAMES_MAX * 4  # records
LARGE = PUSH_BYTES_MAX // 4 - 200


def backlog(id: int, numbers: range) -> AntiEntropy:
    """One that holds these records of a quarter of a frame."""
    one = peer(id, [])
    one.holdings.append([record(it, size=LARGE) for it in numbers])
    return one


def messages(effects: list[Effect], kind: type[T]) -> list[T]:
    return [it.message for it in effects if isinstance(it, Send) and isinstance(it.message, kind)]


@pytest.mark.parametrize("starter", [1, 2])
def test_what_is_lacked_is_named_by_one_sketch_however_many_answers_bring_it(starter: int) -> None:
    one, two = backlog(1, range(5 * ANSWER)), backlog(2, range(3))
    started, other = (one, two) if starter == 1 else (two, one)
    channel = Channel(one, two)
    channel.send(started.on_digest(other.id, other.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    assert channel.tags.count("publications.sketch") == 1 + (starter == 1)  # then two asks
    assert channel.pushed == 5 * ANSWER - 3


def test_a_newcomer_is_sent_the_first_of_all_without_a_sketch() -> None:
    one, two = backlog(1, range(ANSWER)), peer(2, [])
    (estimate,) = messages(two.on_digest(1, one.digest(0, ALL)), Estimate)
    answer = one.on_message(estimate)
    assert not messages(answer, Sketch)
    frames: list[Difference | Push] = [*messages(answer, Difference), *messages(answer, Push)]
    assert sum(len(it.records) for it in frames) == ANSWER


def test_nothing_is_estimated_by_the_bytes_of_its_sketch() -> None:
    one = peer(1, [])
    sums, cells = one.holdings.sketch(0, ALL, FIRST_CELLS)
    assert one._estimate(0, ALL)[1:] == (pack_tug_of_war(sums), cells.pack())


def test_who_says_that_it_holds_nothing_and_lies_is_found_out_in_the_end() -> None:
    """It gets what it has; digests go on to differ, and the third exchange is a descent."""
    one, two = peer(1, list(range(9))), peer(2, list(range(9, 12)))
    two._estimate = peer(2, [])._estimate  # type: ignore[method-assign]
    assert Channel(one, two).heal(12) <= 6


@pytest.mark.parametrize("refused", [0, 2, 9])
def test_what_was_refused_is_not_asked_for_again(refused: int) -> None:
    count = 3 * ANSWER - 5
    one, two = backlog(1, range(count)), backlog(2, range(count, count + 1))
    wrong = {record(it, size=LARGE).place for it in range(refused)}
    channel = Channel(one, two)

    def take(target: int) -> Callable[[list[Record]], None]:
        store = Channel.take(channel, target)
        return lambda records: store([it for it in records if it.place not in wrong])

    channel.take = take  # type: ignore[method-assign]
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert len(held(two)) == count + 1 - refused
    assert channel.pushed == count + 1
    assert channel.tags.count("publications.sketch") == 1


@pytest.mark.parametrize("taken", [0, 1])
def test_an_answer_that_brings_nothing_is_the_last(taken: int) -> None:
    """Whatever a peer pushes: what it was asked for, and nobody takes, or something else."""
    one, two = backlog(1, range(4 * ANSWER)), backlog(2, range(1))
    channel, room = Channel(one, two), [taken * ANSWER]

    def take(target: int) -> Callable[[list[Record]], None]:
        store = Channel.take(channel, target)

        def some(records: list[Record]) -> None:
            room[0] -= len(records)
            if room[0] >= 0:
                store(records)

        return some

    channel.take = take  # type: ignore[method-assign]
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert channel.pushed == (taken + 1) * ANSWER


def test_a_digest_is_let_go_while_an_answer_is_on_its_way_and_the_next_is_not() -> None:
    one, two = backlog(1, range(3 * ANSWER)), backlog(2, range(1))
    (estimate,) = messages(two.on_digest(1, one.digest(0, ALL)), Estimate)
    (sketch,) = messages(one.on_message(estimate), Sketch)
    (difference,) = messages(two.on_message(sketch), Difference)
    first, *_ = messages(one.on_message(difference), Push)
    assert not one.on_digest(2, two.digest(0, ALL)), "it has not got yet what was sent"
    assert messages(one.on_digest(2, two.digest(0, ALL)), Estimate), "it was lost, perhaps"
    two.on_message(first)
    assert not two.on_digest(1, one.digest(0, ALL))
    assert messages(two.on_digest(1, one.digest(0, ALL)), Estimate)


def test_a_small_answer_lets_no_digest_go() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(30)))
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    assert not one.crossing
    assert not two.crossing


def test_a_lost_link_ends_what_was_believed_to_be_on_its_way() -> None:
    one, two = peer(1, [1]), peer(2, [2])
    one.crossing = {2: False}
    one.link_down(2)
    assert messages(one.on_digest(2, two.digest(0, ALL)), Estimate)


def test_agreement_ends_what_was_believed_to_be_on_its_way() -> None:
    one, two = peer(1, [1]), peer(2, [1])
    one.crossing, one.coming = {2: False}, {2: Coming(4, 0, ALL, True, want=[7])}
    assert not one.on_digest(2, two.digest(0, ALL))
    assert not one.crossing
    assert not one.coming


def test_the_last_frames_of_an_answer_count_for_the_exchange_that_follows() -> None:
    """Else what they bring would be asked for twice."""
    records = [record(it) for it in range(3)]
    want = [begin_of(id_of(it.place)) for it in records]
    coming = {2: Coming(5, 0, 9, True, want=list(want))}
    late = Push(TOPIC, 2, 4, [b"said"], [])
    assert count_frame(coming, late, None, records[:2], 0) is None
    assert coming[2].want == want[2:]
    assert coming[2].frames == 0


def test_an_exchange_that_began_meanwhile_names_the_rest() -> None:
    one, two = backlog(1, range(3 * ANSWER)), backlog(2, range(1))
    (estimate,) = messages(two.on_digest(1, one.digest(0, ALL)), Estimate)
    (sketch,) = messages(one.on_message(estimate), Sketch)
    (difference,) = messages(two.on_message(sketch), Difference)
    *frames, last = messages(one.on_message(difference), Push)
    for frame in frames:
        two.on_message(frame)
    assert messages(two.begin(1, 0, ALL), Estimate)
    assert not messages(two.on_message(last), Difference)


@pytest.mark.parametrize("false", [[-1], [1 << WANT_BITS], [1 << 80], [5] * (IDS_MAX + 9)])
def test_a_false_rest_asks_for_what_a_message_can_carry(false: list[int]) -> None:
    one = peer(1, [])
    coming = Coming(4, 0, ALL, True, PUSH_FRAMES_MAX - 1, [*false, 7], held=1)
    one.coming, one.exchanges = {2: coming}, {3: Exchange(4, 0, ALL, True)}
    sent = Channel(one, peer(2, []))
    sent.send(one.on_message(Push(TOPIC, 2, 4, [record(1).data], [])))
    assert sent.tags == ["publications.difference"]
    sent.run()
