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


@pytest.fixture(scope="session")
def seeds() -> Callable[[int, int], int]:
    """`seeds(default, campaign)`: how many seeds this run tries, few in a test, many at night."""

    def number(default: int, campaign: int) -> int:
        return campaign if CAMPAIGN else default

    return number
