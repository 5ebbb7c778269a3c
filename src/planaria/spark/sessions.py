"""The one place that makes a SparkSession: quiet, sized for a laptop, on any master."""

import os
import py_compile
import re
import signal
import socket
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
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
MASTER_HELP = f"Spark  [default: ${MASTER}, spark-defaults.conf, {MASTER_DEFAULT}]"
ATTEMPTS = 3  # of a task: a worker that died may have been unlucky
REACH_SECONDS_MAX = 5.0
PACKAGE = Path(planaria.__file__).parent
QUIET = Path(__file__).parent / "conf"  # log4j: nothing below an error

LEAN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS: Mapping[str, str] = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.speculation": "false",  # it would run simulations twice
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Else a list or map column is measured anew with every row: in time quadratic in a batch's.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.python.filterPushdown.enabled": "true",
}
# For the laboratory. Simulations run in Python; Java only starts, coordinates and sums up. Without
# its second compiler and parallel collector a session and first queries take half the CPU time
# (0060). Tables of results are small: a query's plan, and code generated for it, take most of its
# time. Streams want none of this: they are several times slower with it.
LABORATORY: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": LEAN,
    "spark.executor.extraJavaOptions": LEAN,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

NEEDED = ("pyspark", "pyarrow", "pandas", "rich", "jinja2", "matplotlib")

_LOCAL = re.compile(r"local(?:\[(\*|[1-9]\d*)(?:\s*,\s*[1-9]\d*)?\])?$")
_LOOPBACK = re.compile(r"spark://(localhost|127\.[\d.]+|\[::1\]):\d+$")
_OTHER = re.compile(r"local-cluster\[.+\]$|yarn$|k8s://.+")
_CONFIGURED = re.compile(r"\s*spark\.master(?:\s*[=:]\s*|\s+)(\S+)")


def require() -> None:
    """`UsageError` unless what the extra `spark` brings is installed."""
    missing = [name for name in NEEDED if not find_spec(name)]
    if missing:
        raise UsageError(f"this needs {missing[0]}: pip install 'planaria[spark]'")


def choose_master(asked: str | None) -> str:
    """The master asked for here, by the environment or by Spark's configuration, or all cores.

    `UsageError` if it is none.
    """
    master = asked or os.environ.get(MASTER) or _configured() or MASTER_DEFAULT
    local = _LOCAL.match(master)
    if local:
        return f"local[{local[1] or 1},{ATTEMPTS}]"
    if master.startswith("spark://"):
        _reach(master)
    elif not _OTHER.match(master):
        raise UsageError(
            f"master {master!r}: local[*], local[2], spark://HOST:PORT, yarn or k8s://"
        )
    elif master == "yarn" and not _knows_yarn():
        raise UsageError("master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR, so that it is found")
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
    from pyspark import SparkConf, SparkContext
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
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("planaria")
    conf.setAll([*(chosen | dict(settings)).items()])
    environment = {
        "JAVA_HOME": str(launcher(find_java(), until)),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable if here else "python3"),
        "SPARK_CONF_DIR": str(_conf_dir()),
    }
    if local and "SPARK_HOME" not in os.environ:
        environment["SPARK_HOME"] = str(_home(Path(scratch)))
    if here:
        environment["SPARK_WORKER_DIR"] = scratch  # local-cluster would use its own installation
        environment["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    with _environment(environment):
        try:
            with _ctrl_c_waits():
                SparkContext._ensure_initialized(conf=conf)
            return SparkSession.builder.config(conf=conf).getOrCreate()
        except PySparkException as error:
            reason = str(error).splitlines()[0]
        except Exception as error:  # Py4J hands Java's exceptions on as many types
            reason = str(getattr(error, "java_exception", error)).splitlines()[0]
    if master.startswith("spark://") and "stopped SparkContext" in reason:  # it tried for a minute
        reason = f"no Spark master answers there; is it one, and of Spark {version('pyspark')}?"
    raise UsageError(f"cannot start Spark on {master}: {plain(reason)}")


def plain(reason: str) -> str:
    """What Java or a library says, without the names of its classes."""
    return re.sub(r"(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ", "", reason)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Java ends with this process once both are connected; before, it would stay for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _hush(server: "BaseServer") -> None:
    """When Java dies, PySpark would print a traceback too; the sweep says what happened."""
    loud = server.handle_error

    def handle(request: Any, address: Any) -> None:
        error = sys.exception()
        # Java that had said nothing yet: PySpark takes that for a wrong token.
        wordless = isinstance(error, ValueError) and "token" in str(error)
        if not (wordless or isinstance(error, EOFError | ConnectionError)):
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


def _home(directory: Path) -> Path:
    """The installation of PySpark without the zip of itself that it has for clusters.

    Workers prefer that zip, and would compile what is in it at every start: 1.2 CPU seconds
    instead of 0.3. Here they find PySpark where this process does.
    """
    home = directory / "home"
    home.mkdir()
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    for entry in Path(spec.origin).parent.iterdir():
        if entry.name in ("bin", "jars", "sbin", "data", "licenses"):
            (home / entry.name).symlink_to(entry)
    return home


def _conf_dir() -> Path:
    """Spark's configuration: the user's if there is one, else ours, which keeps Spark quiet."""
    given, home = os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME")
    if given:
        return Path(given)
    installed = Path(home or "", "conf")
    return installed if home and (installed / "spark-defaults.conf").is_file() else QUIET


def _configured() -> str | None:
    """The master that the user's spark-defaults.conf names; the last one counts, as for Spark."""
    defaults = _conf_dir() / "spark-defaults.conf"
    lines = defaults.read_text(encoding="utf-8").splitlines() if defaults.is_file() else []
    named = [match[1] for line in lines if (match := _CONFIGURED.match(line))]
    return named[-1] if named else None


def _knows_yarn() -> bool:
    """Spark refuses with a Java stack otherwise; the user's spark-env.sh may set either, too."""
    directory = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    return bool(directory) or (_conf_dir() / "spark-env.sh").is_file()


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
    """This package as a zip for executors elsewhere; what it depends on must be there already.

    With the compiled modules, for a Python of this version: others read the source.
    """
    target, compiled = directory / "planaria.zip", directory / "compiled"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.rglob("*.py")):
            name = path.relative_to(PACKAGE.parent).as_posix()
            archive.write(path, name)
            py_compile.compile(str(path), str(compiled), name, True, invalidation_mode=unchecked)
            archive.write(compiled, f"{name}c")
    compiled.unlink()
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
