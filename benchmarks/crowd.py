"""Many nodes on one machine: start, publish to all, kill some, heal, stop. Real processes, TLS.

    python benchmarks/crowd.py [--nodes 64] [--kill 8] [--seconds 20]

`planaria up` starts them, all are members of one topic. What is printed: until all serve, until
`doctor` finds nothing wrong, memory and descriptors of a process, CPU of an idle one, until a
publication is at all of them, until it is legitimate again after kill -9, and until all is gone.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from scale import cpu_seconds, spread

import planaria
from planaria.network.context import Context, read_context
from planaria.network.doctor import diagnose
from planaria.network.memberships import FILE as MEMBERSHIPS
from planaria.network.survey import Surveyor

TOPIC = "crowd"
PATIENCE = 900.0  # seconds for anything; how long it took is printed
EVENTS = 100


def proportional_mebibytes(pid: int) -> float:
    """Its memory, of what it shares with others its share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


async def until(what: str, holds: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Wait for it and say how long it took."""
    began = time.monotonic()
    while not await holds():
        if time.monotonic() - began > PATIENCE:
            raise SystemExit(f"{what}: not within {PATIENCE} s")
        await asyncio.sleep(0.2)
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


async def legitimate(context: Context, nodes: int) -> bool:
    async with Surveyor(context) as surveyor:
        found = await diagnose(surveyor, PATIENCE)
        return found.legitimate and found.nodes == nodes


async def held(context: Context, nodes: int, count: int) -> bool:
    """Are so many publications at so many nodes?"""
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        topics = [it.status.topics.get(TOPIC) for it in survey.nodes.values()]
        return sum(it is not None and it.publications >= count for it in topics) >= nodes


async def publish(context: Context, count: int) -> None:
    async with planaria.connect(context.servers, credentials=context.credentials) as client:
        for number in range(count):
            await client.publish(TOPIC, str(number).encode())


async def run(up: subprocess.Popen[bytes], options: argparse.Namespace, began: float) -> None:
    assert up.stdout is not None
    ready = json.loads(await asyncio.to_thread(up.stdout.readline))
    print(f"{options.nodes} nodes serve: {time.monotonic() - began:.1f} s", flush=True)
    context = read_context(Path(ready["context"]))
    pids = [int(it["pid"]) for it in ready["nodes"]]
    await until("legitimate", lambda: legitimate(context, options.nodes))
    await publish(context, EVENTS)
    await until("published, and held by all", lambda: held(context, options.nodes, EVENTS))
    await asyncio.sleep(options.calm)
    before = {pid: cpu_seconds(pid) for pid in pids}
    await asyncio.sleep(options.seconds)
    shares = [100 * (cpu_seconds(pid) - used) / options.seconds for pid, used in before.items()]
    print(f"idle, CPU % of a core per node, least / median / most: {spread(shares)}")
    print(f"MiB (PSS) per node: {spread([proportional_mebibytes(pid) for pid in pids])}")
    print(f"descriptors per node: {spread([float(descriptors(pid)) for pid in pids])}", flush=True)
    for pid in pids[-options.kill :]:
        os.kill(pid, signal.SIGKILL)
    left = options.nodes - options.kill
    await until(f"{options.kill} killed, legitimate", lambda: legitimate(context, left))
    await publish(context, EVENTS)
    await until("published, and held by all", lambda: held(context, left, 2 * EVENTS))
    began = time.monotonic()
    up.send_signal(signal.SIGINT)
    code = await asyncio.to_thread(up.wait)
    there = sum(Path(f"/proc/{pid}").exists() for pid in pids)
    print(f"stopped: {time.monotonic() - began:.1f} s, exit {code}, {there} processes left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--kill", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--calm", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="planaria-crowd-") as directory:
        for number in range(1, options.nodes + 1):
            home = Path(directory) / "nodes" / f"n{number}"
            home.mkdir(parents=True)
            (home / MEMBERSHIPS).write_text(json.dumps({TOPIC: "named"}) + "\n")
        words = ["up", "--nodes", str(options.nodes), "--port", "0", "--json", "--dir", directory]
        began = time.monotonic()
        up = subprocess.Popen([sys.executable, "-m", "planaria", *words], stdout=subprocess.PIPE)
        try:
            asyncio.run(run(up, options, began))
        finally:
            up.terminate()
            up.wait()


if __name__ == "__main__":
    main()
