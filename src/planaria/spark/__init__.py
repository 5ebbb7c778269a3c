"""Planaria and Spark: the laboratory, with seeded simulations as tasks, and topics as tables.

The names below are loaded when they are first asked for: simulations need no data source.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planaria.spark.datasource import PlanariaDataSource
    from planaria.spark.sessions import session

__all__ = ["PlanariaDataSource", "session"]

_PLACES = {"PlanariaDataSource": "datasource", "session": "sessions"}


def __getattr__(name: str) -> Any:
    """The public thing called `name`, from the module that has it."""
    if name not in _PLACES:
        raise AttributeError(f"planaria.spark has no public name {name!r}")
    return getattr(import_module(f"planaria.spark.{_PLACES[name]}"), name)
