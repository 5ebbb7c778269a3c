"""Whatever is killed at random moments, a query's output has each publication exactly once.

Any three schedules in a row have every fault: `make test` runs three, the campaign fifty.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import planaria.sync
from planaria.core.chance import stream
from process_lab import HEAL_SECONDS, Processes, UpNetwork, alive, environment, until
from wires import Wires

ROWS, PARTS = 200_000, 10
FAULTS = ("driver", "java", "worker", "server", "supervisor", "partition")
BY_DAY = 3
CUT_SECONDS = (2.0, 8.0, 40.0)  # others are tried; tasks fail; the query fails
END_SECONDS = 900.0
GENERATIONS = 6  # of processes: the driver, Java, the daemon, workers

DRIVER = """
import json, sys
from pathlib import Path
from planaria.spark import PlanariaDataSource
from planaria.spark.sessions import LABORATORY, session
home, servers, credentials, wanted = Path(sys.argv[1]), *sys.argv[2:]
with session("local[2]", {**LABORATORY, "spark.driver.memory": "1g"}) as spark:
    spark.dataSource.register(PlanariaDataSource)
    rows = spark.readStream.format("planaria").option("servers", servers)
    rows = rows.option("credentials", credentials).option("subscribe", "kills/#")
    rows = rows.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "40000").load()
    writing = rows.select("value").writeStream.format("parquet").option("path", str(home / "out"))
    query = writing.option("checkpointLocation", str(home / "at")).start()
    while not query.awaitTermination(0.5):
        if (home / "published").exists() and (home / "out" / "_spark_metadata" / "0").exists():
            written = spark.read.parquet(str(home / "out"))
            if written.count() >= int(wanted):
                break
    query.stop()
    counts = written.groupBy("value").count().groupBy("count").agg({"*": "count"}).collect()
    (home / "counts.new").write_text(json.dumps(dict(counts)))
    (home / "counts.new").rename(home / "counts")
"""


class Run:
    """A network, a query in a process of its own, and what is done to them."""

    def __init__(
        self, home: Path, processes: Processes, rng: Random, cuts: Sequence[float]
    ) -> None:
        self.home, self.rng, self.cuts = home, rng, cuts
        self.network = UpNetwork(processes, 4, 2)
        self.ports = {
            name: int(it["listen"].rpartition(":")[2]) for name, it in self.network.nodes.items()
        }
        self.wires = Wires(self.ports.values())
        self.driver: subprocess.Popen[bytes] | None = None
        self.suffered = Counter[str]()
        self.batches = 0  # that the query had done when something happened last

    def drive(self) -> None:
        """Start the query, if it does not run."""
        if self.driver is not None and self.driver.poll() is None:
            return
        self.stop()
        keys = str(self.network.context.credentials)
        words = [str(self.home), ",".join(self.network.servers("n3")), keys, str(ROWS)]
        ways = self.home / "ways"
        if not ways.exists():
            self.wires.redirect(ways)
        variables = environment(self.home)
        variables |= {
            "TMPDIR": str(self.home),
            "PYTHONPATH": f"{ways}{os.pathsep}{variables['PYTHONPATH']}",
        }
        with (self.home / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, "-c", DRIVER, *words],
                env=variables,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Kill the driver and all that it started."""
        if self.driver is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()

    def work(self) -> None:
        """Wait until the query has done a batch since: then it is in the middle of something."""
        commits = self.home / "at" / "commits"

        def done() -> bool:
            self.drive()
            return len(list(commits.glob("[0-9]*"))) > self.batches

        until(done, "a batch", HEAL_SECONDS + END_SECONDS)
        self.batches = len(list(commits.glob("[0-9]*")))

    def strike(self, fault: str) -> None:
        """Do it, and see that it was felt."""
        assert self.driver is not None
        if fault == "driver":
            assert self.driver.poll() is None
            self.stop()
        elif fault in ("java", "worker"):
            self.kill_below("java" if fault == "java" else "pyspark.daemon")
        elif fault == "partition":
            self.cut(self.rng.choice(self.cuts))
        else:
            name = self.serving() if fault == "server" else self.rng.choice(["n1", "n2"])
            self.network.kill(name)
            time.sleep(self.rng.random() * 3)
            self.network.start(name)
        self.suffered[fault] += 1

    def serving(self) -> str:
        """The node that our reader talks to, as soon as it talks to one."""

        def live(name: str) -> int:
            return self.wires.live[self.ports[name]]

        def talks() -> bool:
            self.drive()
            return any(map(live, self.ports))

        until(talks, "a reader", HEAL_SECONDS + END_SECONDS)
        return max(self.ports, key=live)

    def kill_below(self, name: str) -> None:
        """Kill -9 a process that the driver has started."""
        assert self.driver is not None
        until(lambda: children(self.driver.pid, name), name, HEAL_SECONDS)  # type: ignore[union-attr]
        victim = self.rng.choice(children(self.driver.pid, name))
        os.kill(victim, signal.SIGKILL)
        until(lambda: not alive(victim), f"the end of {victim}")

    def cut(self, seconds: float) -> None:
        """Cut the reader off from all nodes, until it has noticed and for some time more."""
        before = self.wires.unanswered

        def felt() -> bool:
            self.drive()  # one that has just been killed has to come up before it asks
            return self.wires.unanswered > before

        self.wires.cut()
        try:
            until(felt, "something unanswered", HEAL_SECONDS + END_SECONDS)
            time.sleep(seconds)
        finally:
            self.wires.mend()

    def publish(self, lo: int, hi: int, at: str) -> None:
        servers, keys = self.network.servers(at), self.network.context.credentials
        with planaria.sync.connect(servers, credentials=keys) as client:
            client.publish_many("kills/all", [b"%07d" % it for it in range(lo, hi)])

    def finish(self) -> dict[str, int]:
        """Let the query run until all is there: how many publications are there how often."""
        self.network.heal()
        (self.home / "published").touch()
        counts = self.home / "counts"

        def whole() -> bool:
            if not counts.exists():
                self.drive()
            return counts.exists()

        until(whole, "all rows", HEAL_SECONDS + END_SECONDS)
        found: dict[str, int] = json.loads(counts.read_text())
        return found


