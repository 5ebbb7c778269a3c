"""Run chaos on processes again and again, for `docs/recovery_page.py --processes`.

    python docs/recovery_runs.py DIR --minutes 60
    python docs/recovery_page.py --processes DIR

One network at a time: each overlay in turn with the next seed, until the minutes are over. Each run
leaves its report, what it complained of, its exit status and code, and the memory of its processes
in `DIR/ring-7.json`, `.err`, `.info` and `.rss`; if it broke a promise, the files of its network
too. What is there already is not run again.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

OVERLAYS = ("ring", "gossip", "content", "mobile")
LOOK_SECONDS = 5  # between two looks at memory


def processes_below(parent: int) -> dict[int, int]:
    """The processes that descend from this one, with what they hold in memory, in KiB."""
    parents, sizes = dict[int, int](), dict[int, int]()
    for entry in Path("/proc").glob("[0-9]*/status"):
        try:
            status = dict(line.split(":", 1) for line in entry.read_text().splitlines())
        except OSError:
            continue  # it ended while we looked
        pid = int(entry.parent.name)
        parents[pid], sizes[pid] = int(status["PPid"]), int(status.get("VmRSS", "0 kB").split()[0])
    found: set[int] = {parent}
    while more := {pid for pid, above in parents.items() if above in found} - found:
        found |= more
    return {pid: sizes[pid] for pid in sorted(found - {parent})}


def run(directory: Path, overlay: str, seed: int, faults: int, code: str) -> None:
    """One run, with all that it leaves."""
    stem, began = directory / f"{overlay}-{seed}", time.monotonic()
    net, first = directory / f"{overlay}-{seed}.net", dict[int, float]()
    asked = ["--up", "4", "--overlay", overlay, "--faults", str(faults), "--seed", str(seed)]
    command = [sys.executable, "-m", "planaria", "chaos", *asked, "--json", "--dir", str(net)]
    with (
        stem.with_suffix(".json").open("w") as out,
        stem.with_suffix(".err").open("w") as errors,
        stem.with_suffix(".rss").open("w") as memory,
        subprocess.Popen(command, stdout=out, stderr=errors) as chaos,  # noqa: S603
    ):
        while chaos.poll() is None:
            now = time.monotonic()
            for pid, size in processes_below(chaos.pid).items():
                age = now - first.setdefault(pid, now)
                memory.write(f"{now - began:.0f} {pid} {age:.0f} {size}\n")
            time.sleep(LOOK_SECONDS)
    about = {"exit": chaos.returncode, "code": code, "seconds": round(time.monotonic() - began)}
    stem.with_suffix(".info").write_text(json.dumps(about))
    if not chaos.returncode:
        shutil.rmtree(net, ignore_errors=True)


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--first", type=int, default=1, help="seed")
    parser.add_argument("--overlays", nargs="+", default=OVERLAYS)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    show = ["git", "rev-parse", "--short", "HEAD"]
    head = subprocess.run(show, capture_output=True, text=True, check=True)  # noqa: S603
    code = head.stdout.strip()
    until = time.monotonic() + 60 * options.minutes
    for turn in count():
        later, which = divmod(turn, len(options.overlays))
        seed, overlay = options.first + later, options.overlays[which]
        if time.monotonic() > until:
            return
        if not (options.directory / f"{overlay}-{seed}.info").exists():
            run(options.directory, overlay, seed, options.faults, code)


if __name__ == "__main__":
    main()
