"""The format `planaria` in sessions of the user's own: plain ones, and over Spark Connect.

Nothing of ours starts or configures them. Over Connect the class is sent by its name, and the
package is at the server.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

import planaria.sync
from planaria.spark.java import find_java, launcher
from planaria.spark.sessions import LABORATORY
from process_lab import ROOT, Processes, UpNetwork

ROWS = 300
SECONDS = 400.0  # for Java, a server and two queries on a busy machine

CLIENT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from planaria.spark import PlanariaDataSource
home, options = Path(sys.argv[1]), json.loads(sys.argv[2])
spark = getattr(SparkSession.builder, sys.argv[3])("local[2]").getOrCreate()
try:
    spark.dataSource.register(PlanariaDataSource)
    rows = spark.readStream.format("planaria").option("startingOffsets", "earliest")
    rows = rows.options(**options, subscribe="one/#", columns="key,value").load()
    writing = rows.writeStream.format("planaria").options(**options, topic="two")
    writing = writing.option("checkpointLocation", str(home / "checkpoint"))
    writing.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.format("planaria").options(**options, subscribe="two").load()
    values = sorted(int(row.value) for row in found.select("value").collect())
    print(json.dumps([type(spark).__module__, values]))
finally:
    spark.stop()
"""


def test_a_plain_session_reads_and_writes_topics(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)  # a second Java; by day the session over Connect has as little of ours
    assert copied(tmp_path, "master") == ("pyspark.sql.session", list(range(ROWS)))


def test_a_connect_session_reads_and_writes_topics(tmp_path: Path) -> None:
    missing = [it for it in ("grpc", "grpc_status", "zstandard") if find_spec(it) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {missing[0]}: pip install 'pyspark[connect]'")
    kind, values = copied(tmp_path, "remote")
    assert kind.startswith("pyspark.sql.connect")
    assert values == list(range(ROWS))


def copied(tmp_path: Path, how: str) -> tuple[str, list[int]]:
    """The kind of a session that is made so, and what it has read that it has written."""
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {**LABORATORY, "spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    with Processes(tmp_path) as processes, ExitStack() as until:
        network = UpNetwork(processes, 2, 1)
        servers, keys = network.servers("n1"), network.context.credentials
        with planaria.sync.connect(servers, credentials=keys) as client:
            client.publish_many("one/a", [b"%d" % number for number in range(ROWS)])
        options = {"servers": ",".join(servers), "credentials": str(keys)}
        found = subprocess.run(
            [sys.executable, "-c", CLIENT, str(tmp_path), json.dumps(options), how],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *_beside()]),
                "JAVA_HOME": str(launcher(find_java(), until)),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_CONF_DIR": str(conf),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=subprocess.PIPE,
            timeout=SECONDS,
            check=True,
        )
    kind, values = json.loads(found.stdout.splitlines()[-1])
    return kind, values


def _beside() -> list[str]:
    """Where this process finds what is not installed beside Python."""
    return [it for it in os.environ.get("PYTHONPATH", "").split(os.pathsep) if it]
