"""Write the tables of docs/recovery.md from docs/hunts, and from runs of chaos on processes.

    python docs/recovery_page.py

    planaria chaos --up 4 --overlay ring --faults 50 --seed 7 --json > runs/ring-7.json
    python docs/recovery_page.py --processes runs

`docs/recovery_hunts.py` puts into docs/hunts what hunts said. Hunts of more than eight nodes have
tables of their own. Beside the report of a run of chaos there may be `ring-7.info`, an object with
its `exit` status and the `code`, and `ring-7.rss`: lines of second, process, age in seconds, KiB.
Only what stands between the markers changes, and what docs/proofs/index.md quotes, so that every
figure on a page is one that was run.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from planaria.simulator.links import SCHEDULERS

PAGE = Path(__file__).with_name("recovery.md")
HUNTS = Path(__file__).with_name("hunts")
BOUNDS = Path(__file__).parent / "proofs" / "index.md"
SMALL_MAX = 8  # nodes; hunts of more have tables of their own
SLOWEST = "priority"  # the scheduler whose times stand beside the bounds
FINDINGS_SHOWN = 20


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


def read_hunts(directory: Path) -> list[dict[str, Any]]:
    """The hunts that were run, by overlay and n."""
    return [json.loads(file.read_text()) for file in sorted(directory.glob("*.json"))]


def failed_of(hunt: dict[str, Any]) -> int:
    """How many starts broke a promise, or could not be run."""
    return sum(row["failed"] for row in hunt["recovery"])


def runs(hunts: Sequence[dict[str, Any]]) -> str:
    """How many starts of each overlay there were, from which seeds, how much of its bound the
    slowest took, and by which code; then what failed.
    """
    rows = []
    for it in hunts:
        seeds = ", ".join(part["seeds"] for part in it["instalments"])
        code = ", ".join(dict.fromkeys(part["code"] for part in it["instalments"]))
        rows.append(
            [it["asked"], it["n"], it["starts"], seeds, failed_of(it), it["of_bound"], code]
        )
    listed = table(["overlay", "n", "starts", "seeds", "failed", "of bound", "code"], rows)
    return f"{listed}\n{failures(hunts)}"


def failures(hunts: Sequence[dict[str, Any]]) -> str:
    """Every broken promise with the command that repeats it, the smaller one if there is one."""
    starts, failed = sum(it["starts"] for it in hunts), sum(map(failed_of, hunts))
    if not failed:
        return f"Of {starts:,} starts none failed.\n"
    lines = [f"Of {starts:,} starts {failed:,} failed:\n"]
    for hunt in hunts:
        for it in hunt["findings"][:FINDINGS_SHOWN]:
            shown = it["smaller"] or it["replay"]
            lines.append(f"- {hunt['asked']}, {it['checker']}: {it['detail']}: `{shown}`")
        if (more := len(hunt["findings"]) - FINDINGS_SHOWN) > 0:
            lines.append(f"- {hunt['asked']}: and {more:,} more")
        lines += [
            f"- {hunt['asked']}, not run: {it['error']}: `{it['replay']}`" for it in hunt["errors"]
        ]
    return "\n".join(lines) + "\n"


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
        cells = [
            " / ".join(_text(by.get(it, {}).get(key)) for key in ("p50", "p99", "max"))
            for it in SCHEDULERS
        ]
        rows.append([hunt["asked"], *cells])
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


def with_measured(page: str, hunts: Sequence[dict[str, Any]]) -> str:
    """The table of bounds with what the slowest scheduler took, and its share of the bound.

    Of several hunts of few nodes in one overlay the largest speaks.
    """
    lines = page.splitlines(keepends=True)
    for hunt in sorted((it for it in hunts if not is_large(it)), key=lambda it: it["starts"]):
        took = next((it for it in hunt["schedulers"] if it["scheduler"] == SLOWEST), None)
        at = [n for n, line in enumerate(lines) if line.startswith(f"| {hunt['overlay']} | ")]
        if took is None or took["max"] is None or not at:
            continue
        cells = lines[at[0]].split(" | ")
        cells[3] = " / ".join(_text(took[key]) for key in ("p50", "p99", "max"))
        cells[4] = f"{took['max'] / int(cells[2]):.2f}"
        lines[at[0]] = " | ".join(cells)
    return "".join(lines)


Runs = dict[str, list[dict[str, Any]]]  # by overlay

COUNTED = ("published", "acknowledged", "delivered", "late", "lost", "twice", "destroyed")
SETTLED_SECONDS = 60  # after which a process has loaded and met all that it will


def read_runs(directory: Path) -> Runs:
    """The reports of a directory by overlay, each with its `exit`, `code` and `growth`."""
    runs: Runs = defaultdict(list)
    for file in sorted(directory.glob("*-*.json")):
        info, text = file.with_suffix(".info"), file.read_text()
        if not text and not info.exists():
            continue  # it runs still
        known = json.loads(info.read_text()) if info.exists() else {}
        about = {"exit": known.get("exit", 0), "code": known.get("code", "")}
        report = json.loads(text) if text else {**dict.fromkeys(COUNTED, 0), "faults": []}
        rss = file.with_suffix(".rss")
        growth = growths(rss.read_text()) if rss.exists() else []
        runs[file.stem.rpartition("-")[0]].append({**report, **about, "growth": growth})
    return dict(runs)


def growths(text: str) -> list[float]:
    """MiB a minute by which each process that lived for long grew once it had settled."""
    by: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in text.splitlines():
        _, process, age, size = line.split()
        if int(age) >= SETTLED_SECONDS:
            by[process].append((int(age), int(size)))
    long = [it for it in by.values() if it[-1][0] - it[0][0] >= SETTLED_SECONDS]
    return [(it[-1][1] - it[0][1]) / 1024 / ((it[-1][0] - it[0][0]) / 60) for it in long]


def times(faults: Sequence[dict[str, Any]]) -> list[object]:
    """Median, 99th percentile and maximum of the seconds until legitimate."""
    found = sorted(it["seconds"] for it in faults if it["seconds"] is not None)
    if not found:
        return [None] * 3
    cuts = quantiles(found, n=100, method="inclusive") if len(found) > 1 else found * 99
    return [f"{it:.1f}" for it in (cuts[49], cuts[98], found[-1])]


def processes(runs: Runs) -> str:
    """What became of everything in each overlay."""
    names, rows = COUNTED, []
    for overlay, some in runs.items():
        faults = [fault for run in some for fault in run["faults"]]
        healed = sum(it["seconds"] is not None for it in faults)
        broken = sum(run["exit"] != 0 for run in some)
        sums = [sum(run[name] for run in some) for name in names]
        growth = [one for run in some for one in run["growth"]]
        grown = f"{median(growth):+.2f}" if growth else None
        codes = ", ".join(dict.fromkeys(run["code"] for run in some))
        rows.append(
            [overlay, len(some), len(faults), healed, broken, *sums, *times(faults), grown, codes]
        )
    last = ["p50 s", "p99 s", "max s", "MiB a minute", "code"]
    return table(["overlay", "runs", "faults", "healed", "runs not kept", *names, *last], rows)


def process_faults(runs: Runs) -> str:
    """The seconds until legitimate after each kind of fault."""
    by: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for overlay, some in runs.items():
        for fault in (fault for run in some for fault in run["faults"]):
            words = fault["fault"].split()
            by[words[2] if words[2] != "for" else words[4]][overlay].append(fault)
    rows = []
    for kind in sorted(by):
        counts = [len(by[kind][it]) for it in runs]
        cells = [" / ".join(_text(one) for one in times(by[kind][it])) for it in runs]
        rows.append([f"`{kind}`", " / ".join(map(str, counts)), *cells])
    return table(["fault", "times", *runs], rows)


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


def main(words: Sequence[str]) -> None:
    """Read hunts, or runs on processes; write the page."""
    if not words:
        hunts = read_hunts(HUNTS)
        PAGE.write_text(written(PAGE.read_text(), parts_of(hunts)))
        BOUNDS.write_text(with_measured(BOUNDS.read_text(), hunts))
    elif len(words) == 2 and words[0] == "--processes":
        runs = read_runs(Path(words[1]))
        parts = {"processes": processes(runs), "process faults": process_faults(runs)}
        PAGE.write_text(written(PAGE.read_text(), parts))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
