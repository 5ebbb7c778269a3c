"""Anti-entropy with corrupted caches, hidden differences and forged messages."""

from random import Random

import pytest

from antientropy_lab import ALL, CODEC, TOPIC, Channel, bodies, held, peer, record
from planaria.core.chance import stream
from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.node import Send
from planaria.protocols.publications import antientropy, exchanges
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import (
    AntiEntropyMessage,
    Compare,
    Difference,
    Digest,
    Done,
    Estimate,
    Inventory,
    More,
    Push,
    Region,
    Root,
    Sketch,
)
from planaria.protocols.publications.holdings import Holdings, id_of
from planaria.protocols.publications.sketch import id_array, pack_tug_of_war, tug_of_war
from planaria.protocols.skipring.arbitrary_history import corrupt_caches
from planaria.records.memory import MemoryStore
from planaria.records.record import PAYLOAD_BYTES_MAX
from planaria.records.window import Window
from records_lab import NOW, A, B
from records_lab import record as record_of


def test_stores_with_arbitrarily_corrupted_caches_end_equal_and_lose_nothing() -> None:
    for seed in range(60):
        chance = stream(seed, "corrupt")
        ours = chance.sample(range(200), chance.randrange(120))
        theirs = chance.sample(range(200), chance.randrange(120))
        one, two = peer(1, ours), peer(2, theirs)
        for each in (one, two):
            if chance.random() < 0.8:
                corrupt_caches(each, (1, 2, 3), chance)
        channel = Channel(one, two)
        # 60 intervals in all: two may agree for a while that something is out of sight at both, so
        # the first agreement is not the end. A pass of the audit takes 50: 200 records by 4.
        for _ in range(50):
            channel.interval()
        channel.heal(10)
        assert held(one) == held(peer(3, ours + theirs)), seed


def test_corrupted_record_is_dropped_and_fetched_again() -> None:
    one, two = peer(1, list(range(50))), peer(2, list(range(50)))
    assert isinstance(one.holdings.store, MemoryStore)
    victim = held(one)[25]
    one.holdings.store._bodies[victim] = record(4711, time=4).data
    Channel(one, two).heal(1)  # nothing to see: the digest comes from the keys
    channel = Channel(one, two)
    for _ in range(20):
        channel.interval()
    assert bodies(one) == bodies(two)
    assert len(held(one)) == len(held(two)) == 50
    assert not channel.delivered[1], "it was handed out before"


def falsify(subscriber: AntiEntropy, number: int, *, held: bool) -> None:
    """Make the sketch say that one record is held, or that it is not."""
    holdings = subscriber.holdings
    holdings.sketch(0, ALL, 64)
    assert holdings._sketch is not None  # it was asked for just now
    name, sums, cells = holdings._sketch
    ids = id_array([id_of(record(number, time=3 + number % 3).place)])
    sign = 1 if held else -1
    cells.fold(ids, sign)
    holdings._sketch = (name, sums + sign * tug_of_war(ids), cells)


def test_wrong_id_in_a_sketch_is_answered_unknown_and_heals() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 12345, held=True)
    channel = Channel(one, two)
    channel.heal(4)
    assert len(held(one)) == 41
    unknown = Push(TOPIC, 1, 7, [], [12345])
    assert two.on_message(unknown) == []


def test_sketches_missing_a_common_id_do_not_stop_agreement() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(45)))
    falsify(one, 0, held=False)
    Channel(one, two).heal(4)
    assert len(held(one)) == 45


def test_sketch_that_hides_the_difference_leads_to_descent_at_once() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 40, held=True)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert channel.tags[:2] == ["publications.estimate", "publications.root"]
    assert held(one) == held(two)


def test_sketch_with_an_id_that_nobody_has_leads_to_descent_at_once() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 4711, held=True)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert channel.tags[:2] == ["publications.estimate", "publications.root"]
    assert held(one) == held(two)


def test_exchanges_that_change_nothing_lead_to_descent_without_any_audit() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 40, held=True)
    falsify(one, 3, held=False)
    channel = Channel(one, two)
    for _ in range(exchanges.STRIKES_MAX + 1):
        assert held(one) != held(two)
        channel.send(two.on_digest(1, one.digest(0, ALL)))
        channel.run()
    assert held(one) == held(two)


