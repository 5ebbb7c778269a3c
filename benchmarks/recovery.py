"""How long the skip ring takes to heal, and what that costs the supervisor.

    python benchmarks/recovery.py                             # a few minutes
    python benchmarks/recovery.py --sizes 4096,16384 --seeds 1
    python benchmarks/recovery.py --join 100000

Intervals are counted the honest way: until the last interval end at which something was wrong, in
a variable or in flight. Arbitrary states are arbitrary in the overlay; histories stay empty.
"""

import argparse
import resource
import time
from collections.abc import Sequence
from math import log2
from statistics import mean

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trial import Spec, Trial
from planaria.studies.skipring.recovery import STARTS, Recovery, recover

SIZES = "16,64,256,1024"
SEEDS = 3


def heal(start: str, n: int, seed: int) -> Recovery:
    """A recovery that must come to its end."""
    run = recover(start, n, seed)
    if not run.healed:
        raise SystemExit(f"{start} n={n} seed={seed}: not legitimate in time")
    return run


def table(sizes: Sequence[int], seeds: int) -> None:
    """One row for each start and size."""
    print("| start | n | intervals | per log2 n | in | out | peak in | peak out | messages |")
    print("|---|---|---|---|---|---|---|---|---|")
    for start in STARTS:
        for n in sizes:
            runs = [heal(start, n, seed) for seed in range(seeds)]
            spans = sorted(run.intervals for run in runs)
            print(
                f"| {start} | {n} | {spans[0]}-{spans[-1]} | {mean(spans) / log2(n):.1f} "
                f"| {mean(run.requests for run in runs):.1f} "
                f"| {mean(run.configurations for run in runs):.1f} "
                f"| {max(run.peak_in for run in runs):.1f} "
                f"| {max(run.peak_out for run in runs):.1f} "
                f"| {mean(run.messages for run in runs):.0f} |",
                flush=True,
            )
    print("\nin, out: messages to and from the supervisor per member, whole recovery.")
    print("peaks: of one interval, in units of the rate max(64, n / log2 n).")


def join(n: int) -> None:
    """Everybody joins at once."""
    began = time.process_time()
    trial = Trial(RingOverlay(), Spec(n, 1, "fresh", intervals=200, closure=0))
    outcome = trial.run()
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(
        f"join n={n}: legitimate={outcome.legitimate} intervals={outcome.intervals} "
        f"({outcome.intervals / log2(n):.1f} log2 n) messages={outcome.messages} "
        f"CPU={seconds:.0f} s peak={peak:.2f} GiB"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help="numbers of members")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each start and size")
    parser.add_argument("--join", type=int, metavar="N", help="only: N subscribers join at once")
    arguments = parser.parse_args()
    if arguments.join:
        join(arguments.join)
    else:
        table([int(size) for size in arguments.sizes.split(",")], arguments.seeds)


if __name__ == "__main__":
    main()
