"""The command itself: help and completion that load nothing, and leave nothing out."""

import subprocess
import sys

from planaria.cli.main import COMMANDS, SECTIONS, main
from process_lab import ROOT

SHOWN = [name for section in SECTIONS.values() for name in section]
HEAVY = ("pyspark", "pyarrow", "pandas", "numpy", "matplotlib", "starlette", "sqlglot")
RING = "planaria.protocols.skipring."
NOT_FOR_NODES = {*HEAVY, f"{RING}overlay", "planaria.simulator", "urllib.request"}


def test_help_shows_every_command_once() -> None:
    assert sorted(SHOWN) == sorted(COMMANDS)


def test_every_command_can_be_loaded_and_says_what_it_does() -> None:
    for name in COMMANDS:
        assert main([name, "--help"]) == 0, name


def test_help_loads_nothing_that_is_heavy() -> None:
    code = (
        "import sys; from planaria.cli.main import main; main(['--help']);"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in COMMANDS)


def test_a_node_loads_nothing_that_only_others_need() -> None:
    """Neither numpy nor a parser of SQL before use, nor what breaks, judges or draws rings."""
    code = "import sys, planaria.cli.node; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    loaded = set(done.stdout.split())
    assert "planaria.network.live" in loaded
    assert not loaded & NOT_FOR_NODES
    assert not {name for name in loaded if name.startswith(f"{RING}arbitrary")}


def test_what_a_command_brings_is_never_searched_for_garbage() -> None:
    code = (
        "import gc; from planaria.cli.main import main; before = gc.get_freeze_count();"
        "main(['pub', '--help']); after = gc.get_freeze_count(); main(['pub', '--help']);"
        "import sys; print(before == 0, after > 10_000, gc.get_freeze_count() == after,"
        " gc.isenabled(), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    assert done.stderr.split() == ["True"] * 4


def test_a_shell_completes_names() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "planaria"],
        capture_output=True,
        text=True,
        cwd=ROOT / "src",
        env={
            "_PLANARIA_COMPLETE": "bash_complete",
            "COMP_WORDS": "planaria do",
            "COMP_CWORD": "1",
            "PATH": "/usr/bin:/bin",
        },
    )
    assert done.stdout.split() == ["plain,doctor"]
