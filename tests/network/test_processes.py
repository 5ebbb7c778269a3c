"""Real processes: nodes and networks that are killed, restored from old copies, and stopped."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client_lab import Yesteryear
from planaria.network import identity
from planaria.network.config import Config
from planaria.network.context import read_context
from planaria.network.identity import found_cluster, issue
from planaria.network.live import LiveNode
from planaria.network.memberships import FILE as MEMBERSHIPS
from planaria.network.store.directory import CLEAN, Directory
from process_lab import (
    PATIENCE,
    Processes,
    Running,
    alive,
    environment,
    publications,
    status,
    until,
)

TOPIC = "news"
FAST = ("--interval", 0.1, "--http", "127.0.0.1:0")


class Network:
    """Nodes over TLS, all of them members of one topic from the start."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.home = processes, processes.home
        found_cluster(self.home / "keys", "demo")
        self.ready: dict[str, dict[str, Any]] = {}

    def start(self, name: str, *options: object) -> Running:
        """Start a node for the first time."""
        issue(self.home / "keys", name, ("node", "supervise"))
        directory = self.home / name
        directory.mkdir()
        (directory / MEMBERSHIPS).write_text(json.dumps({TOPIC: "named"}) + "\n")
        return self.resume(
            name, "--listen", "127.0.0.1:0", "--keys", self.home / "keys" / name, *FAST, *options
        )

    def resume(self, name: str, *options: object) -> Running:
        """Start a node."""
        words = ("node", "--dir", self.home / name, *options)
        one = self.processes.run(*words, log=f"{name}.log")
        self.ready[name] = one.ready()
        return one

    def hold(self, count: int) -> bool:
        """Do all nodes hold so many?"""
        return all(publications(it["http"], TOPIC) == count for it in self.ready.values())

    def legitimate(self) -> bool:
        found = [status(it["http"]) for it in self.ready.values()]
        return all(it.get("legitimate") for it in found)


def as_a_peer(
    network: Network, work: Callable[[Callable[[int], None]], None], join: list[str]
) -> list[bytes]:
    """Be a node in this process; `work` gets a function that publishes. Returns what was read."""
    keys = issue(network.home / "keys", "test", ("node",))
    settings = Config(
        dir=network.home / "test", listen="127.0.0.1:0", keys=keys, join=tuple(join), interval=0.1
    )

    async def main() -> list[bytes]:
        live, said = LiveNode(settings), 0
        events = live.subscribe(TOPIC)
        loop = asyncio.get_running_loop()
        async with live:
            await events.ready()

            async def publish(count: int) -> None:
                nonlocal said
                for _ in range(count):
                    await live.publish(TOPIC, b"%d" % said)
                    said += 1

            def publish_from_thread(count: int) -> None:
                asyncio.run_coroutine_threadsafe(publish(count), loop).result(PATIENCE)

            await asyncio.to_thread(work, publish_from_thread)
        return [one.payload async for batch in events for one in batch]

    return asyncio.run(main())


def wiped(network: Network, door: str) -> Running:
    """The supervisor with an empty directory."""
    shutil.rmtree(network.home / "n1")
    keys, join = network.home / "keys" / "n1", network.ready["n2"]["listen"]
    words = ("--supervise", "--listen", door, "--keys", keys, "--join", join)
    return network.resume("n1", *words, *FAST)


def test_a_killed_node_comes_back_with_its_store_with_an_old_one_and_with_none(
    processes: Processes,
) -> None:
    network = Network(processes)
    first = network.start("n1", "--supervise")
    door = network.ready["n1"]["listen"]
    second, third = (network.start(name, "--join", door) for name in ("n2", "n3"))
    store, copy = network.home / "n3" / "store", network.home / "copy"

    def work(publish: Callable[[int], None]) -> None:
        nonlocal first, third
        publish(20)
        until(lambda: network.hold(20), "all hold 20")
        third.kill()
        shutil.copytree(store, copy)
        publish(20)
        third = network.resume("n3")
        until(lambda: network.hold(40), "n3 is back with its store")
        third.kill()
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        third = network.resume("n3")
        until(lambda: network.hold(40), "n3 is back with an old copy of its store")
        third.kill()
        shutil.rmtree(store)
        publish(20)
        third = network.resume("n3")
        until(lambda: network.hold(60), "n3 is back with no store")
        first.kill()  # the only supervisor, and all that it knew
        first = wiped(network, door)
        until(network.legitimate, "legitimate again")

    read = as_a_peer(network, work, [door])
    assert read == [b"%d" % number for number in range(60)]
    assert second.end() == 0
    assert third.end(signal.SIGINT) == 0
    assert first.end() == 0
    for name in ("n1", "n2", "n3"):
        assert "Traceback" not in (network.home / f"{name}.log").read_text()


def test_a_node_that_is_told_to_stop_is_missed_by_nobody(processes: Processes) -> None:
    network = Network(processes)
    network.start("n1", "--supervise")
    two = network.start("n2", "--join", network.ready["n1"]["listen"])
    http = network.ready["n1"]["http"]
    until(lambda: status(http)["topics"].get(TOPIC, {}).get("members") == 2)
    assert two.end() == 0
    its = status(http)["topics"][TOPIC]
    assert (its["members"], its["legitimate"]) == (1, True)
    assert "not let go in time" not in two.said()


