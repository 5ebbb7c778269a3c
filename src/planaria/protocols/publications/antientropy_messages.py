"""What two subscribers of a topic say to each other to end up with the same publications."""

from typing import Annotated

from msgspec import Meta, Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.publication import (
    RANK_BITS,
    Count,
    Publication,
    Time,
    Unsigned,
)
from planaria.protocols.publications.sketch import CELL_BYTES, CELLS_MAX, TUG_OF_WAR_BYTES

IDS_MAX = 1 << 16  # in one request: 320 KiB
REGIONS_MAX = 1024  # regions in one message: 400 KiB at most, with 16 ranks each
INNER_MAX = 16  # four levels below the root, elsewhere two
LEAVES_MAX = 16  # a subtree this small is listed key by key
PUBLICATIONS_MAX = 1 << 16  # more do not fit a frame, even when empty

RANK_BYTES = RANK_BITS // 8
LabelBytes = Annotated[bytes, Meta(min_length=1, max_length=RANK_BYTES + 1)]
RankBytes = Annotated[bytes, Meta(min_length=RANK_BYTES, max_length=RANK_BYTES)]
# A request names a publication by 32 bits: at worst one that was not asked for comes along.
Ids = Annotated[list[Annotated[int, Meta(ge=0, lt=2**32)]], Meta(max_length=IDS_MAX)]
Publications = Annotated[list[Publication], Meta(max_length=PUBLICATIONS_MAX)]
PackedCells = Annotated[bytes, Meta(max_length=CELL_BYTES * CELLS_MAX)]


class Digest(Struct, frozen=True, array_like=True, gc=False):
    """M1, on every periodic message: all that two subscribers in agreement need to say.

    `clock` is the sender's raw clock, `digest` is over all publications from the second `lo` on.
    """

    clock: Time
    lo: Time
    digest: Unsigned


class AntiEntropyMessage(Message, frozen=True, array_like=True, gc=False):
    """A message of one exchange about one topic. The sender's id may be false."""

    topic: str
    sender: NodeId
    exchange: Count


class Inventory(Struct, frozen=True, array_like=True, gc=False):
    """What the sender held when it made its sketch: how much, and from which rank on.

    `floor` is the rank below which the sender takes nothing, or empty.
    """

    lo: Time
    digest: Unsigned
    count: Count
    floor: Annotated[bytes, Meta(max_length=RANK_BYTES)]


class Estimate(AntiEntropyMessage, frozen=True, tag="publications.estimate"):
    """M2: the tug of war to tell how far apart we are, and cells enough for one or two ids."""

    state: Inventory
    tug_of_war: Annotated[bytes, Meta(min_length=TUG_OF_WAR_BYTES, max_length=TUG_OF_WAR_BYTES)]
    cells: PackedCells


class Sketch(AntiEntropyMessage, frozen=True, tag="publications.sketch"):
    """M3: the cells from `start` on, as many as the estimated difference needs."""

    state: Inventory
    start: Count
    cells: PackedCells


class More(AntiEntropyMessage, frozen=True, tag="publications.more"):
    """The cells did not decode: send `size` more of the same sequence, from `start` on."""

    start: Count
    size: Count


class Difference(AntiEntropyMessage, frozen=True, tag="publications.difference"):
    """M3 or M4: the sketch decoded; here is what you lack, and these ids I want of you."""

    lo: Time
    publications: Publications
    want: Ids


class Push(AntiEntropyMessage, frozen=True, tag="publications.push"):
    """PUBLISH (paper, Alg. 5): what you lack or asked for, and the ids that I do not know."""

    publications: Publications
    unknown: Ids


class Region(Struct, frozen=True, array_like=True, gc=False):
    """All that the sender shows under `label`: exactly these subtrees and ranks."""

    label: LabelBytes
    inner: Annotated[list[tuple[LabelBytes, Unsigned]], Meta(max_length=INNER_MAX)]
    leaves: Annotated[list[RankBytes], Meta(max_length=LEAVES_MAX)]


class Root(AntiEntropyMessage, frozen=True, tag="publications.root"):
    """The descent begins: the root hash of all that the sender shows from the second `lo` on."""

    lo: Time
    root: Unsigned


class Compare(AntiEntropyMessage, frozen=True, tag="publications.compare"):
    """CHECKANDPUBLISH (paper, Alg. 5) for many regions at once, from `lo` on (erratum T6)."""

    lo: Time
    regions: Annotated[list[Region], Meta(max_length=REGIONS_MAX)]
    publications: Publications


class Done(AntiEntropyMessage, frozen=True, tag="publications.done"):
    """Nothing (more) to say in this exchange, or no time for it now."""


MESSAGES = defined_in(globals())