def test_doubt_makes_sketches_anew_at_once() -> None:
    one = peer(1, list(range(40)))
    sound = one.holdings.sketch(0, ALL, 8)[1].pack()
    falsify(one, 3, held=False)
    assert one.holdings.sketch(0, ALL, 8)[1].pack() != sound
    one._doubt(2)
    assert one.holdings.sketch(0, ALL, 8)[1].pack() == sound


def test_unknown_answer_puts_the_sketches_in_doubt_only_in_an_open_exchange() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    one.on_message(Push(TOPIC, 2, 1, [], [12345]))
    assert one.holdings.audit_due == 0
    one.on_digest(2, two.digest(0, ALL))
    one.on_message(Push(TOPIC, 2, one.exchanges[2].number, [], [12345]))
    assert one.holdings.audit_due == 40
    (descent,) = one.on_digest(2, two.digest(0, ALL))
    assert isinstance(descent, Send)
    assert isinstance(descent.message, Root)


def test_messages_of_another_topic_or_of_oneself_are_left_alone() -> None:
    one = peer(1, [1])
    new = record(2).data
    assert one.on_message(Push("other", 2, 1, [new], [])) == []
    assert one.on_message(Push(TOPIC, 1, 1, [new], [])) == []
    assert len(held(one)) == 1


def test_what_is_no_record_is_left_out_and_the_rest_is_taken() -> None:
    one, new = peer(1, [1]), record(2)
    damaged = new.data[:-1] + bytes([new.data[-1] ^ 1])
    one.on_message(Push(TOPIC, 2, 1, [b"", new.data[:-1], new.data, b"PR\x01"], []))
    assert bodies(one) == [new.data, record(1, time=4).data]
    one.on_message(Push(TOPIC, 2, 1, [damaged], []))
    assert len(held(one)) == 3, "other bytes are another record, under another key"


def test_regions_under_no_label_are_left_alone() -> None:
    one = peer(1, list(range(40)))
    inner = [(b"\x02", 5), (b"\x03", 5)]
    message = Compare(TOPIC, 2, 7, 0, ALL, [Region(b"\x00", inner, [])], [])
    assert one.on_message(message) == [Send(2, Done(TOPIC, 1, 7))]


@pytest.mark.parametrize("older", [1, 2])
def test_descent_leaves_alone_what_the_younger_window_hides(older: int) -> None:
    """Whoever begins, nothing below the higher `lo` crosses, and everything above it does."""
    one, two = peer(1, list(range(60))), peer(2, list(range(30, 90)))
    younger = one if older == 2 else two
    younger.holdings.show(Window(lo=4))
    for starter, other in ((one, two), (two, one)):
        starter._doubt(other.id)
    channel = Channel(one, two)
    for _ in range(3):
        channel.interval()
    assert one.holdings.places(4, ALL) == two.holdings.places(4, ALL)
    crossed = [p for fresh in channel.delivered.values() for p in fresh]
    assert crossed
    assert all(p.time >= 4 for p in crossed)


def test_undecodable_sketches_lead_to_two_more_and_then_to_descent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(antientropy, "sketch_size", lambda _: 5)
    one, two = peer(1, list(range(400))), peer(2, list(range(200, 600)))
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert channel.tags.count("publications.more") == 2
    assert "publications.root" in channel.tags
    assert held(one) == held(two) == held(peer(3, list(range(600))))


def test_both_starting_at_once_exchange_each_publication_once() -> None:
    one, two = peer(1, list(range(100))), peer(2, list(range(50, 150)))
    channel = Channel(one, two)
    channel.interval()
    assert held(one) == held(two)
    assert len(channel.delivered[1]) == len(channel.delivered[2]) == 50
    assert channel.tags.count("publications.difference") == 1
    assert one.exchanges == two.exchanges == {}


def test_largest_payloads_and_long_backlogs_travel_in_frames_that_fit() -> None:
    one, two = peer(1, []), peer(2, [])
    one.holdings.append([record(number, size=PAYLOAD_BYTES_MAX) for number in range(3)])
    one.holdings.append([record(number, size=50_000) for number in range(3, 40)])
    channel = Channel(one, two, lost=lambda m: len(CODEC.encode(m)) > FRAME_BYTES_MAX)
    channel.heal(3)
    assert len(held(two)) == 40


