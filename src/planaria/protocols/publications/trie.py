"""The Merkle-Patricia trie of section 4.2: an index over a mapping's keys, with lazy hashes.

A label is an integer: a leading one, then the label's bits ('' is 1, '01' is 0b101). Leaves are
plain keys; only inner nodes are objects. The trie never decides what the mapping holds. It is
rebuilt from the mapping's keys as soon as a walk or the audit meets a node that cannot be
(erratum T8), so labels, children, counts and hashes may all be overwritten.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice

HASH_BYTES = 16
EMPTY_HASH = bytes(HASH_BYTES)  # the root hash of a trie without keys (erratum T5)
ROOT_LABEL = 1  # '', the label that every key extends

_LEAF, _INNER = b"\x00", b"\x01"  # a leaf never has the hash of an inner node (erratum T1)


class Damaged(Exception):
    """A stored node contradicts another one; caught here, where the trie is then rebuilt."""


class Inner:
    """An inner node: the longest common prefix of its two children's labels."""

    __slots__ = ("count", "hash", "label", "one", "zero")

    def __init__(self, label: int, zero: "Inner | int", one: "Inner | int", count: int) -> None:
        self.label = label
        self.zero = zero
        self.one = one
        self.count = count
        self.hash: bytes | None = None  # None: to be computed when somebody asks


