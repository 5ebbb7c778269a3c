"""Add what hunts said to docs/hunts: one file for each overlay and n, as if hunted in one go.

    planaria hunt ring --seeds 0:19999 --json > ring-0.json
    planaria hunt ring --seeds 20000:39999 --json > ring-20000.json
    python docs/recovery_hunts.py ring-0.json ring-20000.json
    python docs/recovery_page.py

Instalments may come on different days. Seeds that are there already are refused; what is missing
between them is said. An instalment by other code is taken only if the trials are the same: a hunt,
by that code, of the first seeds of an instalment that is there (its `head`) has to give the same
rows. It is one of the files given, then or earlier, and is not counted itself. An empty file is of
a hunt that runs still.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

HUNTS = Path(__file__).with_name("hunts")
TABLES = {
    "recovery": ("start", "nemesis"),
    "schedulers": ("scheduler",),
    "conditions": ("delay", "silent_failures", "publish"),
}
COUNTS = ("starts", "failed", "void")

Hunt = dict[str, Any]
Row = dict[str, Any]


class Refused(Exception):
    """What cannot be added, and why."""


def first_and_last(seeds: str) -> tuple[int, int]:
    """The ends of a range of seeds."""
    first, _, last = seeds.partition(":")
    return int(first), int(last)


def begins(instalment: dict[str, Any]) -> int:
    """The first seed of an instalment or a report."""
    return first_and_last(instalment["seeds"])[0]


def is_proof(report: Hunt, hunt: Hunt) -> bool:
    """Is it a hunt by other code of exactly the seeds that tell whether trials are the same?"""
    heads = [it["head"]["seeds"] for it in hunt["instalments"]]
    return report["code"] not in hunt["codes"] and report["seeds"] in heads


def prove(report: Hunt, hunt: Hunt) -> Hunt:
    """The hunt, to which instalments by the code of this report may be added from now on."""
    if report["head"] not in [it["head"] for it in hunt["instalments"]]:
        raise Refused(f"seeds {report['seeds']} give other rows by {report['code']}")
    return {**hunt, "codes": [*dict.fromkeys([*hunt["codes"], report["code"]])]}


def first_of(report: Hunt) -> Hunt:
    """A hunt of nothing yet, by the code and with the options of this report."""
    same = {name: report[name] for name in ("overlay", "asked", "n", "grid")}
    none: Hunt = {"codes": [report["code"]], "instalments": [], "starts": 0, "of_bound": None}
    return {**same, **none, "findings": [], "errors": [], **{name: [] for name in TABLES}}


def added(hunt: Hunt, report: Hunt) -> Hunt:
    """The hunt with one more instalment. Raises `Refused` if it does not belong there."""
    if report["grid"] != hunt["grid"]:
        raise Refused("it was asked for otherwise than what is there: its grid differs")
    ours = {name: report[name] for name in ("seeds", "code", "head")}
    first, last = first_and_last(report["seeds"])
    for there in (it["seeds"] for it in hunt["instalments"]):
        low, high = first_and_last(there)
        if first <= high and low <= last:
            raise Refused(f"seeds {report['seeds']} overlap with {there}, which are there already")
    if report["code"] not in hunt["codes"]:
        proof = hunt["instalments"][0]["head"]["seeds"]
        other = f"{report['code']} is not {hunt['codes'][-1]}"
        raise Refused(f"{other}: give a hunt of seeds {proof} by it as well, for comparison")
    rows = {
        name: merged([*hunt[name], *report[name]], by, sum_of_rows) for name, by in TABLES.items()
    }
    found = sorted([*hunt["findings"], *report["findings"]], key=lambda it: (it["n"], it["seed"]))
    errors = merged([*hunt["errors"], *report["errors"]], ("error",), sum_of_errors)
    return {
        **hunt,
        "instalments": joined([*hunt["instalments"], ours]),
        "starts": hunt["starts"] + report["starts"],
        "of_bound": largest([hunt, *report["recovery"]], "of_bound"),
        "findings": found,
        "errors": sorted(errors, key=lambda it: -it["cells"]),
        **rows,
    }


def joined(instalments: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Instalments in order; those by the same code that follow one another are one."""
    whole: list[dict[str, Any]] = []
    for it in sorted(instalments, key=begins):
        first, last = first_and_last(it["seeds"])
        if whole and whole[-1]["code"] == it["code"]:
            low, high = first_and_last(whole[-1]["seeds"])
            if high + 1 == first:
                whole[-1] = {**whole[-1], "seeds": f"{low}:{last}"}
                continue
        whole.append(it)
    return whole


