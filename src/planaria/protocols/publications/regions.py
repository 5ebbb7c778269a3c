"""The descent over all epochs of a store: which regions to send, which publications to push."""

from collections.abc import Iterator

from planaria.protocols.publications.antientropy_messages import (
    LEAVES_MAX,
    ROOTS_MAX,
    Compare,
    Region,
    Roots,
)
from planaria.protocols.publications.descent import (
    ROOT_LEVELS,
    Listing,
    answer,
    lacking,
    listing,
    short_hash,
)
from planaria.protocols.publications.publication import EPOCH_MAX, KEY_BITS, Publication
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.publications.trie import ROOT_LABEL

Answer = tuple[list[Region], Iterator[Publication]]  # our regions, and what the peer lacks


def roots(store: PublicationStore, lo: int, turn: int) -> tuple[int, int, list[tuple[int, int]]]:
    """An interval of epochs from `lo` on, and the root hashes of all that the store shows in it.

    That is all epochs, unless they are too many for one message: then another part each `turn`.
    """
    epochs = store.epochs(lo)
    hi = EPOCH_MAX
    if len(epochs) > ROOTS_MAX:
        start = turn * ROOTS_MAX % len(epochs)
        lo = lo if start == 0 else epochs[start]
        hi = hi if start + ROOTS_MAX >= len(epochs) else epochs[start + ROOTS_MAX] - 1
        epochs = epochs[start : start + ROOTS_MAX]
    return lo, hi, [(epoch, short_hash(store.trie(epoch).root_hash)) for epoch in epochs]


def answer_roots(store: PublicationStore, message: Roots) -> Answer:
    """CHECKTRIE (paper, Alg. 5) of the roots of all epochs at once."""
    theirs = {epoch: hash for epoch, hash in message.roots if store.in_window(epoch)}
    differing = [
        epoch for epoch, hash in theirs.items() if short_hash(store.trie(epoch).root_hash) != hash
    ]
    regions = [
        _region(epoch, listing(store.trie(epoch), ROOT_LABEL, LEAVES_MAX, ROOT_LEVELS))
        for epoch in differing
    ]
    missing = (
        publication
        for epoch in store.epochs(message.lo)
        if epoch <= message.hi and epoch not in theirs
        for publication in store.at(epoch, store.trie(epoch).keys())
    )
    return regions, missing


def answer_regions(store: PublicationStore, message: Compare) -> Answer:
    """CHECKANDPUBLISH (paper, Alg. 5) of every region in the message, each once."""
    asked: dict[tuple[int, int], Listing] = {}
    for region in message.regions:
        theirs = _listing(region)
        if store.in_window(region.epoch) and theirs.label >= ROOT_LABEL:
            asked.setdefault((region.epoch, theirs.label), theirs)
    regions: list[Region] = []
    for (epoch, _), theirs in asked.items():
        regions += (_region(epoch, ours) for ours in answer(store.trie(epoch), theirs, LEAVES_MAX))
    missing = (
        publication
        for (epoch, _), theirs in asked.items()
        for publication in store.at(epoch, lacking(store.trie(epoch), theirs))
    )
    return regions, missing


def _region(epoch: int, ours: Listing) -> Region:
    inner = [(_label_bytes(label), hash) for label, hash in ours.inner]
    leaves = [key.to_bytes(KEY_BITS // 8, "big") for key in ours.leaves]
    return Region(epoch, _label_bytes(ours.label), inner, leaves)


def _listing(region: Region) -> Listing:
    inner = [(int.from_bytes(label, "big"), hash) for label, hash in region.inner]
    leaves = [int.from_bytes(key, "big") for key in region.leaves]
    return Listing(int.from_bytes(region.label, "big"), inner, leaves)


def _label_bytes(label: int) -> bytes:
    return label.to_bytes((label.bit_length() + 7) // 8, "big")
