"""Errata T1 to T8 of section 4.2: the literal reading fails, ours holds."""

from collections import deque
from collections.abc import Callable
from itertools import product

import pytest

from planaria.core.chance import stream
from planaria.core.node import Effect, Send
from planaria.literal.trie import LiteralSubscriber
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import Push
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.trie import EMPTY_HASH, ROOT_LABEL, Inner, Trie
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.studies.skipring.tries import (
    OurTrie,
    literal_starts,
    start_literal,
    start_ours,
    subsets,
)


def test_t1_hash_over_child_labels_hides_a_difference_and_hash_of_hashes_does_not() -> None:
    ours, theirs = ("000", "010", "100"), ("001", "010", "100")
    one = LiteralSubscriber(1, ours, hashes="labels", dangling=False)
    two = LiteralSubscriber(2, theirs, hashes="labels", dangling=False)
    # Literal: 0 and 100 are the children's labels on both sides, so the root hashes are equal.
    assert one.trie.hash("") == two.trie.hash("")
    assert literal_starts(ours, theirs, "labels") is None

    left, right = OurTrie(3, ours), OurTrie(3, theirs)
    assert left.trie.root_hash != right.trie.root_hash
    start_ours(left, right)
    assert sorted(left.entries) == sorted(right.entries) == [0, 1, 2, 4]


def test_t1_literal_hash_fails_for_a_quarter_of_all_small_pairs() -> None:
    pairs = [(a, b) for a, b in product(subsets(3, 3), repeat=2) if a != b]
    assert len(pairs) == 8556
    assert sum(literal_starts(a, b, "labels") is None for a, b in pairs) == 2176


def test_t1_leaf_and_inner_hashes_are_of_different_domains() -> None:
    trie = OurTrie(8, ["00000000", "11111111"]).trie
    root = trie.find(ROOT_LABEL)
    assert isinstance(root, Inner)
    pair = trie.hash_of(0b100000000) + trie.hash_of(0b111111111)
    forged = Trie(256, {int.from_bytes(pair, "big"): None})
    assert forged.root_hash != trie.root_hash


def test_t2_else_under_the_inner_if_never_asks_for_a_missing_node() -> None:
    assert literal_starts((), ("00",), "hashes", dangling=True) is None
    pairs = [(a, b) for a, b in product(subsets(2, 2), repeat=2) if a != b]
    assert len(pairs) == 110
    assert all(literal_starts(a, b, "hashes", dangling=True) is None for a, b in pairs)
    assert all(literal_starts(a, b, "hashes", dangling=False) is not None for a, b in pairs)

    for a, b in pairs:
        left, right = OurTrie(2, a), OurTrie(2, b)
        start_ours(left, right)
        assert left.entries.keys() == right.entries.keys() == {int(k, 2) for k in a + b}


def test_t3_claim_21_is_false_but_the_theorem_survives() -> None:
    ours, theirs = ("100111", "101111"), ("010011", "100111", "101011")
    for starter in (0, 1):
        one = LiteralSubscriber(1, ours, hashes="hashes", dangling=False)
        two = LiteralSubscriber(2, theirs, hashes="hashes", dangling=False)
        start_literal(*((one, two) if starter == 0 else (two, one)))
        # Lemma 20 promises a start after which the second has come nearer to the first.
        assert "101111" not in two.trie.keys
        assert set(one.trie.keys) | set(two.trie.keys) == {*ours, *theirs}
    starts = literal_starts(ours, theirs, "hashes")
    assert starts is not None
    assert starts > 1

    pairs = [(a, b) for a, b in product(subsets(3, 8), repeat=2) if a != b]
    assert len(pairs) == 65280
    literal = [literal_starts(a, b, "hashes") for a, b in pairs[::23]]
    assert all(each is not None and each <= 5 for each in literal)
    assert any(each is not None and each > 1 for each in literal)

    left, right = OurTrie(6, ours), OurTrie(6, theirs)
    start_ours(left, right)
    assert left.entries.keys() == right.entries.keys()


def test_t4_same_payload_published_twice_by_one_publisher_is_two_publications() -> None:
    # Literal: the key is a hash of (id, p), which is the same for both.
    first, second = said(0), said(1)
    assert (first.publisher, first.payloads(0, 1)) == (second.publisher, second.payloads(1, 2))
    # Whoever receives a push computes the key from what it carries.
    other = subscriber(1)
    other.on_message(Push("t", 2, 1, [first.data, second.data, first.data], []))
    assert sorted(held(other)) == sorted([first.place, second.place])
    assert len(other.holdings) == 2


