"""What all tests share: seeds, workers, and Hypothesis without a clock or a memory.

`make test` repeats the same runs everywhere; `make campaign` (PLANARIA_CAMPAIGN=1) hunts for new
ones with many more.
"""

import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from ending import pytest_configure as pytest_configure
from process_lab import Processes

GARBAGE = 50_000  # new objects before it is looked for: simulations make many, and few in circles
CAMPAIGN = os.environ.get("PLANARIA_CAMPAIGN", "") not in ("", "0")

settings.register_profile(
    "test",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "campaign",
    settings.get_profile("test"),
    derandomize=False,
    max_examples=2_000,
    print_blob=True,
)
settings.load_profile("campaign" if CAMPAIGN else "test")


@cache
def together(path: str) -> str | None:
    """The name of the tests that share something costly with those of this file."""
    text = (Path(__file__).parents[1] / path).read_text()
    if "spark_session" in text:
        return "spark"
    return path if 'scope="module"' in text or "\n@cache\n" in text else None


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """Gives tests that share to one worker, most first, and any other to whoever is idle.

    All that need Spark share it: Java takes longer to start than most of them. xdist's own groups
    (`--dist loadgroup`) are marked in an attribute that pytest 9.2 no longer has: they group
    nothing, and say nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid.partition("::")[0]) or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole programs first: at the end one worker would still run one, and the others nothing."""
    items.sort(key=lambda item: item.path.parent.name != "tests")


def pytest_collection_finish() -> None:
    """Tests and what they import stay to the end: garbage is never looked for among them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


@pytest.fixture(scope="session")
def seeds() -> Callable[[int, int], int]:
    """`seeds(default, campaign)`: how many seeds this run tries, few in a test, many at night.

    With a default of 0 the test is one for the night, and skipped by day.
    """

    def number(default: int, campaign: int) -> int:
        if not default and not CAMPAIGN:
            pytest.skip("too large for every day: make campaign")
        return campaign if CAMPAIGN else default

    return number


@pytest.fixture(scope="session", autouse=True)
def _no_network_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs on this machine, and which context somebody chose, is nothing to a test."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patched.setenv(name, str(home / name))
        for name in ("CONTEXT", "SERVERS", "CREDENTIALS", "INSECURE"):
            patched.delenv(f"PLANARIA_{name}", raising=False)
        patched.delenv("XDG_RUNTIME_DIR", raising=False)
        yield


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Real processes in a directory of their own; none outlives its test."""
    with Processes(tmp_path) as found:
        yield found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if made.returncode:
        pytest.skip(f"needs the right to mount a small disk: {made.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
