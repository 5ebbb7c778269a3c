"""Anti-entropy with corrupted caches, hidden differences and forged messages."""

from random import Random

import pytest

from antientropy_lab import CODEC, TOPIC, Channel, held, peer, publication
from planaria.core.chance import stream
from planaria.core.codec import FRAME_BYTES_MAX
from planaria.core.node import Send
from planaria.protocols.publications import antientropy
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
from planaria.protocols.publications.publication import PAYLOAD_BYTES_MAX, key
from planaria.protocols.publications.window import Window
from planaria.protocols.skipring.arbitrary_history import corrupt_caches


def test_stores_with_arbitrarily_corrupted_caches_end_equal_and_lose_nothing() -> None:
    for seed in range(60):
        chance = stream(seed, "corrupt")
        ours = chance.sample(range(200), chance.randrange(120))
        theirs = chance.sample(range(200), chance.randrange(120))
        one, two = peer(1, ours), peer(2, theirs)
        for each in (one, two):
            if chance.random() < 0.8:
                corrupt_caches(each, (1, 2, 3), chance)
        Channel(one, two).heal(60)
        assert held(one) == held(peer(3, ours + theirs)), seed


def test_corrupted_publication_is_dropped_and_fetched_again() -> None:
    one, two = peer(1, list(range(50))), peer(2, list(range(50)))
    victim = sorted(one.store.shown)[25]
    one.store.shown[victim] = publication(4711, time=4)
    Channel(one, two).heal(1)  # nothing to see: the digest comes from the keys
    assert one.store.shown[victim] != two.store.shown[victim]
    channel = Channel(one, two)
    for _ in range(20):
        channel.interval()
    assert one.store.shown[victim] == two.store.shown[victim]
    assert len(held(one)) == len(held(two)) == 50


def test_wrong_id_in_a_sketch_is_answered_unknown_and_heals() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    one.store.sketch(0, 4)
    cache = one.store._sketch
    assert cache is not None
    cache._added.append(12345)
    channel = Channel(one, two)
    channel.heal(4)
    assert len(held(one)) == 41
    unknown = Push(TOPIC, 1, 7, [], [12345])
    assert two.on_message(unknown) == ([], [])


def test_sketches_missing_a_common_id_do_not_stop_agreement() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(45)))
    one.store.sketch(0, 4)
    cache = one.store._sketch
    assert cache is not None
    cache._removed.append(int.from_bytes(held(one)[0][:8], "big"))
    Channel(one, two).heal(4)
    assert len(held(one)) == 45


def falsify(subscriber: AntiEntropy, number: int, *, held: bool) -> None:
    """Make the sketch say that one publication is held, or that it is not."""
    subscriber.store.sketch(0, 4)
    about = publication(number, time=3 + number % 3)
    cache = subscriber.store._sketch
    assert cache is not None
    changed = cache.add if held else cache.remove
    assert changed(int.from_bytes(key(about)[:8], "big"))


def test_sketch_that_hides_the_difference_leads_to_descent_at_once() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 40, held=True)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest()))
    channel.run()
    assert channel.tags[:2] == ["publications.estimate", "publications.root"]
    assert held(one) == held(two)


def test_sketch_with_an_id_that_nobody_has_leads_to_descent_at_once() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 4711, held=True)
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest()))
    channel.run()
    assert channel.tags[:2] == ["publications.estimate", "publications.root"]
    assert held(one) == held(two)


def test_exchanges_that_change_nothing_lead_to_descent_without_any_audit() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    falsify(one, 40, held=True)
    falsify(one, 3, held=False)
    channel = Channel(one, two)
    for _ in range(antientropy.STRIKES_MAX + 1):
        assert held(one) != held(two)
        channel.send(two.on_digest(1, one.digest()))
        channel.run()
    assert held(one) == held(two)


def test_doubt_makes_sketches_anew_at_once() -> None:
    one = peer(1, list(range(40)))
    sound = one.store.sketch(0, 8)[1].pack()
    falsify(one, 3, held=False)
    assert one.store.sketch(0, 8)[1].pack() != sound
    one._doubt(2)
    assert one.store.sketch(0, 8)[1].pack() == sound


