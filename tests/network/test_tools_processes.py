"""The tools against real processes: what they say when all is well, and when nodes are killed."""

import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from planaria.network.local import CONTEXT
from planaria.simulator.trace import Trace
from process_lab import PATIENCE, Processes, UpNetwork, environment, status, until


def tool(home: Path, context: str, *words: str) -> tuple[int, str]:
    """Run a tool to its end: its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "planaria", *words, "--context", context],
        env=environment(home), capture_output=True, text=True, timeout=2 * PATIENCE, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


async def join(network: UpNetwork, topic: str) -> None:
    """Make every node a member, as a node is when it has a client that reads."""
    async with AsyncExitStack() as stack:
        for name, node in network.nodes.items():
            # A client whose node is slow to answer, just after its start, reads at another.
            while not status(node["http"])["topics"].get(topic, {}).get("member"):
                client = await stack.enter_async_context(network.connect(name))
                events = await stack.enter_async_context(client.subscribe(topic))
                await events.ready()
        await client.publish(topic, b"hello")


def page(http: str, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{http}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_tools_see_a_network_break_and_heal(processes: Processes) -> None:
    home, network = processes.home, UpNetwork(processes, 4, 2)
    nodes, context = [*network.nodes.values()], str(network.home / CONTEXT)
    asyncio.run(asyncio.wait_for(join(network, "news"), PATIENCE))
    all_is_well(home, context, nodes)
    are_traced(home, context, nodes)

    network.kill("n4")  # a member: the ring closes without it
    code, out = tool(home, context, "doctor", "--wait", "60", "--json")
    found = json.loads(out)
    assert (code, found["nodes"]) == (0, 3)
    assert {(it["severity"], it["invariant"]) for it in found["findings"]} == {
        ("warning", "unreachable")
    }
    for name in ("n1", "n2"):  # all supervisors
        network.kill(name)
    code, out = tool(home, context, "doctor")
    assert code == 1
    assert "supervisor of news" in out
    assert "start a supervisor (`planaria node --supervise`)" in out
    until(lambda: page(nodes[2]["http"], "/stablez")[0] == 503)
    network.start("n1")
    assert tool(home, context, "doctor", "--wait", "90")[0] == 0


def all_is_well(home: Path, context: str, nodes: list[dict[str, Any]]) -> None:
    code, out = tool(home, context, "doctor", "--wait", "60", "--json")
    found = json.loads(out)
    assert (code, found["nodes"], found["topics"], found["findings"]) == (0, 4, 1, [])
    code, out = tool(home, context, "topic", "set", "news", "--count", "100", "--json")
    assert (code, json.loads(out)["supervisors"]) == (0, [2, 2])
    until(lambda: {status(it["http"])["topics"]["news"]["charter"] for it in nodes} == {1})
    _, out = tool(home, context, "ls", "--json")
    row = json.loads(out)
    assert (row["topic"], row["members"], row["publications"]) == ("news", 4, 1)
    until(lambda: page(nodes[3]["http"], "/stablez")[0] == 200)
    assert "planaria_legitimate 1\n" in page(nodes[3]["http"], "/metrics")[1]


def are_traced(home: Path, context: str, nodes: list[dict[str, Any]]) -> None:
    file = home / "live.parquet"
    assert tool(home, context, "trace", "live", str(file), "--seconds", "2")[0] == 0
    rows = list(Trace(file).rows())
    assert {row.node for row in rows} == {status(it["http"])["handle"] for it in nodes} | {-1}
    assert {row.message_type for row in rows if row.kind == "verdict"} == {"legitimate"}
    sent = {row.message_id for row in rows if row.kind == "send"}
    assert any(row.message_id in sent for row in rows if row.kind == "deliver")