def test_t5_empty_trie_has_no_root_to_start_with_and_ours_starts_all_the_same() -> None:
    assert LiteralSubscriber(1, (), hashes="hashes", dangling=False).publish_timeout() == []
    assert Trie(3, {}).root_hash == EMPTY_HASH
    empty, full = OurTrie(3, ()), OurTrie(3, ("001", "110"))
    start_ours(empty, full)
    assert empty.entries.keys() == full.entries.keys()
    nobody = subscriber(1)
    somebody = subscriber(2)
    somebody.holdings.append([said(1)])
    assert exchange(nobody, somebody) == exchange(somebody, nobody) == [said(1).place]


def said(number: int) -> Record:
    return seal((7, bytes(12)), number, [Draft(b"same")], time=1)


def subscriber(id: int) -> AntiEntropy:
    return AntiEntropy("t", id, Holdings(MemoryStore()))


def held(one: AntiEntropy) -> list[int]:
    return one.holdings.places(0, TIME_MAX)


def exchange(one: AntiEntropy, two: AntiEntropy) -> list[int]:
    """One digest of `one` sent to `two` and all that follows; returns what `one` holds."""
    peers = {one.id: one, two.id: two}
    waiting: deque[Effect] = deque(two.on_digest(one.id, one.digest(0, TIME_MAX)))
    while waiting:
        effect = waiting.popleft()
        assert isinstance(effect, Send)
        waiting.extend(peers[effect.target].on_message(effect.message))
    return held(one)


def test_t6_literal_start_often_finds_nothing_at_distance_one() -> None:
    chance = stream(6, "t6")
    useless = 0
    for _ in range(200):
        keys = [f"{number:012b}" for number in chance.sample(range(1 << 12), 40)]
        one = LiteralSubscriber(1, keys, hashes="hashes", dangling=False)
        two = LiteralSubscriber(2, keys[1:], hashes="hashes", dangling=False)
        start_literal(one, two)
        useless += one.trie.keys != two.trie.keys
    assert 60 < useless < 140


@pytest.mark.parametrize("part", range(4))
def test_t6_one_start_of_ours_makes_every_pair_of_three_bit_tries_equal(
    part: int, seeds: Callable[[int, int], int]
) -> None:
    """By day every fourth trie against all, at night every one."""
    sets = subsets(3, 8)
    for ours in sets[part :: seeds(16, 4)]:
        for theirs in sets:
            left, right = OurTrie(3, ours), OurTrie(3, theirs)
            start_ours(left, right)
            assert left.entries.keys() == right.entries.keys() == {int(k, 2) for k in ours + theirs}


def test_t7_publication_got_by_anti_entropy_is_new_once_and_stays_out_of_forwarding() -> None:
    # Literal: PUBLISHNEW is forwarded only by nodes that do not hold p, so one PUBLISH that is
    # faster cuts the flood. Ours: anti-entropy hands new publications to the subscriber for
    # delivery and sends nothing about them; forwarding (broadcast) never looks at the store.
    node = subscriber(1)
    came: list[Record] = []
    for _ in range(2):
        push = Push("t", 2, 5, [said(0).data], [])
        assert node.on_message(push, came.extend) == []
    assert came == [said(0)] * 2
    assert [one.new for one in node.holdings.append(came)] == [[(0, 1)], []]


def test_t8_corrupted_hashes_and_leaves_last_for_ever_literally_and_are_healed_by_ours() -> None:
    ours = [f"{number:08b}" for number in range(0, 250, 7)]
    one = LiteralSubscriber(1, ours, hashes="hashes", dangling=False)
    two = LiteralSubscriber(2, [*ours, "11111111"], hashes="hashes", dangling=False)
    two.trie.hash("")
    for label in list(two.trie._known):
        two.trie._known[label] = one.trie.hash(label) if one.trie.search(label) else b"wrong"
    one.trie.hash("")
    one.trie._known[""] = two.trie._known[""] = b"equal by a fault"
    for _ in range(20):
        start_literal(one, two)
        start_literal(two, one)
    assert one.trie.keys != two.trie.keys

    left = subscriber(1)
    right = subscriber(2)
    for number in range(60):
        left.holdings.append([said(number)])
        if number:
            right.holdings.append([said(number)])
    for each in (left, right):
        pending = [each.holdings.trie(0, TIME_MAX).find(ROOT_LABEL)]
        while pending:
            node = pending.pop()
            if isinstance(node, Inner):
                node.hash = b"equal by a fault"
                pending += (node.zero, node.one)
        each.holdings.store.index.sums._total = (7, 7)  # equal by a fault
    assert exchange(left, right) == held(left) != held(right)
    for _ in range(4):
        left.on_timeout()
        right.on_timeout()
        exchange(left, right)
    assert held(left) == held(right)
    assert len(held(left)) == 60
