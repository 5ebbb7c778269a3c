"""Sums over the tree of labels: how one number tells whether a whole subtree is as recorded.

The parent of label i is label i >> 1, which is one of its two level neighbours; label 1 hangs
below label 0. A member's sum is its own fingerprint plus the sums of its children, so the
supervisor finds two exchanged members by walking down from the top (digest).
"""

WORD = (1 << 64) - 1


def fingerprint(label: int, id: int) -> int:
    """A well-mixed 64-bit number for 'label belongs to id' (the finalizer of splitmix64)."""
    x = (label * 0x9E3779B97F4A7C15 + id * 0xD1B54A32D192ED03 + 0x2545F4914F6CDD1D) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def parent(label: int) -> int | None:
    """The label above `label`; None for label 0."""
    return label >> 1 if label else None


def children(label: int) -> tuple[int, int | None]:
    """The labels below `label`: one for label 0, two for every other."""
    return (2 * label, 2 * label + 1) if label else (1, None)


def place_sum(label: int, pred: tuple[int, int] | None, succ: tuple[int, int] | None) -> int:
    """One number for a whole place: the label, and the ring neighbour on either side."""
    total = fingerprint(label, 0)
    for side, ref in ((3, pred), (5, succ)):
        total += side * fingerprint(*ref) if ref is not None else 0
    return total & WORD
