"""From the runs of the study of daMulticast to its facts, by name.

Groups go from T0 at the top down; a link is called by its ends, as `T2->T1`. `paper` is the
paper's algorithm as it reads, `planaria` is ours.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import log, nan
from pathlib import Path

from planaria.lab.gossip.baselines import APPROACHES
from planaria.protocols.gossip.overlay import parse_sizes
from planaria.studies.damulticast import checking
from planaria.studies.damulticast.formulas import DIALS
from planaria.studies.damulticast.runs import (
    DIALED_EVENTS,
    SEARCHERS,
    SINGLE,
    groups_of,
)
from planaria.studies.damulticast.summed import KINDS
from planaria.studies.facts import (
    Found,
    Moments,
    Summary,
    exact,
    fraction,
    mean,
    most,
    ratio,
    scaled,
    share,
    total,
)
from planaria.studies.judge import UNKNOWN, Asked, Fact, Facts, exactly, load, only

HERE = Path(__file__).parent
READINGS = ("paper", "planaria")
HALF = 0.5
TARGET = 0.99  # of everybody being reached, for which dials are chosen
OURS, BROADCAST, INTERESTED, SUBSCRIBERS, HIERARCHICAL = APPROACHES
SHORT = {  # the approaches as claims call them
    OURS: "daMulticast",
    BROADCAST: "broadcast",
    INTERESTED: "multicast of interested",
    SUBSCRIBERS: "multicast",
    HIERARCHICAL: "hierarchical",
}


def asked(found: Found) -> Asked:
    """The claims and checks, with the names of the groups in them."""
    sizes = sizes_of(found)
    groups = groups_of(sizes)
    words = {
        "group": groups[::-1],
        "below": groups[:0:-1],
        "link": links_of(groups),
        "bottom": groups[-1:],
        "above": groups[-2:-1],
    }
    return load(HERE / "claims.toml", words)


def sizes_of(found: Found) -> str:
    """The sizes of the groups of the chain, as written in cells."""
    return str(found["events"].groups[0].at["sizes"])


def links_of(groups: list[str]) -> list[str]:
    """The links of a chain, the lowest first."""
    return [f"{lower}->{upper}" for upper, lower in reversed(list(pairwise(groups)))]


def facts(found: Found) -> Facts:
    """All that claims and checks speak of."""
    sizes = sizes_of(found)
    groups = groups_of(sizes)
    known: dict[str, Fact] = {}
    for part in (
        _events(found["events"], groups),
        _letters(found["literal"]),
        _nodes(found["nodes"], groups),
        _approaches(found["baselines"], sizes),
        _rest(found),
        _formulas(found["formulas"]),
        _scaling(found["scaling"]),
        _figures(found["events"], groups),
    ):
        known |= dict(part)
    known |= dict(checking.facts(found, known, groups))
    return only(**known)


def _events(runs: Summary, groups: list[str]) -> Iterator[tuple[str, Fact]]:
    """Of each group and of all together, for each reading, kind and share of failures."""
    for at, part in runs.by("reading", "failures", "failed"):
        where = f"{at['reading']} {at['failures']} {at['failed']}"
        for name, moments in part.groups[0].measures.items():
            yield f"{where} {name}", KINDS[name.split()[1]](moments)
    for reading in READINGS:
        half = runs.where(reading=reading, failures="stillborn", failed=HALF)
        for link in links_of(groups):
            lower, _, upper = link.partition("->")
            yield f"{reading} half sent {link}", mean(half[f"{lower} up_sent"])
            yield f"{reading} half got {link}", among(half[f"{upper} got"], half[f"{lower} got"])


def _letters(runs: Summary) -> Iterator[tuple[str, Fact]]:
    """Figures 5 and 7 to the letter."""
    for at, part in runs.by("topic"):
        for name, moments in part.groups[0].measures.items():
            yield f"letter {at['topic']} {name}", KINDS[name.split()[1]](moments)


def _nodes(runs: Summary, groups: list[str]) -> Iterator[tuple[str, Fact]]:
    """Events over real nodes."""
    for at, part in runs.by("event_group", "failures", "failed"):
        where = f"nodes on {at['event_group']} {at['failures']} {at['failed']}"
        for name, moments in part.groups[0].measures.items():
            yield f"{where} {name}", NODE_KINDS.get(name.split()[1], mean)(moments)
    for place, group in enumerate(groups):
        yield f"most tables {group}", exactly(1.0 + (place > 0))


NODE_KINDS = {"each": exact, "table": most, "joined": most, "tables": most, "parasites": total}


def _approaches(runs: Summary, sizes: str) -> Iterator[tuple[str, Fact]]:
    """The alternatives of section VI-E, and both readings of daMulticast."""
    by = ("sizes", "algorithm", "reading", "event_group", "loss")
    for at, part in runs.by(*by):
        name = SHORT[at["algorithm"]]
        name = f"{at['reading']} {name}" if at["algorithm"] == OURS else name
        where = f"alone {name}" if at["sizes"] == SINGLE != sizes else f"{name} {at['event_group']}"
        where += " lossless" if at["loss"] == 0 else ""
        yield f"{where} sent", mean(part["sent"])
        yield f"{where} memory", most(part["memory"])
        yield f"{where} everybody", share(part["everybody"])
        yield f"{where} reach", fraction(part["of_interested"])


def _rest(found: Found) -> Iterator[tuple[str, Fact]]:
    """Dials, searches and supertopics."""
    for at, part in found["dials"].by("target"):
        yield f"dials {at['target']} everybody", counted(part["everybody"], DIALED_EVENTS)
    for at, part in found["links"].by("reading", "start"):
        for name in ("right", "stopped"):
            searches = counted(part[name], SEARCHERS)
            yield f"links {at['reading']} {at['start']} {name}", searches
    for at, part in found["inheritance"].by("supertopics"):
        yield f"inheritance {at['supertopics']} lowest", fraction(part["lowest"])


def counted(found: Moments, each: int) -> Fact:
    """A share, of runs that count `each` things."""
    return share(Moments(found.runs * each, 0, found.mean)) if found.runs else UNKNOWN


def among(some: Moments, those: Moments) -> Fact:
    """The share that `some` are of `those` runs, of which they are a part."""
    known = round(those.total)
    return share(Moments(known, 0, some.total / known)) if known else UNKNOWN


def _formulas(runs: Summary) -> Iterator[tuple[str, Fact]]:
    """What is worked out has no error."""
    for at, part in runs.by("formula"):
        for reading in ("printed", "corrected"):
            yield f"{reading} {at['formula']}", exact(part[reading])


def _scaling(runs: Summary) -> Iterator[tuple[str, Fact]]:
    """Messages over S ln S, and over the bound of section VI-B."""
    groups = 3
    slopes = {
        at["size"]: mean(part["sent"].over(at["size"] * log(at["size"])))
        for at, part in runs.by("size")
    }
    bound = groups * (1 + DIALS.c + DIALS.z)
    largest = max(slopes.values(), key=lambda it: it.value or 0.0, default=UNKNOWN)
    yield "scaling share of the bound", scaled(largest, 1 / bound)
    large = {size: slope for size, slope in slopes.items() if size >= 10}
    growth = ratio(large[max(large)], large[min(large)]) if large else UNKNOWN
    yield "scaling growth", growth


def _figures(runs: Summary, groups: list[str]) -> Iterator[tuple[str, Fact]]:
    """What the text says of Figures 8, 10 and 11, of either reading."""
    sizes = parse_sizes(str(runs.groups[0].at["sizes"])) if runs.groups else ()
    for reading in READINGS:
        ours = runs.where(reading=reading)
        still, observed = (
            ours.where(failures=it, failed=lambda share: share < 1)
            for it in ("stillborn", "observer")
        )
        for group, size in zip(groups, sizes, strict=True):
            sent = [ours[f"{group} sent"].most / (size * DIALS.fanout(size))]
            yield f"{reading} most sent {group}", exactly(max(sent))
            better = [it.where(failed=HALF)[f"{group} of_all"] for it in (observed, still)]
            yield f"{reading} gain {group}", apart(*better)
        by_share = {at["failed"]: part for at, part in still.by("failed")}
        bottom = [part[f"{groups[-1]} of_all"] for part in by_share.values()]
        yield f"{reading} rise", farthest(list(pairwise(bottom)))
        pairs = [
            (part[f"{lower} of_all"], part[f"{upper} of_all"])
            for part in by_share.values()
            for upper, lower in pairwise(groups)
        ]
        yield f"{reading} excess", farthest(pairs)


def apart(one: Moments, other: Moments) -> Fact:
    """By how much the first mean is larger; errors add up."""
    ends = mean(one), mean(other)
    if any(it.value is None or it.high is None for it in ends):
        return UNKNOWN
    margins = [(it.high or 0.0) - (it.value or 0.0) for it in ends]
    value = (ends[0].value or 0.0) - (ends[1].value or 0.0)
    margin = float(sum(it * it for it in margins) ** 0.5)
    return Fact(value, value - margin, value + margin, min(it.runs for it in ends))


def farthest(pairs: list[tuple[Moments, Moments]]) -> Fact:
    """Of all pairs the difference, second less first, that is farthest above its own error."""
    found = [apart(second, first) for first, second in pairs]
    known = [it for it in found if it.low is not None]
    return max(known, key=lambda it: it.low if it.low is not None else nan, default=UNKNOWN)
