"""Which numbers of a topic's streams there are here: what readers plan ranges by, in one scan."""

from bisect import bisect_right
from itertools import islice

from planaria.network.client.messages import Extent
from planaria.records.index import Index
from planaria.records.lanes import Lane
from planaria.records.positions import SKIPPED_MAX
from planaria.records.record import Stream

EXTENTS_PAGE = 2048  # streams in one answer: about 100 kB, and some milliseconds of this node's
HOLES_MAX = 4096  # in one answer; where there are more, a stream ends before its first


def extents_of(index: Index, time: int, after: Stream | None) -> tuple[list[Extent], bool]:
    """The next streams of a topic, by name, and whether others follow."""
    start = 0 if after is None else bisect_right(index.names, after)
    names = index.names[start : start + EXTENTS_PAGE]
    found, room = [], HOLES_MAX
    for stream in names:
        found.append(_extent(index.lanes[stream], time, min(room, SKIPPED_MAX)))
        room -= len(found[-1].holes)
    return found, start + len(names) < len(index.names)


def _extent(lane: Lane, time: int, holes_max: int) -> Extent:
    end = lane.end
    first = next((lo for lo, _ in lane.covered), end)
    holes: list[tuple[int, int]] = []
    if lane.settled(0) < end:
        holes = list(islice(lane.missing(0, end)[0], holes_max + 1))
        if len(holes) > holes_max:
            end = holes.pop()[0]
    low = min([first, *(lo for lo, _ in holes[:1])])
    return Extent(*lane.stream, low, end, min(lane.since(time), end), tuple(holes))
