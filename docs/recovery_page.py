"""Write the tables of docs/recovery.md from what hunts said.

    planaria hunt ring --seeds 100000 --json > ring.json
    python docs/recovery_page.py ring.json gossip.json ...

Only what stands between the markers changes, so that every figure on the page is one that was run.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from planaria.simulator.links import SCHEDULERS

PAGE = Path(__file__).with_name("recovery.md")


def table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(map(_text, line))} |\n" for line in lines)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def runs(hunts: Sequence[dict[str, Any]]) -> str:
    """How many starts of each overlay there were, and by which code."""
    failed = [sum(row["failed"] for row in it["recovery"]) for it in hunts]
    rows = [
        [it["overlay"], it["starts"], count, it["code"]]
        for it, count in zip(hunts, failed, strict=True)
    ]
    return table(["overlay", "starts", "failed", "code"], rows)


def schedulers(hunts: Sequence[dict[str, Any]]) -> str:
    """Median, 99th percentile and maximum under each scheduler."""
    rows = []
    for hunt in hunts:
        by = {row["scheduler"]: row for row in hunt["schedulers"]}
        told = [
            " / ".join(_text(by.get(it, {}).get(key)) for key in ("p50", "p99", "max"))
            for it in SCHEDULERS
        ]
        rows.append([hunt["overlay"], *told])
    return table(["overlay", *SCHEDULERS], rows)


def classes(hunts: Sequence[dict[str, Any]]) -> str:
    """The recovery of each overlay by first state and class of faults."""
    names = ["start", "nemesis", "starts", "failed", "void", "p50", "p99", "max"]
    parts = []
    for hunt in hunts:
        rows = [[row[name] for name in names] for row in hunt["recovery"]]
        parts.append(f"## {hunt['overlay']}\n\n{table(names, rows)}")
    return "\n".join(parts)


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
    parts = {"runs": runs(hunts), "schedulers": schedulers(hunts), "classes": classes(hunts)}
    PAGE.write_text(written(PAGE.read_text(), parts))


if __name__ == "__main__":
    main(sys.argv[1:])
