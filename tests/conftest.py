"""What all tests share: how many seeds to run, and Hypothesis without a clock or a memory.

`make test` repeats the same runs everywhere; `make campaign` (PLANARIA_CAMPAIGN=1) hunts for new
ones with many more.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send all tests of the Spark session to one worker: Java takes longer than most of them."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


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
