"""The trie against plain sets of keys, whole and damaged."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import stream
from planaria.protocols.publications.trie import (
    EMPTY_HASH,
    ROOT_LABEL,
    Inner,
    Trie,
    common_prefix,
    extends,
)


def bits(label: int) -> str:
    return f"{label:b}"[1:]


def label_of(text: str) -> int:
    return int("1" + text, 2)


def trie_of(width: int, keys: list[int]) -> Trie:
    return Trie(width, dict.fromkeys(keys))


def inner_nodes(trie: Trie) -> list[Inner]:
    found = []
    pending = [trie._root]
    while pending:
        node = pending.pop()
        if isinstance(node, Inner):
            found.append(node)
            pending += (node.one, node.zero)
    return found


def reference_labels(width: int, keys: list[int]) -> set[str]:
    """The labels of a Patricia trie by definition: longest common prefixes of pairs, and keys."""
    texts = [f"{key:0{width}b}" for key in keys]
    labels = set(texts)
    for one in texts:
        for other in texts:
            size = next((i for i in range(width) if one[i] != other[i]), width)
            labels.add(one[:size])
    return labels


operations = st.lists(st.tuples(st.booleans(), st.integers(0, 31)), max_size=60)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(operations)
def test_trie_agrees_with_a_set_after_any_inserts_and_removals(
    steps: list[tuple[bool, int]],
) -> None:
    entries: dict[int, None] = {}
    trie = Trie(5, entries)
    for insert, key in steps:
        if insert:
            entries[key] = None
            trie.insert(key)
        elif key in entries:
            del entries[key]
            trie.remove(key)
        assert trie.root_hash == trie_of(5, sorted(entries)).root_hash
        assert list(trie.keys()) == sorted(entries)
        assert trie.minimum() == min(entries, default=None)
    leaves = {f"{key:05b}" for key in entries}
    labels = {bits(node.label) for node in inner_nodes(trie)} | leaves
    assert labels == reference_labels(5, list(entries))
    assert [key for key in range(32) if key in trie] == sorted(entries)
    assert trie.rebuilds == 0


def test_root_hashes_of_all_sets_of_three_bit_keys_differ() -> None:
    hashes = {
        trie_of(3, [k for k in range(8) if chosen >> k & 1]).root_hash for chosen in range(256)
    }
    assert len(hashes) == 256
    assert trie_of(3, []).root_hash == EMPTY_HASH


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.sets(st.integers(0, 63)), st.text("01", max_size=6))
def test_lookup_by_prefix_finds_exactly_the_keys_that_extend_it(
    keys: set[int], prefix: str
) -> None:
    trie = trie_of(6, sorted(keys))
    expected = [key for key in sorted(keys) if f"{key:06b}".startswith(prefix)]
    assert list(trie.keys(label_of(prefix))) == expected
    assert (trie.find(label_of(prefix)) is not None) == bool(expected)
    alone = trie_of(6, expected)
    assert trie.hash_of(label_of(prefix)) == alone.root_hash


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.sets(st.integers(0, 63)),
    st.text("01", max_size=3),
    st.lists(st.text("01", max_size=6), max_size=4),
)
def test_keys_without_labels_are_those_that_extend_none_of_them(
    keys: set[int], prefix: str, without: list[str]
) -> None:
    trie = trie_of(6, sorted(keys))
    texts = [f"{key:06b}" for key in sorted(keys)]
    expected = [t for t in texts if t.startswith(prefix) and not t.startswith(tuple(without))]
    found = trie.keys(label_of(prefix), [label_of(text) for text in without])
    assert [f"{key:06b}" for key in found] == expected


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.sets(st.integers(0, 63)), st.integers(0, 3), st.integers(0, 8))
def test_cover_names_every_key_once(keys: set[int], levels: int, leaves_max: int) -> None:
    trie = trie_of(6, sorted(keys))
    inner, leaves = trie.cover(ROOT_LABEL, levels, leaves_max)
    covered = leaves + [key for label, _ in inner for key in trie.keys(label)]
    assert sorted(covered) == sorted(keys)
    assert all(trie.hash_of(label) == full for label, full in inner)
    assert len(inner) + len(leaves) <= max(2**levels, leaves_max)


def test_hashes_are_computed_once_and_only_on_changed_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = stream(1, "lazy")
    entries = dict.fromkeys(chance.getrandbits(128) for _ in range(1000))
    trie = Trie(128, entries)
    calls: list[int] = []
    original = Trie._inner_hash
    monkeypatch.setattr(
        Trie,
        "_inner_hash",
        lambda *a: calls.append(1) or original(*a),  # type: ignore[func-returns-value]
    )
    assert trie.root_hash == trie.root_hash
    assert len(calls) == 999
    calls.clear()
    entries[77] = None
    trie.insert(77)
    assert calls == []
    assert trie.root_hash
    assert len(calls) < 30


def whole_audit(trie: Trie, limit: int = 7) -> list[int]:
    seen: list[int] = []
    for _ in range(len(trie) + 2):
        keys, done = trie.audit(limit)
        assert len(keys) <= limit
        seen += keys
        if done:
            return seen
    raise AssertionError("the audit never ends")


def test_audit_of_a_sound_trie_sees_every_key_once_and_changes_nothing() -> None:
    trie = trie_of(16, [stream(2, "a", i).getrandbits(16) for i in range(100)])
    assert trie.root_hash
    assert whole_audit(trie) == sorted(trie.keys())
    assert trie.rebuilds == 0


def test_every_stored_hash_corrupted_is_healed_by_the_first_slice_of_the_audit() -> None:
    trie = trie_of(16, list(range(0, 60000, 700)))
    sound = trie.root_hash
    for node in inner_nodes(trie):
        node.hash = bytes(16)
    assert trie.root_hash != sound
    trie.audit(1)
    assert trie.root_hash == sound


def damage(trie: Trie, nodes: list[Inner], chance: Random) -> str:
    """Overwrite one field of one node; says which."""
    node = chance.choice(nodes)
    kind = chance.choice(
        ["hash", "count", "label", "zero", "one", "swap", "root", "none", "cursor"]
    )
    if kind == "hash":
        node.hash = chance.randbytes(16)
    elif kind == "count":
        node.count += chance.choice([-1, 1, 5])
    elif kind == "label":
        node.label = chance.getrandbits(chance.randrange(1, 20))
    elif kind == "zero":
        node.zero = chance.choice(nodes)
    elif kind == "one":
        node.one = chance.choice([*trie.entries, -1, 1 << 20])
    elif kind == "swap":
        node.zero, node.one = node.one, node.zero
    elif kind == "root":
        trie._root = chance.choice([None, 3, node])
    elif kind == "none":
        node.zero = None  # type: ignore[assignment]
    else:
        trie.cursor = chance.randrange(-(10**6), 10**6)
    return kind


def test_any_damage_is_repaired_within_one_pass_of_the_audit() -> None:
    for seed in range(400):
        chance = stream(seed, "damage")
        keys = chance.sample(range(1 << 12), 40)
        entries = dict.fromkeys(keys)
        trie = Trie(12, entries)
        sound = trie.root_hash
        nodes = inner_nodes(trie)
        kinds = [damage(trie, nodes, chance) for _ in range(chance.randrange(1, 4))]
        for _ in range(3):  # the cursor may have been damaged, too
            whole_audit(trie)
        assert trie.root_hash == sound, (seed, kinds)
        assert list(trie.keys()) == sorted(keys)


def test_no_operation_on_a_damaged_trie_raises_or_hangs() -> None:
    for seed in range(300):
        chance = stream(seed, "use")
        entries = dict.fromkeys(chance.sample(range(1 << 12), 40))
        trie = Trie(12, entries)
        if chance.random() < 0.5:
            assert trie.root_hash
        nodes = inner_nodes(trie)
        for _ in range(chance.randrange(1, 6)):
            damage(trie, nodes, chance)
        for _ in range(20):
            key = chance.randrange(1 << 12)
            if chance.random() < 0.5:
                entries[key] = None
                trie.insert(key)
            elif key in entries:
                del entries[key]
                trie.remove(key)
            assert isinstance(trie.root_hash, bytes)
            assert (key in trie) in (True, False)
            trie.cover(ROOT_LABEL, 2, 4)
            trie.minimum()
            list(trie.keys(label_of(f"{key:012b}"[:3])))
        for _ in range(3):
            whole_audit(trie)
        assert trie.root_hash == trie_of(12, sorted(entries)).root_hash


def test_audit_notices_keys_that_the_trie_lost_and_keys_it_invented() -> None:
    entries = dict.fromkeys(range(0, 100, 3))
    trie = Trie(8, entries)
    entries[200] = None
    whole_audit(trie)
    assert 200 in trie
    trie.insert(201)
    whole_audit(trie)
    assert 201 not in trie
    assert trie.root_hash == trie_of(8, list(entries)).root_hash


def test_prefix_functions_agree_with_strings() -> None:
    texts = [f"{n:b}"[1:] for n in range(1, 64)]
    for one in texts:
        for other in texts:
            size = next(
                (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)),
            )
            assert common_prefix(label_of(one), label_of(other)) == label_of(one[:size])
            assert extends(label_of(one), label_of(other)) == one.startswith(other)


def test_deepest_possible_trie_works_without_recursion() -> None:
    keys = [0, *(1 << i for i in range(128))]
    trie = trie_of(128, keys)
    assert list(trie.keys()) == sorted(keys)
    assert trie.root_hash == trie_of(128, keys[::-1]).root_hash
    assert whole_audit(trie) == sorted(keys)


@pytest.mark.parametrize("label", [0, -1, -31, -(1 << 200)])
@pytest.mark.parametrize("first", ["audit", "hash"])
def test_label_that_no_node_can_have_hides_nothing(label: int, first: str) -> None:
    """The last key below it lay before all others, so that the audit never looked there."""
    sound, trie = trie_of(8, [3, 200]), trie_of(8, [3, 200])
    (root,) = inner_nodes(trie)
    root.label, root.hash = label, None
    if first == "audit":
        whole_audit(trie)
    assert trie.root_hash == sound.root_hash
    assert trie.rebuilds == 1
