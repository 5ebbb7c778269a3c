"""Modules that are imported when something of them is first used.

numpy is a third of what a node would load before it serves, and most commands never need it. Where
it is imported with `Later`, the import of its types stands under TYPE_CHECKING.
"""

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module; what was used of it once is found as quickly as in the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)
        return found
