"""Commands whose standard streams are closed, or whose output nobody reads."""

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from planaria.cli import doctor
from planaria.cli.main import UNREAD, main
from process_lab import environment

NOWHERE = ("-s", "127.0.0.1:1", "--insecure")  # nobody listens there


def shell(script: str, home: Path) -> tuple[int, str, str]:
    """Run a line of bash, in which `$P` is `planaria`: exit code, stdout and stderr."""
    found = environment(home) | {"P": f"{sys.executable} -m planaria"}
    done = subprocess.run(
        ["bash", "-c", script], env=found, capture_output=True, text=True, timeout=50
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("$P pub news -s 127.0.0.1:1 --insecure <&-", "input"),
        ("$P pub news --lines -s 127.0.0.1:1 --insecure <&-", "input"),
        ("$P node --stop-with-stdin --insecure --dir $XDG_STATE_HOME/n <&-", "input"),
        ("$P sub '#' -s 127.0.0.1:1 --insecure >&-", "output"),
        ("$P top -s 127.0.0.1:1 --insecure >&-", "output"),
        ("$P demo >&-", "output"),
    ],
)
def test_a_closed_stream_that_is_needed_is_told_in_one_line(
    command: str, name: str, tmp_path: Path
) -> None:
    code, out, err = shell(command, tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"planaria: error: the standard {name} is closed: ")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("$P filter covers 'x > 1' 'x > 2' <&- >&- 2>&-", 0),
        ("$P sim ring --n 4 <&- >&- 2>&-", 0),
        ("$P filter covers 'x >' 'x > 2' <&- >&- 2>&-", 2),
        ("$P doctor -s 127.0.0.1:1 --insecure <&- >&- 2>&-", 1),
        ("$P pub news x -s 127.0.0.1:x --insecure <&- >&-", 2),
    ],
)
def test_who_needs_no_stream_does_without(command: str, code: int, tmp_path: Path) -> None:
    found, out, err = shell(command, tmp_path)
    assert (found, out) == (code, "")
    assert "Traceback" not in err
    assert "is closed" not in err


@pytest.mark.parametrize(
    "command",
    [
        "$P doctor -s 127.0.0.1:1 --insecure",
        "$P doctor -s 127.0.0.1:1 --insecure --json",
        "$P filter covers 'x > 1' 'x > 2'",
        "$P sim ring --n 4",
        "$P doctor --help",
        "$P",
    ],
)
def test_a_reader_that_is_gone_is_no_verdict(command: str, tmp_path: Path) -> None:
    """The reader ends first, so that it never depends on who is faster."""
    os.mkfifo(tmp_path / "pipe")
    closed = f"exec 3<>{tmp_path}/pipe 4>{tmp_path}/pipe 3>&-; {command} >&4"
    assert shell(closed, tmp_path) == (UNREAD, "", "")


def test_a_log_that_nobody_reads_is_no_verdict_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    closed = f"exec 3<>{tmp_path}/pipe 4>{tmp_path}/pipe 3>&-; $P sim ring --n 4 >&4 2>&1"
    assert shell(closed, tmp_path) == (UNREAD, "", "")


def test_a_link_that_breaks_is_an_error_though_somebody_reads(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def breaks(*_: object) -> None:
        one, other = socket.socketpair()
        with closing(one):
            other.close()
            one.send(b"x")

    monkeypatch.setattr(doctor, "_diagnose", breaks)
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["doctor", *NOWHERE]) == 2
    assert "Broken pipe" in capfd.readouterr().err
