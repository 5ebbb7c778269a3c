"""Write the tables of docs/recovery.md from what hunts said.

    planaria hunt ring --seeds 100000 --json > ring.json
    planaria hunt ring --seeds 5000 --n 9:64 --json > ring-large.json
    python docs/recovery_page.py ring.json ring-large.json gossip.json ...

Hunts of more than eight nodes have tables of their own; without any of them those tables stay as
they are. Only what stands between the markers changes, so that every figure on the page is one that
was run.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from planaria.simulator.links import SCHEDULERS

PAGE = Path(__file__).with_name("recovery.md")
SMALL_MAX = 8  # nodes; hunts of more have tables of their own


def table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(map(_text, line))} |\n" for line in lines)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def is_large(hunt: dict[str, Any]) -> bool:
    """Did it try more nodes than the first tables tell of?"""
    return int(hunt["n"].rpartition(":")[2]) > SMALL_MAX


def runs(hunts: Sequence[dict[str, Any]]) -> str:
    """How many starts of each overlay there were, and by which code.

    `of bound` is how much of its bound the slowest start took.
    """
    rows = []
    for it in hunts:
        failed = sum(row["failed"] for row in it["recovery"])
        slowest = max((row["of_bound"] or 0.0 for row in it["recovery"]), default=0.0)
        rows.append([it["asked"], it["n"], it["starts"], failed, slowest, it["code"]])
    return table(["overlay", "n", "starts", "failed", "of bound", "code"], rows)


def conditions(hunts: Sequence[dict[str, Any]]) -> str:
    """The recovery of each overlay by delays, notice of failed sends, and publications."""
    names = ["delay", "silent_failures", "publish", "starts", "failed", "p50", "p99", "max"]
    shown = ["overlay", "delay", "silent failures", "publications", *names[3:]]
    rows = [
        [hunt["asked"], *(row[name] for name in names)]
        for hunt in hunts
        for row in hunt["conditions"]
    ]
    return table(shown, rows)


def schedulers(hunts: Sequence[dict[str, Any]]) -> str:
    """Median, 99th percentile and maximum under each scheduler."""
    rows = []
    for hunt in hunts:
        by = {row["scheduler"]: row for row in hunt["schedulers"]}
        told = [
            " / ".join(_text(by.get(it, {}).get(key)) for key in ("p50", "p99", "max"))
            for it in SCHEDULERS
        ]
        rows.append([hunt["asked"], *told])
    return table(["overlay", *SCHEDULERS], rows)


def classes(hunts: Sequence[dict[str, Any]]) -> str:
    """The recovery of each overlay by first state and class of faults."""
    names = ["start", "nemesis", "starts", "failed", "void", "p50", "p99", "max"]
    parts = []
    for hunt in hunts:
        rows = [[row[name] for name in names] for row in hunt["recovery"]]
        size = f", n = {hunt['n']}" if is_large(hunt) else ""
        parts.append(f"## {hunt['asked']}{size}\n\n{table(names, rows)}")
    return "\n".join(parts)


def parts_of(hunts: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What stands between which markers; hunts of few and of many nodes have their own."""
    parts = {}
    for prefix, some in (
        ("", [hunt for hunt in hunts if not is_large(hunt)]),
        ("large ", [hunt for hunt in hunts if is_large(hunt)]),
    ):
        if some:
            for tell in (runs, conditions, schedulers, classes):
                parts[f"{prefix}{tell.__name__}"] = tell(some)
    return parts


def written(page: str, parts: dict[str, str]) -> str:
    """The page with the text between each pair of markers replaced."""
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{PAGE}: no {begin.strip()} ... {end}")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def main(files: Sequence[str]) -> None:
    """Read hunts, write the page."""
    if not files:
        raise SystemExit(__doc__)
    hunts = [json.loads(Path(file).read_text()) for file in files]
    PAGE.write_text(written(PAGE.read_text(), parts_of(hunts)))


if __name__ == "__main__":
    main(sys.argv[1:])
