"""Whatever is killed at random moments, a query's output has each publication exactly once."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import planaria.sync
from planaria.core.chance import stream
from process_lab import HEAL_SECONDS, Processes, UpNetwork, environment, until

pytest_plugins = ("spark_session",)

ROWS, PARTS = 200_000, 20
VICTIMS = ("driver", "java", "worker", "server", "supervisor", "frozen")
FROZEN_SECONDS = 12.0  # longer than a silent node is borne
END_SECONDS = 900.0
GENERATIONS = 6  # of processes: the driver, Java, the daemon, workers

DRIVER = """
import sys
from pathlib import Path
from planaria.spark import PlanariaDataSource
from planaria.spark.sessions import LABORATORY, session
home, servers, credentials = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with session("local[2]", {**LABORATORY, "spark.driver.memory": "1g"}) as spark:
    spark.dataSource.register(PlanariaDataSource)
    rows = spark.readStream.format("planaria").option("servers", servers)
    rows = rows.option("credentials", credentials).option("subscribe", "kills/#")
    rows = rows.option("startingOffsets", "earliest").option("maxRowsPerTrigger", "20000").load()
    writing = rows.select("value").writeStream.format("parquet").option("path", str(home / "out"))
    writing.option("checkpointLocation", str(home / "at")).start().awaitTermination()
"""


class Run:
    """A network, a query in a process of its own, and a schedule of what is killed."""

    def __init__(self, home: Path, processes: Processes, rng: Random) -> None:
        self.home, self.rng = home, rng
        self.network = UpNetwork(processes, 4, 2)
        self.driver: subprocess.Popen[bytes] | None = None
        self.killed = Counter[str]()
        self.batches = 0  # that the query had done when something was killed last

    def drive(self) -> None:
        """Start the query, if it does not run."""
        if self.driver is not None and self.driver.poll() is None:
            return
        self.stop()
        words = [str(self.home), ",".join(self.network.servers("n3"))]
        with (self.home / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, "-c", DRIVER, *words, str(self.network.context.credentials)],
                env=environment(self.home),
                stderr=log,
                start_new_session=True,
            )

    def work(self) -> None:
        """Wait until the query has done a batch since: then it is in the middle of something."""
        commits = self.home / "at" / "commits"

        def done() -> bool:
            self.drive()
            return len(list(commits.glob("[0-9]*"))) > self.batches

        until(done, "a batch", HEAL_SECONDS + END_SECONDS)
        self.batches = len(list(commits.glob("[0-9]*")))

    def stop(self) -> None:
        """Kill the driver and all that it started."""
        if self.driver is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()

    def strike(self, victim: str) -> None:
        """Kill it with -9; a node returns, and is frozen for a while if it is not killed."""
        if victim == "driver":
            self.stop()
            self.killed[victim] += 1
        elif victim in ("java", "worker"):
            self.drive()
            until(lambda: self.below(victim), victim, HEAL_SECONDS)
            with suppress(ProcessLookupError):
                os.kill(self.rng.choice(self.below(victim)), signal.SIGKILL)
            self.killed[victim] += 1
        elif victim == "frozen":
            os.kill(self.network.pid("n3"), signal.SIGSTOP)
            time.sleep(FROZEN_SECONDS)
            os.kill(self.network.pid("n3"), signal.SIGCONT)
            self.killed[victim] += 1
        else:
            name = "n3" if victim == "server" else "n1"
            self.network.kill(name)
            self.killed[victim] += 1
            time.sleep(self.rng.random() * 3)
            self.network.start(name)

    def below(self, victim: str) -> list[int]:
        """The processes of one kind that the driver has started."""
        assert self.driver is not None
        return children(self.driver.pid, "java" if victim == "java" else "pyspark.daemon")

    def publish(self, payloads: list[bytes], at: str) -> None:
        servers, keys = self.network.servers(at), self.network.context.credentials
        with planaria.sync.connect(servers, credentials=keys) as client:
            client.publish_many("kills/all", payloads)


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


@pytest.mark.parametrize("part", range(5))
def test_each_publication_is_in_the_output_once_whatever_is_killed(
    part: int, seeds: Callable[[int, int], int], spark: SparkSession, tmp_path: Path
) -> None:
    """Driver, Java, Python worker, serving node, supervisor; a node that is frozen for a while."""
    for seed in range(part, seeds(0, 50), 5):
        one_schedule(seed, tmp_path / str(seed), spark, ROWS)


def one_schedule(seed: int, home: Path, spark: SparkSession, rows: int) -> None:
    rng = stream(seed, "kill schedules")
    plan = {rng.randrange(1, PARTS): rng.choice(VICTIMS) for _ in range(rng.randrange(2, 6))}
    home.mkdir()
    with Processes(home) as processes:
        run = Run(home, processes, rng)
        try:
            for number in range(PARTS):
                run.drive()
                lo, hi = number * rows // PARTS, (number + 1) * rows // PARTS
                run.publish([b"%07d" % it for it in range(lo, hi)], rng.choice(["n2", "n4"]))
                if number in plan:
                    run.work()
                    time.sleep(rng.random() * 5)
                    run.strike(plan[number])
            finished(run, home, spark, rows)
        finally:
            run.stop()
    out = spark.read.parquet(str(home / "out")).groupBy("value").count()
    counts = Counter(row["count"] for row in out.collect())
    assert counts == {1: rows}, (seed, plan, counts)
    assert run.killed == Counter(plan.values())


def finished(run: Run, home: Path, spark: SparkSession, rows: int) -> None:
    """Let the query run until all is there."""

    def whole() -> bool:
        run.drive()
        time.sleep(1.0)
        log = home / "out" / "_spark_metadata"
        return log.exists() and spark.read.parquet(str(home / "out")).count() >= rows

    run.network.heal()
    until(whole, "all rows", HEAL_SECONDS + END_SECONDS)
