"""Does anything grow in a network that is used for long? Real processes, TLS.

python benchmarks/soak.py [--minutes 2]
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from planaria.network.bench.soak import Soak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="planaria-soak-") as directory:
        soak = Soak(Path(directory), options.minutes, lambda line: print(line, file=sys.stderr))
        found = asyncio.run(soak.run())
    print(soak.said())
    for it in found:
        says = "GROWS" if it.grows else ""
        figures = f"{it.before:10.1f} {it.after:10.1f} {it.per_hour:+10.2f}/h"
        print(f"{it.node:4} {it.figure:12} {figures} {says}")


if __name__ == "__main__":
    main()