def test_unknown_answer_puts_the_sketches_in_doubt_only_in_an_open_exchange() -> None:
    one, two = peer(1, list(range(40))), peer(2, list(range(41)))
    one.on_message(Push(TOPIC, 2, 1, [], [12345]))
    assert one.store.audit_due == 0
    one.on_digest(2, two.digest())
    one.on_message(Push(TOPIC, 2, one.exchanges[2].number, [], [12345]))
    assert one.store.audit_due == 40
    (descent,) = one.on_digest(2, two.digest())
    assert isinstance(descent, Send)
    assert isinstance(descent.message, Root)


def test_messages_of_another_topic_or_of_oneself_are_left_alone() -> None:
    one = peer(1, [1])
    new = publication(2)
    assert one.on_message(Push("other", 2, 1, [new], [])) == ([], [])
    assert one.on_message(Push(TOPIC, 1, 1, [new], [])) == ([], [])
    assert len(one.store) == 1


def test_regions_under_no_label_are_left_alone() -> None:
    one = peer(1, list(range(40)))
    inner = [(b"\x02", 5), (b"\x03", 5)]
    message = Compare(TOPIC, 2, 7, 0, [Region(b"\x00", inner, [])], [])
    assert one.on_message(message)[0] == [Send(2, Done(TOPIC, 1, 7))]


@pytest.mark.parametrize("older", [1, 2])
def test_descent_leaves_alone_what_the_younger_window_hides(older: int) -> None:
    """Whoever begins, nothing below the higher `lo` crosses, and everything above it does."""
    one, two = peer(1, list(range(60))), peer(2, list(range(30, 90)))
    younger = one if older == 2 else two
    younger.store.show(Window(lo=4))
    for starter, other in ((one, two), (two, one)):
        starter._doubt(other.id)
    channel = Channel(one, two)
    for _ in range(3):
        channel.interval()
    assert list(one.store.publications(4)) == list(two.store.publications(4))
    crossed = [p for fresh in channel.delivered.values() for p in fresh]
    assert crossed
    assert all(p.time >= 4 for p in crossed)


def test_undecodable_sketches_lead_to_two_more_and_then_to_descent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(antientropy, "sketch_size", lambda _: 5)
    one, two = peer(1, list(range(400))), peer(2, list(range(200, 600)))
    channel = Channel(one, two)
    channel.send(two.on_digest(1, one.digest()))
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
    for number in range(3):
        one.store.insert(publication(number, size=PAYLOAD_BYTES_MAX))
    for number in range(3, 40):
        one.store.insert(publication(number, size=50_000))
    channel = Channel(one, two, lost=lambda m: len(CODEC.encode(m)) > FRAME_BYTES_MAX)
    channel.heal(3)
    assert len(held(two)) == 40


def forged(chance: Random) -> AntiEntropyMessage:
    """A well-typed message that nobody had a reason to send."""
    topic = chance.choice([TOPIC, TOPIC, TOPIC, "other"])
    head = (topic, chance.randrange(4), chance.randrange(20))
    state = Inventory(
        chance.randrange(6), chance.getrandbits(64), chance.getrandbits(40), chance.randbytes(21)
    )
    publications = [publication(chance.randrange(200), time=chance.randrange(9)) for _ in "ab"]
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
            Difference(*head, chance.randrange(6), publications, ids),
            Push(*head, publications, ids),
            Root(*head, chance.randrange(6), chance.getrandbits(64)),
            Compare(*head, chance.randrange(6), regions, publications),
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
        union = {key(p) for each in peers for p in each.store.publications()}
        channel.heal(12)
        assert set(held(peers[0])) == union


def test_forged_digest_only_costs_an_exchange_that_ends() -> None:
    one, two = peer(1, list(range(20))), peer(2, list(range(20)))
    channel = Channel(one, two)
    for number in range(20):
        channel.send(one.on_digest(2, Digest(0, number % 4, number)))
        channel.send(one.on_digest(1, Digest(0, 0, number)))
        channel.run()
        one.on_timeout()
    assert held(one) == held(two)
    assert one.exchanges == two.exchanges == {}
