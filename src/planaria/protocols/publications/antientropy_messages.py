"""What two subscribers of a topic say to each other to end up with the same publications."""

from typing import Annotated

from msgspec import Meta, Struct

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.publications.sketch import CELL_BYTES, CELLS_MAX, TUG_OF_WAR_BYTES
from planaria.records.record import PLACE_BITS, RECORD_KEY_BYTES, SIGNED_BYTES_MAX, TIME_MAX

IDS_MAX = 1 << 16  # in one request: 320 KiB
REGIONS_MAX = 1024  # regions in one message: 400 KiB at most, with 16 places each
INNER_MAX = 16  # four levels below the root, elsewhere two
LEAVES_MAX = 16  # a subtree this small is listed key by key
REFUSED_MAX = 64  # places in one message: whoever holds more false records pushes them again
RECORDS_MAX = 1 << 14  # more do not fit a frame, even when empty

PLACE_BYTES = PLACE_BITS // 8
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Unsigned = Annotated[int, Meta(ge=0)]  # 64 bits: the encoding itself ends there
Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]
LabelBytes = Annotated[bytes, Meta(min_length=1, max_length=PLACE_BYTES + 1)]
PlaceBytes = Annotated[bytes, Meta(min_length=PLACE_BYTES, max_length=PLACE_BYTES)]
# A request names a record by 32 bits: at worst one that was not asked for comes along.
Ids = Annotated[list[Annotated[int, Meta(ge=0, lt=2**32)]], Meta(max_length=IDS_MAX)]
RecordBytes = Annotated[bytes, Meta(max_length=SIGNED_BYTES_MAX)]  # one sealed record
RecordKey = Annotated[bytes, Meta(max_length=RECORD_KEY_BYTES)]
Records = Annotated[list[RecordBytes], Meta(max_length=RECORDS_MAX)]
PackedCells = Annotated[bytes, Meta(max_length=CELL_BYTES * CELLS_MAX)]


class Digest(Struct, frozen=True, array_like=True, gc=False):
    """M1, on every periodic message: all that two subscribers in agreement need to say.

    `clock` is the sender's raw clock, `digest` is over all records from the second `lo` on but
    those that may still be on their way at the second `cut`: both ends compare at that cut.
    """

    clock: Time
    lo: Time
    cut: Time
    digest: Unsigned


class AntiEntropyMessage(Message, frozen=True, array_like=True, gc=False):
    """A message of one exchange about one topic. The sender's id may be false."""

    topic: str
    sender: NodeId
    exchange: Count


class Inventory(Struct, frozen=True, array_like=True, gc=False):
    """What the sender held when it made its sketch: how much, and from which place on.

    `floor` is the place below which the sender takes nothing, or empty.
    """

    lo: Time
    cut: Time
    digest: Unsigned
    count: Count
    floor: Annotated[bytes, Meta(max_length=PLACE_BYTES)]


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
    cut: Time
    records: Records
    want: Ids


class Push(AntiEntropyMessage, frozen=True, tag="publications.push"):
    """PUBLISH (paper, Alg. 5): what you lack or asked for, and the ids that I do not know."""

    records: Records
    unknown: Ids


class Region(Struct, frozen=True, array_like=True, gc=False):
    """All that the sender shows under `label`: exactly these subtrees and places."""

    label: LabelBytes
    inner: Annotated[list[tuple[LabelBytes, Unsigned]], Meta(max_length=INNER_MAX)]
    leaves: Annotated[list[PlaceBytes], Meta(max_length=LEAVES_MAX)]


class Root(AntiEntropyMessage, frozen=True, tag="publications.root"):
    """The descent begins: the root hash of all that a digest from `lo` on at `cut` covers."""

    lo: Time
    cut: Time
    root: Unsigned


class Compare(AntiEntropyMessage, frozen=True, tag="publications.compare"):
    """CHECKANDPUBLISH (paper, Alg. 5) for many regions at once, from `lo` on (erratum T6)."""

    lo: Time
    cut: Time
    regions: Annotated[list[Region], Meta(max_length=REGIONS_MAX)]
    records: Records


class Done(AntiEntropyMessage, frozen=True, tag="publications.done"):
    """Nothing (more) to say in this exchange, or no time for it now."""


class Refused(AntiEntropyMessage, frozen=True, tag="publications.refused"):
    """Nobody entitled published these that you pushed: look at what you hold there."""

    places: Annotated[list[PlaceBytes], Meta(max_length=REFUSED_MAX)]


MESSAGES = defined_in(globals())
