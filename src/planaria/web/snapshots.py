"""Pictures of a simulation, one for the start and one for the end of each interval.

They travel in the trace. Rows tell what was said; states, which only a simulator sees all at once,
tell who stood where and who was out of place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import MsgspecError, Struct, json, structs

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.web.pictures.mobile import EDGE
from planaria.web.pictures.overlays import picture_of
from planaria.web.pictures.picture import Pair, Place, Region

BYTES_MAX = 16 << 20  # of all pictures of a run; then rows alone have to do
START = -1  # the number of the picture before the first interval

Words = dict[NodeId, str]
Lines = list[tuple[NodeId, NodeId, str]]


class Snapshot(Struct, omit_defaults=True):
    """The network at the end of interval `at`; `wrong` are nodes out of place, `broken` invariants.

    What is None is as in the picture before, and of figures only those that changed are there.
    """

    at: int
    lines: Lines | None = None
    places: dict[NodeId, Place] | None = None
    ends: Lines | None = None
    marks: Words | None = None
    roles: Words | None = None
    regions: list[Region] | None = None
    figures: dict[NodeId, dict[str, str]] = {}
    wrong: Words = {}
    broken: list[str] = []
    wide: bool = False


class Shown(Struct, frozen=True):
    """All that a picture shows."""

    lines: Lines
    places: dict[NodeId, Place]
    ends: Lines
    marks: Words
    roles: Words
    regions: list[Region]
    figures: dict[NodeId, dict[str, str]]
    wrong: Words
    broken: list[str]
    wide: bool


class Album:
    """Keeps pictures; of each what the one before did not show."""

    def __init__(self) -> None:
        self._pages: list[bytes] = []
        self._bytes = 0
        self._kept: dict[str, Any] = {}  # what the last picture showed
        self._figures: dict[NodeId, dict[str, str]] = {}

    def add(
        self,
        at: int,
        states: Mapping[NodeId, State],
        found: Sequence[Violation],
        worded: Callable[[str], str] = str,
        where: Mapping[NodeId, tuple[float, float]] | None = None,
    ) -> None:
        """The network at the end of interval `at`; `worded` gives nodes in a text their names.

        `where` is where they are, x and y from 0 to 1, if there is a map.
        """
        places = {id: (_scaled(x), _scaled(y)) for id, (x, y) in (where or {}).items()}
        before = self._kept.get("places")
        named = {it: worded(str(it)) for it in states}
        picture = picture_of(
            sorted(states),
            states,
            lambda it: named.get(it, str(it)),
            places=places,
            before=before,
        )
        wrong = {it.node: f"{it.invariant}: {it.detail}" for it in found if it.node is not None}
        shown = Shown(
            lines=_between(picture.places, picture.lines),
            places=picture.places,
            ends=_between(picture.places, picture.ends),
            marks=picture.marks,
            roles=picture.roles,
            regions=picture.regions,
            figures=picture.figures,
            wrong={id: worded(words) for id, words in wrong.items()},
            broken=sorted({it.invariant for it in found}),
            wide=picture.wide,
        )
        self.keep(at, shown)

    def keep(self, at: int, shown: Shown) -> None:
        """Keep what the network showed at the end of interval `at`."""
        if self._bytes > BYTES_MAX:
            return
        lasting = {name: getattr(shown, name) for name in SHOWN}
        page = Snapshot(
            at,
            **{name: it for name, it in lasting.items() if it != self._kept.get(name)},
            figures={id: it for id, it in shown.figures.items() if self._figures.get(id) != it},
            wrong=shown.wrong,
            broken=shown.broken,
            wide=shown.wide,
        )
        self._kept, self._figures = lasting, shown.figures
        self._pages.append(json.encode(page))
        self._bytes += len(self._pages[-1])

    def text(self) -> str:
        """All of it, as a trace keeps it."""
        return f"[{b','.join(self._pages).decode()}]"


def _scaled(share: float) -> float:
    return round((2 * share - 1) * EDGE, 4)


def _between(places: Mapping[NodeId, Place], labels: Mapping[Pair, str]) -> Lines:
    """What is said of two nodes that there are."""
    return [(a, b, it) for (a, b), it in sorted(labels.items()) if a in places and b in places]


def developed(album: str) -> dict[int, Snapshot]:
    """The pictures by interval, each with all that it shows but figures. Raises UsageError."""
    found: dict[int, Snapshot] = {}
    kept: dict[str, Any] = {}
    try:
        all = json.decode(album, type=list[Snapshot])
    except MsgspecError as error:
        raise UsageError(f"the pictures in this trace cannot be read: {error}") from None
    for taken in all:
        fields: Mapping[str, Any] = structs.asdict(taken)
        kept |= {name: fields[name] for name in SHOWN if fields[name] is not None}
        found[taken.at] = structs.replace(taken, **kept)
    return found


SHOWN = ("lines", "places", "ends", "marks", "roles", "regions")
