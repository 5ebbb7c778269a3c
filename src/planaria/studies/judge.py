"""The one judge: claims of the papers and Planaria's own checks, each with a verdict.

A claim compares two facts: what was measured with what the paper says. The verdict is `yes`, `no`
or `undecided`: the interval of what was measured contains the bound, or too few runs were made. A
`no` belongs to one of four classes (`MEANINGS`). Claims that fail for one reason name it as their
`cause` and are counted once, and so is a claim that was tried at several sizes.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert

Verdict = Literal["yes", "no", "undecided"]
Relation = Literal["=", "<", "<=", ">", ">="]
Meaning = Literal["paper", "constant", "slip", "ours"]
MEANINGS: Mapping[str, str] = {
    "paper": "the paper is wrong",
    "constant": "a constant is off",
    "slip": "a slip of the pen",
    "ours": "ours differs from the paper",
}
MARGIN_MAX = 0.05  # of an interval, in parts of the number that it is to confirm
TINY = 1e-9  # figures that are equal may differ by rounding
CONSTANT, SLACK = "constant", 1.5  # 'constant': at most half as much again as at the smallest size


class Fact(Struct, frozen=True):
    """A figure with its 95% interval; no value if nothing was measured, infinite if it never ends.

    Without an interval there were too few runs to tell.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 0


Sized = Mapping[int | None, Fact]  # by number of nodes; None if there is only one
Facts = Mapping[str, Sized]
UNKNOWN = Fact()


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """What a paper says: how the fact `measured` stands to `paper`, a number or another fact.

    `literal` names what the text alone gives, `within` is slack in parts of the paper's number.
    """

    text: str
    relation: Relation
    paper: float | str
    measured: str
    literal: str = ""
    within: float = 0.0
    meaning: Meaning = "paper"  # of a `no`
    cause: str = ""  # what it shares with claims that stand or fall with it


class Promise(Struct, frozen=True, forbid_unknown_fields=True):
    """What Planaria promises: how the fact `measured` stands to `bound`."""

    text: str
    relation: Relation
    bound: float | str
    measured: str


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """All claims and checks of a study."""

    claim: tuple[Claim, ...] = ()
    check: tuple[Promise, ...] = ()

    def names(self) -> list[str]:
        """The facts that they speak of, each once."""
        found: list[float | str] = []
        for it in self.claim:
            found += [it.measured, it.literal, it.paper]
        for promise in self.check:
            found += [promise.measured, promise.bound]
        words = [it for it in found if isinstance(it, str) and it not in ("", CONSTANT)]
        return list(dict.fromkeys(words))


def load(path: Path, words: Mapping[str, Sequence[str]] | None = None) -> Asked:
    """Read `claims.toml`; an entry with `{word}` in it stands for one for each of its values."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    filled = {
        kind: [each for entry in entries for each in _filled(entry, words or {})]
        for kind, entries in document.items()
    }
    return convert(filled, Asked)


def _filled(entry: dict[str, Any], words: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    for word, values in words.items():
        if any(f"{{{word}}}" in text for text in entry.values() if isinstance(text, str)):
            for value in values:
                put = {
                    key: text.replace(f"{{{word}}}", value) if isinstance(text, str) else text
                    for key, text in entry.items()
                }
                yield from _filled(put, words)
            return
    yield entry


def exactly(value: float | None, runs: int = 1) -> Fact:
    """A figure without error."""
    return Fact(value, value, value, runs)


def only(**facts: Fact) -> dict[str, Sized]:
    """Facts of which there is one each, whatever the size."""
    return {name: {None: fact} for name, fact in facts.items()}


def judge(measured: Fact, relation: Relation, bound: Fact, within: float = 0.0) -> Verdict:
    """Does the measured figure stand in this relation to the bound?"""
    if measured.value is None or bound.value is None:
        return "undecided"
    ends = (measured.low, measured.high, bound.low, bound.high)
    if any(end is None for end in ends):
        return "undecided"
    low, high, least, most = (float(end or 0.0) for end in ends)
    tiny = TINY * max(1.0, abs(bound.value)) if isfinite(bound.value) else 0.0
    slack = (within * abs(bound.value) if within else 0.0) + tiny
    if relation == "=":
        return _equal((low, high), (least - slack, most + slack), bound.value, exact=not within)
    if relation in (">", ">="):  # mirrored
        low, high, least, most = -high, -low, -most, -least
    if relation in ("<", ">") and not within:
        return "yes" if high < least else "no" if low >= most else "undecided"
    return "yes" if high <= least + slack else "no" if low > most + slack else "undecided"


def _equal(
    found: tuple[float, float], wanted: tuple[float, float], number: float, *, exact: bool
) -> Verdict:
    """An exact number must lie in an interval that is narrow; a rough one must contain it."""
    if found[1] < wanted[0] or found[0] > wanted[1]:
        return "no"
    if not exact:
        return "yes" if wanted[0] <= found[0] and found[1] <= wanted[1] else "undecided"
    widest = MARGIN_MAX * abs(number) if number else MARGIN_MAX
    margin = max(found[1] - number, number - found[0])
    return "yes" if margin <= max(widest, wanted[1] - number) else "undecided"


def claims(asked: Sequence[Claim], facts: Facts) -> list[dict[str, Any]]:
    """The table of that name: a row for each claim and size."""
    rows = []
    for it in asked:
        for n, found, paper in _compared(it.measured, it.paper, facts):
            holds = judge(found, it.relation, paper, it.within)
            rows.append(
                {
                    "claim": it.text,
                    "n": n,
                    "paper": _finite(paper.value),
                    "measured": _finite(found.value),
                    "holds": holds,
                    **_interval(found),
                    "relation": it.relation,
                    "meaning": it.meaning if holds == "no" else None,
                    "cause": it.cause or None,
                }
            )
    return rows


def literal(asked: Sequence[Claim], facts: Facts) -> list[dict[str, Any]]:
    """The table of that name: the claims that have a literal reading, by the paper's text."""
    rows = []
    for it in asked:
        for n, found, paper in _compared(it.literal, it.paper, facts) if it.literal else ():
            holds = judge(found, it.relation, paper, it.within)
            row = {"claim": it.text, "n": n, "literal": _finite(found.value), "holds": holds}
            rows.append(row | _interval(found))
    return rows


