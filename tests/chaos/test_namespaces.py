"""Three hosts in network namespaces, with addresses of their own; the kernel breaks their links."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planaria.network.identity import found_cluster, issue
from process_lab import PATIENCE, ROOT, Processes, Running, environment, until

HUB = "hub"
HOSTS = ("n1", "n2", "n3")
TOPIC = "hosts"
LONG = "x" * 1000
# What there is of these in a kernel: late and lost packets, or a rate and a short queue.
SLOWED = (
    "netem delay 150ms 50ms loss 5%",
    "tbf rate 200kbit burst 4kb latency 300ms",
)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """Namespaces on one bridge, in a namespace too: the machine's own network is left alone."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.home = processes, processes.home
        self.mark = f"planaria-{os.getpid()}"
        self.nodes: dict[str, Running] = {}
        self.addresses = {name: f"10.77.0.{at}" for at, name in enumerate(HOSTS, 1)}

    def named(self, host: str) -> str:
        return f"{self.mark}-{host}"

    def __enter__(self) -> "Hosts":
        try:
            self._lay()
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.__exit__()
            said = getattr(error, "stderr", "") or str(error)
            pytest.skip(f"no network namespaces here (root and iproute2 are needed): {said}")
        return self

    def _lay(self) -> None:
        for host in (HUB, *HOSTS):
            ip("netns", "add", self.named(host))
            ip("-n", self.named(host), "link", "set", "lo", "up")
        hub = self.named(HUB)
        ip("-n", hub, "link", "add", "br0", "type", "bridge")
        ip("-n", hub, "addr", "add", "10.77.0.100/24", "dev", "br0")
        ip("-n", hub, "link", "set", "br0", "up")
        for host, address in self.addresses.items():
            at = self.named(host)
            ip("-n", hub, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", at)
            ip("-n", hub, "link", "set", host, "master", "br0")
            ip("-n", hub, "link", "set", host, "up")
            ip("-n", at, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", at, "link", "set", "eth0", "up")

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.clean()
        for host in (HUB, *HOSTS):
            subprocess.run(["ip", "netns", "del", self.named(host)], capture_output=True)

    def start(self, host: str, *options: str) -> None:
        """Run a node on a host."""
        words = ["node", "--dir", str(self.home / host), "--keys", str(self.home / "keys" / host)]
        words += ["--listen", f"{self.addresses[host]}:7400", "--interval", "0.2", *options]
        prefix = ["ip", "netns", "exec", self.named(host)]
        node = Running(words, self.home, self.home / f"{host}.log", prefix)
        self.processes.running.append(node)
        self.nodes[host] = node
        node.ready()

    def tool(self, *words: str, said: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a tool on the hub."""
        command = ["ip", "netns", "exec", self.named(HUB), sys.executable, "-m", "planaria"]
        credentials = ("--credentials", str(self.home / "keys" / "client"))
        return subprocess.run(
            [*command, *words, *credentials], input=said, cwd=ROOT, env=environment(self.home),
            capture_output=True, text=True, timeout=4 * PATIENCE,
        )  # fmt: skip

    def at(self, *hosts: str) -> str:
        return ",".join(f"{self.addresses[host]}:7400" for host in hosts)

    def publish(self, host: str, *payloads: str) -> None:
        found = self.tool("pub", TOPIC, "--lines", "-s", self.at(host), said="\n".join(payloads))
        assert found.returncode == 0, found.stderr

    def read(self, host: str, count: int) -> list[str]:
        """What a client gets that knows this host alone."""
        words = ("--since", "all", "-C", str(count), "-W", str(PATIENCE))
        found = self.tool("sub", TOPIC, "-s", self.at(host), *words)
        return found.stdout.split()

    def heal(self) -> None:
        found = self.tool("doctor", "--wait", str(2 * PATIENCE), "-s", self.at(*HOSTS))
        assert found.returncode == 0, found.stdout + found.stderr

    def cut(self, host: str, state: str) -> None:
        """Set a host's cable `down` or `up`."""
        ip("-n", self.named(HUB), "link", "set", host, state)

    def slow(self, host: str) -> str:
        """Slow all that a host sends, with what the kernel has; says with what."""
        for kind in SLOWED:
            words = ["tc", "qdisc", "add", "dev", "eth0", "root", *kind.split()]
            command = ["ip", "netns", "exec", self.named(host), *words]
            if subprocess.run(command, capture_output=True).returncode == 0:
                return kind
        return ""

    def unslowed(self, host: str) -> int:
        """End that; how many packets it was felt by."""
        prefix = ["ip", "netns", "exec", self.named(host), "tc"]
        shown = subprocess.run(
            [*prefix, "-s", "qdisc", "show", "dev", "eth0"], capture_output=True, text=True
        )
        subprocess.run([*prefix, "qdisc", "del", "dev", "eth0", "root"], capture_output=True)
        found = re.search(r"(\d+) pkt \(dropped (\d+), overlimits (\d+)", shown.stdout)
        assert found is not None, shown.stdout
        sent, dropped, held = map(int, found.groups())
        return sent if "netem" in shown.stdout else dropped + held


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces here: install iproute2")
    with Processes(tmp_path) as processes, Hosts(processes) as found:
        yield found


def test_hosts_that_are_cut_off_and_slowed_end_up_with_everything(
    hosts: Hosts, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)  # a minute: the kernel's own links, what every day's tests do with the layer
    keys = hosts.home / "keys"
    found_cluster(keys, "hosts")
    for name in HOSTS:
        issue(keys, name, ("node", "supervise"))
    issue(keys, "client", ("client", "admin"))
    hosts.start("n1", "--supervise")
    for name in HOSTS[1:]:
        hosts.start(name, "--join", hosts.at("n1"))
    for name in HOSTS:  # whoever is asked for history becomes a member
        hosts.publish(name, f"first-{name}")
        assert len(hosts.read(name, 1)) == 1
    published = {f"first-{name}" for name in HOSTS}

    slowed = hosts.slow("n3")
    if slowed:
        hosts.publish("n3", *(f"slow-{at}-{LONG}" for at in range(20)))
        published |= {f"slow-{at}-{LONG}" for at in range(20)}
        assert {*hosts.read("n3", len(published))} == published
        assert hosts.unslowed("n3") > 0, f"{slowed} was felt by nothing"

    hosts.cut("n2", "down")
    gone = hosts.tool("ls", "-s", hosts.at("n2"))
    assert gone.returncode != 0, "the fault had an effect"
    hosts.publish("n1", *(f"cut-{at}" for at in range(20)))
    published |= {f"cut-{at}" for at in range(20)}
    until(lambda: "is down: silent" in hosts.nodes["n1"].said(), "n1 has lost n2")
    hosts.cut("n2", "up")
    hosts.heal()
    for name in HOSTS:
        got = hosts.read(name, len(published))
        assert sorted(got) == sorted(published), name