def children(pid: int, name: str) -> list[int]:
    """Processes below a process whose command line has this word."""
    table = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            table[int(path.name)] = (parent, (path / "cmdline").read_bytes().decode())
    below = {pid}
    for _ in range(GENERATIONS):
        below |= {one for one, (parent, _) in table.items() if parent in below}
    return [one for one in sorted(below - {pid}) if name in table[one][1]]


def schedule(seed: int) -> Iterator[tuple[int, str]]:
    """When what happens: two faults for each of three seeds, which have all, and others."""
    three, part = divmod(seed, BY_DAY)
    order = stream(three, "faults").sample(FAULTS, len(FAULTS))
    rng = stream(seed, "schedule")
    chosen = [
        *order[2 * part :][:2],
        *rng.choices(FAULTS, k=0 if seed < BY_DAY else rng.randrange(4)),
    ]
    yield from zip(sorted(rng.sample(range(1, PARTS), len(chosen))), chosen, strict=True)


def one_schedule(seed: int, home: Path) -> None:
    rng, plan = stream(seed, "kill schedules"), dict(schedule(seed))
    home.mkdir()
    with Processes(home) as processes, ThreadPoolExecutor(1) as thread:
        run = Run(home, processes, rng, CUT_SECONDS[: 1 if seed < BY_DAY else None])
        with run.wires:
            try:
                for number in range(PARTS):
                    run.drive()
                    if number in plan:
                        run.work()
                    ends = (number * ROWS // PARTS, (number + 1) * ROWS // PARTS)
                    publishing = thread.submit(run.publish, *ends, rng.choice(["n2", "n4"]))
                    if number in plan:
                        time.sleep(rng.random())
                        run.strike(plan[number])
                    publishing.result()
                counts = run.finish()
            finally:
                run.stop()
    assert counts == {"1": ROWS}, (seed, plan, counts)
    assert run.suffered == Counter(plan.values())


@pytest.mark.parametrize("part", range(BY_DAY))
def test_each_publication_is_in_the_output_once_whatever_is_killed(
    part: int, seeds: Callable[[int, int], int], tmp_path: Path
) -> None:
    """Driver, Java, Python worker, serving node, supervisor; no way from the reader to any node."""
    for seed in range(part, seeds(BY_DAY, 50), BY_DAY):
        one_schedule(seed, tmp_path / str(seed))


def test_any_three_schedules_in_a_row_have_every_fault() -> None:
    """As those of every day."""
    for first in range(0, 50, BY_DAY):
        row = [fault for seed in range(first, first + BY_DAY) for _, fault in schedule(seed)]
        assert {*row} == {*FAULTS}