def checks(asked: Sequence[Promise], facts: Facts) -> list[dict[str, Any]]:
    """The table of that name."""
    rows = []
    for it in asked:
        for _, found, bound in _compared(it.measured, it.bound, facts):
            holds = judge(found, it.relation, bound)
            row = {"check": it.text, "measured": _finite(found.value)}
            row |= {"bound": _finite(bound.value), "holds": holds, "relation": it.relation}
            rows.append(row)
    return rows


def _compared(
    measured: str, paper: float | str, facts: Facts
) -> Iterator[tuple[int | None, Fact, Fact]]:
    """For each size what was measured, and what the paper says of it."""
    found = facts[measured] or {None: UNKNOWN}
    for n, fact in found.items():
        if not isinstance(paper, str):
            yield n, fact, exactly(float(paper))
        elif paper == CONSTANT:
            yield n, fact, _constant(found)
        else:
            stated = facts[paper]
            yield n, fact, stated.get(n, stated.get(None, UNKNOWN))


def _constant(found: Sized) -> Fact:
    """What a constant may have become since the smallest size."""
    smallest = found[min(n or 0 for n in found)] if None not in found else UNKNOWN
    return exactly(None if smallest.value is None else SLACK * smallest.value, smallest.runs)


def _interval(fact: Fact) -> dict[str, Any]:
    return {"low": _finite(fact.low), "high": _finite(fact.high), "runs": fact.runs}


def _finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(value)


class Counts(Struct, frozen=True):
    """How many claims there are, each cause counted once, and how they were judged."""

    claims: int
    yes: int
    no: int
    undecided: int
    meanings: dict[str, int]  # of those that do not hold


def counted(rows: Sequence[Mapping[str, Any]]) -> Counts:
    """Count the rows of `claims`: once for each cause or claim, whatever the sizes."""
    verdicts = [together(same) for same in causes(rows).values()]
    noes = [
        next(row["meaning"] for row in same if row["holds"] == "no")
        for same in causes(rows).values()
        if together(same) == "no"
    ]
    counts = {verdict: verdicts.count(verdict) for verdict in ("yes", "no", "undecided")}
    meanings = {name: noes.count(name) for name in MEANINGS if name in noes}
    return Counts(len(verdicts), counts["yes"], counts["no"], counts["undecided"], meanings)


def causes(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows that get one verdict, by their cause or else by their claim."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["cause"] or row["claim"], []).append(row)
    return found


def together(rows: Sequence[Mapping[str, Any]], column: str = "holds") -> Verdict:
    """One verdict of several: the worst."""
    verdicts = [row[column] for row in rows]
    return "no" if "no" in verdicts else "undecided" if "undecided" in verdicts else "yes"