def forged(chance: Random) -> AntiEntropyMessage:
    """A well-typed message that nobody had a reason to send."""
    topic = chance.choice([TOPIC, TOPIC, TOPIC, "other"])
    head = (topic, chance.randrange(4), chance.randrange(20))
    state = Inventory(
        chance.randrange(6), chance.randrange(9), chance.getrandbits(64), chance.getrandbits(40),
        chance.randbytes(21),
    )  # fmt: skip
    records = [record(chance.randrange(200), time=chance.randrange(9)).data for _ in "ab"]
    part = (chance.randrange(6), chance.choice([chance.randrange(9), ALL]))
    ids = [chance.getrandbits(32) for _ in range(chance.randrange(5))]
    regions = [
        Region(
            chance.randbytes(chance.choice([1, 1, 2, 22])),
            [(chance.randbytes(chance.randrange(1, 23)), chance.getrandbits(64)) for _ in "abcd"],
            [chance.randbytes(21) for _ in range(chance.randrange(17))],
        )
        for _ in range(chance.randrange(5))
    ]
    cells = chance.randbytes(chance.choice([0, 13, 52, 130, 131]))
    return chance.choice(
        [
            Estimate(*head, state, chance.randbytes(96), cells),
            Sketch(*head, state, chance.randrange(9), cells),
            More(*head, chance.randrange(99), chance.getrandbits(chance.randrange(40))),
            Difference(*head, *part, records, ids),
            Push(*head, records, ids),
            Root(*head, *part, chance.getrandbits(64)),
            Compare(*head, *part, regions, records),
            Done(*head),
        ]
    )


def test_forged_messages_never_raise_or_loop_and_agreement_comes_all_the_same() -> None:
    for seed in range(40):
        chance = stream(seed, "forged")
        peers = [peer(id, chance.sample(range(99), 40)) for id in (1, 2, 3)]
        channel = Channel(*peers)
        for _ in range(30):
            channel.waiting.append((chance.randrange(1, 4), CODEC.encode(forged(chance))))
            if chance.random() < 0.3:
                channel.interval()
        channel.run()
        union = {place for each in peers for place in held(each)}
        channel.heal(12)
        assert set(held(peers[0])) == union


def test_forged_digest_only_costs_an_exchange_that_ends() -> None:
    one, two = peer(1, list(range(20))), peer(2, list(range(20)))
    channel = Channel(one, two)
    for number in range(20):
        channel.send(one.on_digest(2, Digest(0, number % 4, ALL, number)))
        channel.send(one.on_digest(1, Digest(0, 0, ALL, number)))
        channel.run()
        one.on_timeout()
    assert held(one) == held(two)
    assert one.exchanges == two.exchanges == {}


@pytest.mark.parametrize("part", ["ids", "checks", "counts", "sums"])
def test_sketch_of_another_length_than_it_can_have_is_made_anew(part: str) -> None:
    holdings = peer(1, list(range(40))).holdings
    sound = holdings.sketch(0, ALL, 8)
    assert holdings._sketch is not None  # it was asked for just now
    name, sums, cells = holdings._sketch
    if part == "sums":
        holdings._sketch = (name, sums[:31], cells)
    else:
        setattr(cells, part, getattr(cells, part)[:3])
    found = holdings.sketch(0, ALL, 8)
    assert found[1].pack() == sound[1].pack()
    assert pack_tug_of_war(found[0]) == pack_tug_of_war(sound[0])


def test_quota_that_hides_leaves_room_for_what_is_older() -> None:
    """A record over its publisher's quota does not count: a peer would withhold what has room."""
    holdings = Holdings(MemoryStore())
    holdings.show(Window(limit=4, per_publisher=2))
    holdings.append([record_of(A, 0, 5, time=NOW + 9)])
    assert len(holdings) == 5
    assert holdings.floor is None
    older = record_of(B, 0, 2, time=NOW)
    holdings.append([older])
    assert older.place in holdings.store
    assert holdings.floor == older.place


@pytest.mark.parametrize("time", [0, 5, NOW])
def test_version_changes_with_what_is_shown_of_any_second(time: int) -> None:
    holdings = Holdings(MemoryStore())
    other = Holdings(MemoryStore())
    holdings.append([record_of(A, 0, 1, time=time)])
    other.append([record_of(A, 0, 1, time=time, text="!")])
    assert holdings.version != other.version
