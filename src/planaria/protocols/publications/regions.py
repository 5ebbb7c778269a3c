"""The descent over a store: which regions to send, which records to push."""

from collections.abc import Iterator

from planaria.protocols.publications.antientropy_messages import (
    LEAVES_MAX,
    PLACE_BYTES,
    Compare,
    Region,
    Root,
)
from planaria.protocols.publications.descent import (
    ROOT_LEVELS,
    Listing,
    answer,
    lacking,
    listing,
    short_hash,
)
from planaria.protocols.publications.holdings import Holdings
from planaria.protocols.publications.trie import ROOT_LABEL
from planaria.records.record import Place

Answer = tuple[list[Region], Iterator[Place]]  # our regions, and where stands what the peer lacks


def answer_root(holdings: Holdings, message: Root, lo: int) -> Answer:
    """CHECKTRIE (paper, Alg. 5): both sides compare what they show from `lo` on at one cut."""
    trie = holdings.trie(lo, message.cut)
    if lo == message.lo and short_hash(trie.root_hash) == message.root:
        return [], iter(())
    return [_region(listing(trie, ROOT_LABEL, LEAVES_MAX, ROOT_LEVELS))], iter(())


def answer_regions(holdings: Holdings, message: Compare, lo: int) -> Answer:
    """CHECKANDPUBLISH (paper, Alg. 5) of every region in the message, each once."""
    trie = holdings.trie(lo, message.cut)
    asked: dict[int, Listing] = {}
    for region in message.regions:
        theirs = _listing(region)
        if theirs.label >= ROOT_LABEL:
            asked.setdefault(theirs.label, theirs)
    regions = [
        _region(ours) for theirs in asked.values() for ours in answer(trie, theirs, LEAVES_MAX)
    ]
    missing = (place for theirs in asked.values() for place in lacking(trie, theirs))
    return regions, missing


def _region(ours: Listing) -> Region:
    inner = [(_label_bytes(label), hash) for label, hash in ours.inner]
    leaves = [place.to_bytes(PLACE_BYTES, "big") for place in ours.leaves]
    return Region(_label_bytes(ours.label), inner, leaves)


def _listing(region: Region) -> Listing:
    inner = [(int.from_bytes(label, "big"), hash) for label, hash in region.inner]
    leaves = [int.from_bytes(place, "big") for place in region.leaves]
    return Listing(int.from_bytes(region.label, "big"), inner, leaves)


def _label_bytes(label: int) -> bytes:
    return label.to_bytes((label.bit_length() + 7) // 8, "big")