class Trie:
    """A Merkle-Patricia trie over the `width`-bit keys of `entries`, which it only reads.

    The owner changes `entries` first and then says so with `insert` or `remove`.
    """

    __slots__ = ("_lowest", "_root", "_top", "cursor", "entries", "rebuilds", "width")

    def __init__(self, width: int, entries: Mapping[int, object]) -> None:
        self.width = width
        self.rebuilds = 0
        self.entries = entries
        self._lowest = 0  # keys below it are not in this trie
        self._top = 1 << width
        self.cursor = -1  # the last key audited
        self._root: Inner | int | None = None
        for key in entries:
            self._insert(key)

    def insert(self, key: int) -> None:
        """Take up `key`, which the mapping holds by now."""
        try:
            self._insert(key)
        except Damaged:
            self._rebuild()

    def remove(self, key: int) -> None:
        """Forget `key`, which the mapping no longer holds."""
        try:
            self._remove(key)
        except Damaged:
            self._rebuild()

    def __contains__(self, key: int) -> bool:
        return self.find(self._top | key) is not None

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def root_hash(self) -> bytes:
        """The hash of all keys: equal for two tries exactly if their keys are equal."""
        return self.hash_of(ROOT_LABEL)

    def find(self, label: int) -> Inner | int | None:
        """The node with the shortest label that extends `label`; a leaf is its key."""
        try:
            return self._find(label)
        except Damaged:
            self._rebuild()
            return self._find(label)

    def hash_of(self, label: int) -> bytes:
        """The hash of all keys that extend `label`."""
        try:
            return self._hash(self._find(label))
        except Damaged:
            self._rebuild()
            return self._hash(self._find(label))

    def cover(
        self, label: int, levels: int, leaves: int
    ) -> tuple[list[tuple[int, bytes]], list[int]]:
        """Inner nodes (label, hash) and leaves that together cover the keys extending `label`.

        They lie `levels` below the node found there; if it has at most `leaves` keys, it is
        these keys.
        """
        try:
            return self._cover(label, levels, leaves)
        except Damaged:
            self._rebuild()
            return self._cover(label, levels, leaves)

    def keys(self, label: int = ROOT_LABEL, without: Sequence[int] = ()) -> Iterator[int]:
        """The keys that extend `label` but none of the labels `without`, in ascending order.

        The trie must not change meanwhile.
        """
        last = -1
        while True:  # a second turn only after damage, and a rebuilt trie has none
            try:
                for key in self._walk(label, without):
                    if key > last:
                        yield key
                        last = key
                return
            except Damaged:
                self._rebuild()

    def minimum(self) -> int | None:
        """The smallest key."""
        return next(self.keys(), None)

    def since(self, lowest: int) -> "Trie":
        """The trie over the keys from `lowest` on, to be read until this one changes."""
        part = Trie(self.width, {})
        part.entries, part._lowest = self.entries, max(0, lowest)
        try:
            part._root = self._cut(self._root, lowest)
        except Damaged:
            part._rebuild()
        return part

    def audit(self, limit: int) -> tuple[list[int], bool]:
        """Check the nodes over the next `limit` keys; rebuild the trie if one of them is wrong.

        Returns the keys that were checked, for the owner to check what he keeps under them, and
        whether a pass over all keys is complete.
        """
        for _ in range(2):
            try:
                return self._audit(limit)
            except Damaged:
                self._rebuild()
        return [], False  # the mapping itself holds what cannot be a key

    def _rebuild(self) -> None:
        self.rebuilds += 1
        self.cursor = -1
        self._root = None
        for key in self.entries:
            self._insert(key)

    def _insert(self, key: int) -> None:
        if not self._lowest <= key < self._top:
            return
        target = self._top | key
        path, node = self._descend(target)
        if node is None:
            self._root = key
            return
        if node == key:
            return
        fork = common_prefix(target, self._label(node))
        above = path[-1].label.bit_length() if path else 0
        if not above < fork.bit_length() <= self.width:
            raise Damaged
        count = 1 + _count(node)
        if target >> (self.width - fork.bit_length()) & 1:
            new = Inner(fork, node, key, count)
        else:
            new = Inner(fork, key, node, count)
        self._replace(path, target, new)
        for ancestor in path:
            ancestor.count += 1
            ancestor.hash = None

    def _remove(self, key: int) -> None:
        target = self._top | key
        path, node = self._descend(target)
        if node != key:
            return
        if not path:
            self._root = None
            return
        parent = path.pop()
        one = target >> (self.width - parent.label.bit_length()) & 1
        self._replace(path, target, parent.zero if one else parent.one)
        for ancestor in path:
            ancestor.count -= 1
            ancestor.hash = None

    def _descend(self, target: int) -> tuple[list[Inner], Inner | int | None]:
        """The inner nodes whose labels `target` extends, and the node where it leaves them."""
        path: list[Inner] = []
        node = self._root
        length = 0
        while isinstance(node, Inner):
            label = node.label
            size = label.bit_length()
            if not length < size <= self.width:
                raise Damaged
            if target >> (self.width + 1 - size) != label:
                break
            path.append(node)
            node = node.one if target >> (self.width - size) & 1 else node.zero
            length = size
        if node is None and path:
            raise Damaged
        return path, node

    def _replace(self, path: list[Inner], target: int, node: Inner | int) -> None:
        """Put `node` under the end of `path`, on the side of `target`."""
        if not path:
            self._root = node
        elif target >> (self.width - path[-1].label.bit_length()) & 1:
            path[-1].one = node
        else:
            path[-1].zero = node

    def _find(self, label: int) -> Inner | int | None:
        node = self._root
        size = label.bit_length()
        length = 0
        while isinstance(node, Inner) and node.label.bit_length() < size:
            if not length < node.label.bit_length() <= self.width:
                raise Damaged
            length = node.label.bit_length()
            if label >> (size - length) != node.label:
                return None
            node = node.one if label >> (size - length - 1) & 1 else node.zero
        if node is None:
            return None
        found = self._label(node)
        excess = found.bit_length() - size
        return node if excess >= 0 and found >> excess == label else None

    def _label(self, node: Inner | int) -> int:
        """The label of a node, if it can be one."""
        if isinstance(node, Inner) and node.label >= ROOT_LABEL:
            return node.label
        if not isinstance(node, int) or not 0 <= node < self._top:
            raise Damaged
        return self._top | node

    def _children(self, node: Inner) -> tuple[Inner | int, Inner | int]:
        """Both children, if their labels extend the node's label on their sides."""
        label = node.label
        length = label.bit_length()
        for child, start in ((node.zero, label << 1), (node.one, label << 1 | 1)):
            full = self._label(child)
            excess = full.bit_length() - length - 1
            if excess < 0 or full >> excess != start:
                raise Damaged
        return node.zero, node.one

    def _hash(self, node: Inner | int | None) -> bytes:
        """The hash of `node`; every dirty node below it is hashed once."""
        if node is None:
            return EMPTY_HASH
        if not isinstance(node, Inner):
            return self._leaf_hash(node)
        stack = [node]  # at most two nodes per level, as labels grow along every path
        while stack:
            top = stack[-1]
            if top.hash is None:
                zero, one = self._children(top)
                dirty = [n for n in (zero, one) if isinstance(n, Inner) and n.hash is None]
                if dirty:
                    stack += dirty
                    continue
                top.hash = self._inner_hash(zero, one)
            stack.pop()
        return node.hash or EMPTY_HASH

    def _leaf_hash(self, key: int) -> bytes:
        raw = key.to_bytes((self.width + 7) // 8, "big")
        return blake2b(_LEAF + raw, digest_size=HASH_BYTES).digest()

    def _inner_hash(self, zero: Inner | int, one: Inner | int) -> bytes:
        """The hash of the children's hashes (the paper's sentence, not its formula)."""
        left = (zero.hash or b"") if isinstance(zero, Inner) else self._leaf_hash(zero)
        right = (one.hash or b"") if isinstance(one, Inner) else self._leaf_hash(one)
        return blake2b(_INNER + left + right, digest_size=HASH_BYTES).digest()

    def _cover(
        self, label: int, levels: int, leaves: int
    ) -> tuple[list[tuple[int, bytes]], list[int]]:
        found = self._find(label)
        if isinstance(found, Inner) and found.count <= leaves:
            keys = list(islice(self._walk(label), leaves + 1))
            if len(keys) != found.count:
                raise Damaged
            return [], keys
        nodes = [] if found is None else [found]
        for _ in range(levels):
            below: list[Inner | int] = []
            for node in nodes:
                below.extend(self._children(node) if isinstance(node, Inner) else (node,))
            nodes = below
        inner = [(node.label, self._hash(node)) for node in nodes if isinstance(node, Inner)]
        return inner, [node for node in nodes if not isinstance(node, Inner)]

    def _walk(self, label: int, without: Sequence[int] = ()) -> Iterator[int]:
        found = self._find(label)
        # At most one waiting node per level, each with the labels that may lie below it.
        stack = [] if found is None else [(found, without)]
        while stack:
            node, listed = stack.pop()
            if listed:
                own = self._label(node)
                if any(extends(own, other) for other in listed):
                    continue
                listed = [other for other in listed if extends(other, own)]
            if isinstance(node, Inner):
                zero, one = self._children(node)
                stack += ((one, listed), (zero, listed))
            else:
                yield node

    def _audit(self, limit: int) -> tuple[list[int], bool]:
        root = self._root
        held = 0 if root is None else _count(root)
        if held != len(self.entries):
            raise Damaged
        keys: list[int] = []
        stack = [] if root is None else [root]
        while stack and len(keys) < limit:
            node = stack.pop()
            if isinstance(node, Inner):
                if self._last_key(node) > self.cursor:
                    zero, one = self._verify(node)
                    stack += (one, zero)
            elif node not in self.entries:
                raise Damaged
            elif node > self.cursor:
                keys.append(node)
        done = not stack
        self.cursor = -1 if done or not keys else keys[-1]
        return keys, done

    def _cut(self, node: Inner | int | None, lowest: int) -> Inner | int | None:
        """What is left of a subtree without the keys below `lowest`; at most one child is cut."""
        if not isinstance(node, Inner):
            return None if node is None or node < lowest else node
        last = self._last_key(node)
        free = self.width + 1 - node.label.bit_length()
        if (node.label << free) - self._top >= lowest:
            return node
        if last < lowest:
            return None
        zero, one = self._children(node)
        left, right = self._cut(zero, lowest), self._cut(one, lowest)
        if left is None or right is None:
            return right if left is None else left
        return Inner(node.label, left, right, _count(left) + _count(right))

    def _last_key(self, node: Inner) -> int:
        """The largest key that could lie under `node`."""
        free = self.width + 1 - self._label(node).bit_length()
        if free < 1:
            raise Damaged
        return ((node.label + 1) << free) - 1 - self._top

    def _verify(self, node: Inner) -> tuple[Inner | int, Inner | int]:
        """The children of `node`, if it agrees with them in labels, count and hash."""
        zero, one = self._children(node)
        if node.count != _count(zero) + _count(one):
            raise Damaged
        if node.hash is not None and node.hash != self._inner_hash(zero, one):
            raise Damaged
        return zero, one


def _count(node: Inner | int) -> int:
    return node.count if isinstance(node, Inner) else 1


def common_prefix(one: int, other: int) -> int:
    """The longest common prefix of two labels."""
    excess = one.bit_length() - other.bit_length()
    if excess > 0:
        one >>= excess
    else:
        other >>= -excess
    return one >> (one ^ other).bit_length()


def extends(label: int, prefix: int) -> bool:
    """Is `prefix` a prefix of `label`?"""
    excess = label.bit_length() - prefix.bit_length()
    return excess >= 0 and label >> excess == prefix
