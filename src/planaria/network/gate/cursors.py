"""How far a client's tails are: which topics they follow, which streams of these have grown."""

from collections.abc import Mapping

from planaria.network.client.conditions import Condition
from planaria.network.client.messages import Tail as Asked
from planaria.network.client.overlays import RING
from planaria.network.gate.pieces import vector_of
from planaria.network.gate.session import Session
from planaria.records.positions import Mark
from planaria.records.record import Stream
from planaria.records.store import Store


class Cursor:
    """How far one topic is read for one tail, and which of its streams have grown."""

    __slots__ = ("grown", "holes", "marks", "seen", "stable", "unsaid")

    def __init__(self, marks: dict[Stream, Mark]) -> None:
        self.marks = marks
        self.grown: dict[Stream, None] = {}  # the one that waited for longest first
        self.unsaid: dict[Stream, None] = {}  # passed, and the client was not told
        self.holes: dict[Stream, tuple[int, float, bool]] = {}  # number, since when, told?
        self.stable = True  # as the client was told last
        self.seen: object = None  # what the store was like when all was looked at


class Tail:
    """One request to follow a pattern."""

    __slots__ = (
        "behind", "compacted", "condition", "cursors", "floor", "grown", "held_back", "looked",
        "missed", "notices", "pattern", "request", "session", "tailing", "vectors", "wanted",
        "where", "whole",
    )  # fmt: skip
    overlay = RING

    def __init__(self, session: Session, asked: Asked, pattern: str) -> None:
        """Raises UsageError for a condition or positions that are none."""
        self.session, self.request, self.pattern = session, asked.request, pattern
        self.floor, self.notices, self.where = asked.floor, asked.notices, asked.where
        self.condition = None if asked.where is None else Condition(asked.where)
        self.compacted, self.whole, self.wanted = asked.compacted, asked.whole, asked.overlay
        self.vectors = {topic: vector_of(places) for topic, places in asked.vectors.items()}
        self.cursors: dict[str, Cursor] = {}
        self.grown: dict[str, None] = {}  # topics to read, the one that waited for longest first
        self.behind: dict[str, None] = {}  # topics with holes, or of which something is unsaid
        # Topics it may not read now, and was it told? None: nobody has said yet who may.
        self.held_back: dict[str, bool | None] = {}
        self.tailing = False  # was the client told that whatever is published now comes?
        self.missed = 0  # notices that the client did not take
        self.looked = 0.0  # when all streams were last looked at

    @property
    def even(self) -> bool:
        """Was the client sent all that there is, and that it may read? What is not judged waits."""
        return all(self.held_back.get(it) is not None for it in (*self.grown, *self.held_back))


def hole(stream: Stream, marks: Mapping[Stream, Mark], floor: int, store: Store) -> int | None:
    """The number at which a reader of a stream has to wait though others follow; None: at none."""
    lane = store.index.lanes.get(stream)
    if lane is None:
        return None
    number = marks[stream].next if stream in marks else lane.since(floor)
    return number if lane.covered.end > number else None
