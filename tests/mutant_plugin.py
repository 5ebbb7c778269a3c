"""A pytest plugin: run tests with one rule left out (`PLANARIA_MUTANT`, its number in the list)."""

import os
from contextlib import ExitStack

import pytest

from planaria.verify.mutants import MUTANTS
from planaria.verify.mutation import mutated

_bent = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    _bent.enter_context(mutated(MUTANTS[int(os.environ["PLANARIA_MUTANT"])]))


def pytest_unconfigure(config: pytest.Config) -> None:
    _bent.close()