def merged(rows: Iterable[Row], by: Sequence[str], total: Callable[[list[Row]], Row]) -> list[Row]:
    """One row for each group, in the order in which a hunt has them."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [dict(zip(by, key, strict=True)) | total(groups[key]) for key in sorted(groups)]


def largest(rows: Iterable[Row], name: str) -> Any:
    """The largest of a figure that some rows do not have."""
    return max((row[name] for row in rows if row[name] is not None), default=None)


def sum_of_rows(rows: list[Row]) -> Row:
    """The figures of a group of starts, from those of its parts."""
    times = Counter[int]()
    for row in rows:
        times.update({int(took): count for took, count in (row["times"] or {}).items()})
    took = sorted(times.elements())
    cuts = quantiles(took, n=100, method="inclusive") if len(took) > 1 else took * 99
    return {
        **{name: sum(row[name] for row in rows) for name in COUNTS},
        "p50": cuts[49] if took else None,
        "p99": cuts[98] if took else None,
        "max": largest(rows, "max"),
        "times": {str(it): times[it] for it in sorted(times)},
    }


def sum_of_errors(rows: list[Row]) -> Row:
    """How many starts raised the same, with a command that repeats one of them."""
    return {"cells": sum(row["cells"] for row in rows), "replay": rows[0]["replay"]}


def gaps(hunt: Hunt) -> list[str]:
    """The seeds that are missing before or between instalments."""
    found, next_seed = [], 0
    for it in hunt["instalments"]:
        first, last = first_and_last(it["seeds"])
        if first > next_seed:
            found.append(f"{next_seed}:{first - 1}")
        next_seed = last + 1
    return found


def place_of(report: Hunt) -> Path:
    """The file of the hunt to which a report belongs."""
    return HUNTS / (re.sub(r"\W+", "-", f"{report['asked']} {report['n']}") + ".json")


def read(file: Path) -> Hunt:
    """A hunt that can be added to. Raises `Refused` if its times were not kept."""
    hunt: Hunt = json.loads(file.read_text())
    if "grid" not in hunt:
        raise Refused(f"docs/hunts/{file.name} has no times to add to: delete it to begin anew")
    return hunt


def text_of(hunt: Hunt) -> str:
    """The file of a hunt: each row has a line, so that a difference shows which changed."""
    lines = []
    for name, value in hunt.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        inner = ",\n  ".join(map(json.dumps, value)) if rows else ""
        lines.append(f'"{name}": ' + (f"[\n  {inner}\n]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def add(place: Path, reports: Sequence[Hunt]) -> Hunt:
    """All these reports in one hunt, with what is there already."""
    reports = sorted(reports, key=lambda it: (begins(it), -it["starts"]))
    hunt = read(place) if place.exists() else first_of(reports[0])
    others = [it for it in reports if it["code"] not in hunt["codes"]]
    for report in (it for it in reports if it not in others):
        hunt = added(hunt, report)
    proofs = [it for it in others if is_proof(it, hunt)]
    for report in proofs:
        hunt = prove(report, hunt)
    for report in (it for it in others if it not in proofs):
        hunt = added(hunt, report)
    return hunt


def main(files: Sequence[str]) -> None:
    """Read reports, write hunts: all of them, or none if one is refused."""
    if not files:
        raise SystemExit(__doc__)
    by_place: dict[Path, list[Hunt]] = {}
    for text in (Path(file).read_text() for file in files):
        if text:
            report = json.loads(text)
            by_place.setdefault(place_of(report), []).append(report)
    hunts = {}
    for place, reports in by_place.items():
        try:
            hunts[place] = add(place, reports)
        except Refused as refused:
            raise SystemExit(f"{reports[0]['asked']}, n = {reports[0]['n']}: {refused}") from None
    HUNTS.mkdir(exist_ok=True)
    for place, hunt in hunts.items():
        place.write_text(text_of(hunt))
        said = [f"{hunt['starts']:,} starts", *(f"seeds {gap} are missing" for gap in gaps(hunt))]
        sys.stdout.writelines(f"{place.name}: {line}\n" for line in said)


if __name__ == "__main__":
    main(sys.argv[1:])
