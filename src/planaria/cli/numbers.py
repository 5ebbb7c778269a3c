"""Numbers as options take them."""

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number within bounds; click lets nan pass all bounds, and inf where one is missing."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As click does; no other number is finite."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
