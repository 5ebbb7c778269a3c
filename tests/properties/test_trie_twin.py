"""The trie against a plain set of keys, step by step."""

from hashlib import blake2b

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from planaria.protocols.publications.trie import EMPTY_HASH, HASH_BYTES, Inner, Trie

WIDTH = 6

keys = st.integers(0, 2**WIDTH - 1)
prefixes = st.just("") | st.text("01", max_size=WIDTH)


def label(text: str) -> int:
    return int("1" + text, 2)


def naive_hash(texts: list[str], depth: int = 0) -> bytes:
    """Bit by bit from the definition: a leaf is its key, an inner node its children's hashes."""
    if not texts:
        return EMPTY_HASH
    if len(texts) == 1:
        whole = int(texts[0], 2).to_bytes((len(texts[0]) + 7) // 8, "big")
        return blake2b(b"\x00" + whole, digest_size=HASH_BYTES).digest()
    sides = [[text for text in texts if text[depth] == bit] for bit in "01"]
    if not all(sides):
        return naive_hash(texts, depth + 1)
    hashes = [naive_hash(side, depth + 1) for side in sides]
    return blake2b(b"\x01" + b"".join(hashes), digest_size=HASH_BYTES).digest()


class TrieAndSet(RuleBasedStateMachine):
    """Whatever was inserted, removed, hashed, audited and damaged before, answers are the set's."""

    def __init__(self) -> None:
        super().__init__()
        self.twin: set[int] = set()
        self.entries: dict[int, None] = {}
        self.trie = Trie(WIDTH, self.entries)
        self.audited: list[int] = []
        self.cursor = -1
        self.rebuilds = 0

    def extending(self, prefix: str) -> list[str]:
        texts = [f"{key:0{WIDTH}b}" for key in sorted(self.twin)]
        return [text for text in texts if text.startswith(prefix)]

    @rule(key=keys)
    def insert(self, key: int) -> None:
        self.twin.add(key)
        self.entries[key] = None
        self.trie.insert(key)
        self.audited = [it for it in self.audited if it != key]

    @precondition(lambda self: self.twin)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.twin)))
        self.twin.remove(key)
        del self.entries[key]
        self.trie.remove(key)

    @rule(key=keys)
    def remove_a_stranger(self, key: int) -> None:
        if key not in self.twin:
            self.trie.remove(key)

    @rule(prefix=prefixes)
    def compute_hash(self, prefix: str) -> None:
        """Hashes are remembered from here on: whatever changes must forget them."""
        assert self.trie.hash_of(label(prefix)) == naive_hash(self.extending(prefix))

    @rule(prefix=prefixes, without=st.lists(prefixes, max_size=3))
    def list_keys(self, prefix: str, without: list[str]) -> None:
        left = [it for it in self.extending(prefix) if not it.startswith(tuple(without))]
        found = self.trie.keys(label(prefix), [label(it) for it in without])
        assert [f"{key:0{WIDTH}b}" for key in found] == left
        assert (self.trie.find(label(prefix)) is not None) == bool(self.extending(prefix))

    @rule(prefix=prefixes, levels=st.integers(0, 3), beside=st.integers(-1, 1))
    def cover(self, prefix: str, levels: int, beside: int) -> None:
        """At most `leaves` keys are named one by one, more of them by at most 2**levels nodes."""
        leaves = max(0, len(self.extending(prefix)) + beside)
        inner, single = self.trie.cover(label(prefix), levels, leaves)
        covered = [f"{key:0{WIDTH}b}" for key in single]
        for node, hashed in inner:
            below = self.extending(f"{node:b}"[1:])
            assert hashed == naive_hash(below)
            covered += below
        assert sorted(covered) == self.extending(prefix)
        assert not inner if len(covered) <= leaves else len(inner) + len(single) <= 2**levels

    @rule(lowest=st.integers(-1, 2**WIDTH))
    def cut(self, lowest: int) -> None:
        part = self.trie.since(lowest)
        left = [key for key in sorted(self.twin) if key >= lowest]
        assert list(part.keys()) == left
        assert part.minimum() == min(left, default=None)
        assert part.root_hash == naive_hash([f"{key:0{WIDTH}b}" for key in left])

    @rule(limit=st.integers(1, 9))
    def audit(self, limit: int) -> None:
        """A pass goes on where it was, and has seen all keys there were from its start to end."""
        found, done = self.trie.audit(limit)
        assert len(found) <= limit
        assert found == sorted(found)
        assert all(key > self.cursor for key in found)
        self.cursor = -1 if done or not found else found[-1]
        self.audited += found
        if done:
            assert self.twin <= {*self.audited} | self.inserted_behind()
            self.audited = []

    def inserted_behind(self) -> set[int]:
        """Keys below the last one audited may have come after the audit had passed them."""
        return {key for key in self.twin if key < max(self.audited, default=-1)}

    @rule(
        place=st.integers(0, 63), count=st.integers(-2, 70), field=st.sampled_from(Inner.__slots__)
    )
    def damage(self, place: int, count: int, field: str) -> None:
        """One field of one node is overwritten; after a whole pass of the audit nothing is left."""
        nodes, pending = [], [self.trie._root]
        while pending:
            node = pending.pop()
            if isinstance(node, Inner):
                nodes.append(node)
                pending += [node.zero, node.one]
        if nodes:
            value = {"hash": bytes([count % 256]) * HASH_BYTES, "count": count, "label": count}
            setattr(nodes[place % len(nodes)], field, value.get(field, nodes[count % len(nodes)]))
            slices = [self.trie.audit(2**WIDTH)[1] for _ in range(2)]
            assert slices == [True, True]
            self.audited, self.cursor, self.rebuilds = [], -1, self.trie.rebuilds

    @invariant()
    def same_keys(self) -> None:
        assert list(self.trie.keys()) == sorted(self.twin)
        assert self.trie.minimum() == min(self.twin, default=None)
        assert len(self.trie) == len(self.twin)
        assert [key for key in range(2**WIDTH) if key in self.trie] == sorted(self.twin)
        assert self.trie.rebuilds == self.rebuilds, "a sound trie was taken for a damaged one"


def test_trie_answers_as_a_set_of_keys_after_any_steps() -> None:
    few = settings().max_examples // 2
    run_state_machine_as_test(TrieAndSet, settings=settings(max_examples=few))
