"""A real Spark cluster on this machine alone, from the pip package: to try what a sweep needs."""

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pyspark

from planaria.core.errors import PlanariaError
from planaria.spark.java import find_java, launcher
from planaria.spark.sessions import LEAN, QUIET

HERE = "127.0.0.1"
START_SECONDS_MAX = 300.0  # three JVMs, on a machine that may be busy
STOP_SECONDS_MAX = 10.0


class NoCluster(PlanariaError):
    """Master and workers did not find each other in time."""


@contextmanager
def standalone(workers: int = 2) -> Iterator[str]:
    """The URL of a master with `workers` workers of one core, for as long as the block."""
    with ExitStack() as until:
        scratch = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="planaria-cluster-")))
        environment = {
            **os.environ,
            "JAVA_HOME": str(launcher(find_java(), until)),
            "SPARK_CONF_DIR": str(QUIET),
            "SPARK_DAEMON_JAVA_OPTS": LEAN,
            "SPARK_LOCAL_IP": HERE,
            "SPARK_NO_DAEMONIZE": "1",
        }
        port, page = _free(), _free()
        url = f"spark://{HERE}:{port}"
        words = ["master.Master", "-h", HERE, "-p", str(port), "--webui-port", str(page)]
        _start(words, environment, scratch, until)
        for number in range(workers):
            place = str(scratch / f"{number}")
            words = ["worker.Worker", "-h", HERE, "-c", "1", "-m", "1g", "-d", place]
            _start([*words, "--webui-port", "0", url], environment, scratch, until)
        _wait(f"http://{HERE}:{page}/json/", workers)
        yield url


def _start(
    words: list[str], environment: Mapping[str, str], scratch: Path, until: ExitStack
) -> None:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [str(program), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
    log = until.enter_context((scratch / "log").open("ab"))
    process = subprocess.Popen(command, env=environment, cwd=scratch, stdout=log, stderr=log)  # noqa: S603  Spark's own
    until.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(page: str, workers: int) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        try:
            with urlopen(page, timeout=STOP_SECONDS_MAX) as answer:  # noqa: S310  ours, on loopback
                if json.load(answer)["aliveworkers"] == workers:
                    return
        except (OSError, ValueError):
            pass  # nobody listens there yet, or the page that answers is not the finished one
        time.sleep(0.2)
    raise NoCluster(f"no {workers} workers after {START_SECONDS_MAX:.0f} s: is the machine busy?")


def _free() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port
