"""How much an idle network costs, and how long nodes take to start: real processes, TLS.

    python benchmarks/scale.py [--nodes 4] [--topics 100] [--seconds 30] [--interval 0.5]

First the start of a node with 10^6 stored publications, then CPU, memory and traffic of an idle
network in which every node is a member of every topic, after it has become legitimate; then one of
its two supervisors is killed and comes back wiped, and the network heals.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from urllib.request import urlopen

from planaria.network.client.errors import Unreachable
from planaria.network.context import Context, read_context
from planaria.network.doctor import Finding, diagnose
from planaria.network.local import Child, LocalNetwork, Started
from planaria.network.memberships import FILE as MEMBERSHIPS
from planaria.network.store.database import Database
from planaria.network.survey import Surveyor
from planaria.records.record import Draft, seal

TICKS = os.sysconf("SC_CLK_TCK")
LEAVE_SECONDS = 60.0  # for a node that is told to stop
PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mebibytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / (1 << 20)


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:.3g} / {ordered[len(ordered) // 2]:.3g} / {ordered[-1]:.3g}"


async def legitimate(context: Context, nodes: int, seconds: float) -> bool:
    """Is it within so many seconds? Nodes that start may be too busy to answer for a while."""
    until, findings = time.monotonic() + seconds, list[Finding]()
    while time.monotonic() < until:
        async with Surveyor(context) as surveyor:
            with suppress(Unreachable):
                found = await diagnose(surveyor, until - time.monotonic())
                if found.legitimate and found.nodes == nodes:
                    return True
                findings = found.findings
        await asyncio.sleep(1)
    for one in findings[:5]:
        print("  ", one)
    return False


async def idle(nodes: int, topics: int, seconds: float, directory: Path, interval: float) -> None:
    """Start a network in which every node is a member of every topic; do nothing; then wipe."""
    lines = "".join(json.dumps({f"t/{at}": "named"}) + "\n" for at in range(topics))
    for number in range(1, nodes + 1):
        home = directory / "nodes" / f"n{number}"
        home.mkdir(parents=True)
        (home / MEMBERSHIPS).write_text(lines)
    network = LocalNetwork(directory, nodes, min(2, nodes), 0, interval=interval)
    began = time.monotonic()
    try:
        started = await network.start()
        print(
            f"{nodes} nodes with {topics} topics each serve after {time.monotonic() - began:.1f} s"
        )
        good = await settled(started, topics, 600)
        print(f"all joined and none in doubt: {good}, after {time.monotonic() - began:.1f} s")
        context = read_context(network.context)
        good = await legitimate(context, nodes, 600)
        print(f"legitimate: {good}, after {time.monotonic() - began:.1f} s", flush=True)
        await asyncio.sleep(60 * interval)  # for calm topics to slow down
        await measure(started, seconds, topics, interval)
        if nodes > 1:
            await wipe(network, network.children[1], started[0].listen)
            began = time.monotonic()
            good = await legitimate(context, nodes, 600)
            print(f"a supervisor wiped: {good}, after {time.monotonic() - began:.1f} s")
    finally:
        await network.stop()


async def wipe(network: LocalNetwork, child: Child, known: str) -> None:
    """Kill a supervisor, and start it with nothing but its key and somebody's address."""
    assert child.process is not None
    child.process.kill()
    await child.process.wait()
    shutil.rmtree(child.directory)
    keys = str(network.keys / child.name)
    words = ["--keys", keys, "--listen", "127.0.0.1:0", "--supervise", "--join", known]
    await child.start([*words, "--interval", str(network.interval)])


def metrics(one: Started) -> dict[str, float]:
    """What a node says of itself."""
    with urlopen(f"http://{one.http}/metrics", timeout=60) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines()]
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}


async def settled(started: list[Started], topics: int, seconds: float) -> bool:
    """Is every node in all topics and in no doubt, by its own word, within so many seconds?"""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = [metrics(one) for one in started]
        if all(
            it["planaria_topics"] >= topics and not it["planaria_doubtful_topics"] for it in found
        ):
            return True
        await asyncio.sleep(2)
    return False


def sent(one: Started) -> tuple[float, float]:
    """Messages and bytes that a node has sent to others."""
    found = metrics(one)
    return found["planaria_sent_messages_total"], found["planaria_sent_bytes_total"]


async def measure(started: list[Started], seconds: float, topics: int, interval: float) -> None:
    said = [sent(one) for one in started]
    before = {one.pid: cpu_seconds(one.pid) for one in started}
    await asyncio.sleep(seconds)
    shares = [100 * (cpu_seconds(pid) - used) / seconds for pid, used in before.items()]
    print(f"idle for {seconds} s: CPU % of a core per node, min / median / max: {spread(shares)}")
    memory = [resident_mebibytes(one.pid) for one in started]
    print(f"resident MiB per node, min / median / max: {spread(memory)}")
    share = interval / (topics * seconds)
    for at, what in enumerate(("messages", "bytes")):
        each = [(sent(one)[at] - was[at]) * share for one, was in zip(started, said, strict=True)]
        print(f"{what} per topic, node and interval, min / median / max: {spread(each)}")


def million(directory: Path) -> None:
    """Store 10^6 publications in records of 100, and start a node on them."""
    home = directory / "node"
    home.mkdir()
    (home / MEMBERSHIPS).write_text(json.dumps({"t": "named"}) + "\n")
    random, stream = Random(1), (7, bytes(12))
    with Database(home / "store") as database:
        store = database.topic("t")
        now = int(time.time()) - 100_000
        for at in range(0, 1_000_000, 100):
            drafts = [Draft(random.randbytes(128)) for _ in range(100)]
            store.append([seal(stream, at, drafts, time=now + at // 100)])
            if at % 100_000 == 0:
                while database.writer is not None and database.writer.pending_bytes > 1 << 20:
                    time.sleep(0.01)
    words = ["node", "--dir", str(home), "--insecure", "--supervise", "--listen", "127.0.0.1:0"]
    for attempt in range(3):
        began = time.monotonic()
        node = subprocess.Popen(
            [sys.executable, "-m", "planaria", *words], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert node.stdout is not None
            assert node.stdout.readline()
            took, memory = time.monotonic() - began, resident_mebibytes(node.pid)
            print(f"start {attempt}: serves after {took:.2f} s, {memory:.0f} MiB")
            if attempt != 1:  # the start after it finds a store that was not closed
                node.terminate()
                node.wait(LEAVE_SECONDS)
        finally:
            node.kill()
            node.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--interval", type=float, default=0.5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="planaria-scale-") as directory:
        million(Path(directory))
        home = Path(directory) / "network"
        asyncio.run(idle(options.nodes, options.topics, options.seconds, home, options.interval))


if __name__ == "__main__":
    main()