def test_a_node_that_reaches_nobody_says_so_and_goes_on_trying(processes: Processes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    insecure = ("--insecure", "--interval", 0.1, "--listen")
    words = ("node", "--dir", processes.home / "one", "--join", nobody, *insecure, "127.0.0.1:0")
    one = processes.run(*words)
    until(lambda: one.said().count(f"cannot reach {nobody}") >= 2)
    assert all(" insecure: " in line for line in one.said().splitlines())
    there = processes.run("node", "--dir", processes.home / "two", *insecure, nobody, log="two.log")
    assert there.ready()["listen"] == nobody
    assert one.ready()["event"] == "ready"
    assert one.end() == there.end() == 0


def refused(*words: object, home: Path) -> str:
    """The one line that a command says before it exits with 2."""
    done = subprocess.run(
        [sys.executable, "-m", "planaria", *map(str, words)],
        cwd=home, env=environment(home), timeout=PATIENCE, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done
    lines = [it for it in done.stderr.splitlines() if "INFO" not in it and "WARNING" not in it]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_what_a_node_cannot_do_is_one_line_and_exit_2(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(processes)
    one = network.start("n1", "--supervise")
    door = network.ready["n1"]["listen"]
    keys, other = network.home / "keys", tmp_path / "other"
    found_cluster(other, "another")
    issue(other, "stranger")
    issue(keys, "member")
    with monkeypatch.context() as patch:
        patch.setattr(identity, "datetime", Yesteryear)
        issue(keys, "expired", days=1)
    (tmp_path / "wrong.toml").write_text("lisen = 7\n")

    def said(*words: object) -> str:
        return refused("node", "--listen", "127.0.0.1:0", *words, home=tmp_path)

    busy = said("--dir", network.home / "n1")
    assert f"in use by process {one.pid}; stop that, or name another --dir" in busy
    member = ("--keys", keys / "member")
    taken = refused("node", "--dir", "x1", *member, "--listen", door, home=tmp_path)
    assert f"cannot listen on {door}: Address already in use; name another" in taken
    assert "did you mean listen?" in said("--dir", "x2", *member, "--config", "wrong.toml")
    stranger = ("--keys", other / "stranger", "--join", door)
    assert "certificate" in said("--dir", "x3", *stranger)
    assert "is good until" in said("--dir", "x4", "--keys", keys / "expired", "--join", door)
    assert "--insecure" in said("--dir", "x5")


def test_up_runs_a_network_and_leaves_nothing_behind(processes: Processes) -> None:
    home = processes.home / "net"
    words = ("up", "--nodes", 3, "--supervisors", 1, "--port", 0, "--json", "--dir", home)
    up = processes.run(*words)
    ready = up.ready()
    nodes = ready["nodes"]
    processes.groups += [it["pid"] for it in nodes]
    assert [it["name"] for it in nodes] == ["n1", "n2", "n3"]
    assert [it["supervisor"] for it in nodes] == [True, False, False]
    context = read_context(Path(ready["context"]))
    assert context.servers == tuple(it["listen"] for it in nodes)
    assert context.credentials == home / "keys" / "client"
    running = processes.home / "state" / "planaria" / "running"
    assert len(list(running.iterdir())) == 1
    until(lambda: all(status(it["http"]).get("supervisors") for it in nodes))
    victim = nodes[2]
    subprocess.run(["kill", "-9", str(victim["pid"])], check=True)
    until(lambda: f"planaria node --dir {home}/nodes/n3" in up.said(), "up says who ended")
    brought = processes.run("node", "--dir", victim["dir"], log="n3.log").ready()
    assert brought["listen"] == victim["listen"]
    assert up.end(signal.SIGINT) == 0
    assert not [it for it in nodes if alive(it["pid"])]
    assert list(running.iterdir()) == []


def test_up_continues_a_directory_and_its_nodes_end_with_it(processes: Processes) -> None:
    home = processes.home / "net"
    names = []
    for turn in range(2):
        more = ("--nodes", 2, "--supervisors", 2, "--port", 0) if turn == 0 else ()
        up = processes.run("up", "--json", "--dir", home, *more)
        nodes = up.ready()["nodes"]
        processes.groups += [it["pid"] for it in nodes]
        names.append([status(it["http"])["id"] for it in nodes])
        if turn == 0:
            assert f"in use by process {up.pid}" in refused("up", "--dir", home, home=home)
            up.kill()  # nobody tells its nodes to stop
        else:
            assert up.end() == 0
        until(lambda: not [it for it in nodes if alive(it["pid"])], "no node is left")  # noqa: B023
    assert names[0] == names[1]


def test_up_on_a_port_in_use_is_one_line_and_leaves_no_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("up", "--nodes", 2, "--dir", "net", "--port", port, home=tmp_path)
    assert f"n1 did not start: cannot listen on 127.0.0.1:{port}" in said
    lock = Directory(tmp_path / "net" / "nodes" / "n1")  # raises if a process has it
    lock.release()
    assert lock.left == CLEAN
