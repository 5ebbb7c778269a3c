"""A standalone cluster gives byte for byte what a laptop gives, with nothing set up by hand."""

import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from planaria.spark.cluster import standalone
from spark_lab import contents, small_hunt
from toys import ROOT

pytest_plugins = ("spark_session",)

# In a process of its own: one process can have one session only, and the tests have one.
SWEEP = """
import sys
from planaria.spark.sessions import session
from spark_lab import small_hunt

def place(_):
    import planaria
    return planaria.__file__

master, out = sys.argv[1:]
with session(master) as spark:
    assert small_hunt(out).sweep.run(spark) == 12
    print(*set(spark.sparkContext.parallelize(range(4), 4).map(place).collect()))
"""


def sweep(master: str, out: Path) -> str:
    """Run the hunt on that master; says where its workers found the package."""
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, master, str(out)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_standalone_cluster_gives_the_bytes_of_a_local_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    with standalone(workers=1) as master:
        where = sweep(master, tmp_path / "cluster")
    assert "planaria.zip" in where  # the package travelled; it was not found by chance
    assert small_hunt(str(tmp_path / "local")).sweep.run(spark) == 12
    here = contents(tmp_path / "local")
    assert len(here) > 2
    assert contents(tmp_path / "cluster") == here
