"""The one place that makes a SparkSession: quiet, sized for a laptop, on any master."""

import os
import re
import socket
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import planaria
from planaria.core.errors import UsageError
from planaria.spark.java import find_java, launcher

if TYPE_CHECKING:
    from socketserver import BaseServer

    from pyspark.sql import SparkSession

MASTER = "PLANARIA_SPARK_MASTER"
MASTER_DEFAULT = "local[*]"
ATTEMPTS = 3  # of a task: a worker that died may have been unlucky
REACH_SECONDS_MAX = 5.0
PACKAGE = Path(planaria.__file__).parent
QUIET = Path(__file__).parent / "conf"  # log4j: nothing below an error

SETTINGS: Mapping[str, str] = {
    "spark.driver.memory": "2g",
    # Simulations run in Python; Java only starts, coordinates and sums up. Without its second
    # compiler and parallel collector a session and first queries take half the CPU time (0060).
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Tables of results are small: a query's plan, and code generated for it, take most of its time.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.speculation": "false",  # it would run simulations twice
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

NEEDED = ("pyspark", "pyarrow", "pandas", "rich", "jinja2", "matplotlib")

_LOCAL = re.compile(r"local(?:\[(\*|[1-9]\d*)(?:\s*,\s*[1-9]\d*)?\])?$")
_LOOPBACK = re.compile(r"spark://(localhost|127\.[\d.]+|\[::1\]):\d+$")
_OTHER = re.compile(r"local-cluster\[.+\]$|yarn$|k8s://.+")


def require() -> None:
    """`UsageError` unless what the extra `spark` brings is installed."""
    missing = [name for name in NEEDED if not find_spec(name)]
    if missing:
        raise UsageError(f"this needs {missing[0]}: pip install 'planaria[spark]'")


def choose_master(asked: str | None) -> str:
    """The master that was asked for, here or in the environment; `UsageError` if it is none."""
    master = asked or os.environ.get(MASTER) or MASTER_DEFAULT
    local = _LOCAL.match(master)
    if local:
        return f"local[{local[1] or 1},{ATTEMPTS}]"
    if master.startswith("spark://"):
        _reach(master)
    elif not _OTHER.match(master):
        raise UsageError(
            f"master {master!r}: local[*], local[2], spark://HOST:PORT, yarn or k8s://"
        )
    return master


@contextmanager
def session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator["SparkSession"]:
    """A SparkSession for as long as the block; one that is there already is used and left alone."""
    require()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        if master is not None and choose_master(master) != running.sparkContext.master:
            raise UsageError(f"this process has a session on {running.sparkContext.master} already")
        yield running
        return
    with ExitStack() as until:
        spark = _start(choose_master(master), settings or {}, until)
        until.callback(_stop, spark)
        _hush(spark.sparkContext._accumulatorServer)
        yield spark


def _start(master: str, settings: Mapping[str, str], until: ExitStack) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    local = master.startswith("local")
    here = local or _LOOPBACK.match(master) is not None
    scratch = until.enter_context(tempfile.TemporaryDirectory(prefix="planaria-spark-"))
    chosen = {**SETTINGS, "spark.sql.warehouse.dir": scratch}
    if local:
        chosen["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(_visible())
    if not master.startswith("local["):
        chosen["spark.submit.pyFiles"] = _zipped(Path(scratch))
    builder = SparkSession.builder.master(master).appName("planaria")
    for name, value in (chosen | dict(settings)).items():
        builder = builder.config(name, value)
    environment = {
        "JAVA_HOME": str(launcher(find_java(), until)),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable if here else "python3"),
        "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR", str(QUIET)),
    }
    if here:
        environment["SPARK_WORKER_DIR"] = scratch  # local-cluster would use its own installation
        environment["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    with _environment(environment):
        try:
            return builder.getOrCreate()
        except PySparkException as error:
            reason = str(error).splitlines()[0]
        except Exception as error:  # Py4J hands Java's exceptions on as many types
            reason = str(getattr(error, "java_exception", error)).splitlines()[0]
    raise UsageError(f"cannot start Spark on {master}: {reason}")


def _hush(server: "BaseServer") -> None:
    """When Java dies, PySpark would print a traceback too; the sweep says what happened."""
    loud = server.handle_error

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            loud(request, address)

    setattr(server, "handle_error", handle)  # noqa: B010


def _stop(spark: "SparkSession") -> None:
    """Java may be gone already, killed for its memory, say; what to tell is that, not this."""
    from py4j.protocol import Py4JNetworkError

    quiet = warnings.catch_warnings(action="ignore", category=RuntimeWarning)
    with suppress(Py4JNetworkError, ConnectionError), quiet:
        spark.stop()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """The JVM is told by its environment; ours is as before afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _visible() -> list[str]:
    """Where this process finds modules beyond its installation: workers must find them too."""
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    places = [Path(place or ".").absolute() for place in sys.path]
    return [
        str(place)
        for place in dict.fromkeys(places)
        if place.is_dir() and not any(place.is_relative_to(prefix) for prefix in installed)
    ]


def _zipped(directory: Path) -> str:
    """This package as a zip for executors elsewhere; what it depends on must be there already."""
    target = directory / "planaria.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.rglob("*.py")):
            archive.write(path, path.relative_to(PACKAGE.parent).as_posix())
    return str(target)


def _reach(master: str) -> None:
    """Spark itself would try for a minute and then say little."""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"master {master!r}: write spark://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS_MAX).close()
        except (OSError, OverflowError):
            continue
        return
    raise UsageError(f"nobody answers at {master}: is a Spark master running there?")
