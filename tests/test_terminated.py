"""A run of tests that is told to end leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from process_lab import alive, until

TEST = """
import os, subprocess, sys, time
from pathlib import Path

def test_it():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as child:
        try:
            Path("child.part").write_text(str(child.pid))
            os.rename("child.part", "child")
            time.sleep(1000)
        finally:
            child.kill()
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_is_terminated_ends_what_its_tests_started(tmp_path: Path, workers: int) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-q", "-p", "ending", "-n", str(workers)]
    command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
    paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    paths = {name: value for name, value in paths.items() if "XDIST" not in name}
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]  # as with `&`
    run = subprocess.Popen([*ignoring, *command], cwd=tmp_path, env=paths, stdout=subprocess.PIPE)
    child = 0
    try:
        until((tmp_path / "child").exists)
        child = int((tmp_path / "child").read_text())
        assert alive(child)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=60)
        assert (run.returncode, b"KeyboardInterrupt" in said) == (2, True), said
        until(lambda: not alive(child))
    finally:
        run.kill()
        run.wait()
        if child and alive(child):
            os.kill(child, signal.SIGKILL)
