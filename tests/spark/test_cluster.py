"""A standalone cluster gives byte for byte what a laptop gives, with nothing set up by hand."""

import subprocess
import sys
from pathlib import Path

import spark_lab
from planaria.spark.cluster import standalone

# In a process of its own: one process can have one session only, and the tests have one.
SWEEP = """
import sys
from planaria.spark.hunt import Hunt, Target, named_schedules
from planaria.spark.session import session

def place(_):
    import planaria
    return planaria.__file__

master, out = sys.argv[1:]
target = Target("ring", ("ring",), {}, named_schedules(["crash", "partition"]))
grid = {"overlay": ["ring"], "start": ["corrupt"], "n": [3, 5], "scheduler": ["fifo"]}
grid |= {"nemesis": ["crash", "partition"], "intervals": [200], "closure": [5], "messages": [10**6]}
with session(master) as spark:
    assert Hunt(target, grid, range(12), out).sweep.run(spark) == 12
    print(*set(spark.sparkContext.parallelize(range(4), 4).map(place).collect()))
"""


def sweep(master: str, out: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, master, str(out)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_standalone_cluster_gives_the_bytes_of_a_local_one(tmp_path: Path) -> None:
    with standalone() as master:
        where = sweep(master, tmp_path / "cluster")
    assert "planaria.zip" in where  # the package travelled; it was not found by chance
    sweep("local[2]", tmp_path / "local")
    here = spark_lab.contents(tmp_path / "local")
    assert len(here) > 2
    assert spark_lab.contents(tmp_path / "cluster") == here
