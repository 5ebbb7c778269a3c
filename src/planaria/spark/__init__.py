"""Planaria and Spark: the laboratory, with seeded simulations as tasks, and topics as tables.

`PlanariaDataSource` is loaded when it is first asked for: simulations need no data source.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planaria.spark.datasource import PlanariaDataSource

__all__ = ["PlanariaDataSource"]


def __getattr__(name: str) -> Any:
    """The public thing called `name`, from the module that has it."""
    if name == "PlanariaDataSource":
        from planaria.spark.datasource import PlanariaDataSource

        return PlanariaDataSource
    raise AttributeError(f"planaria.spark has no public name {name!r}")
