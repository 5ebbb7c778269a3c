"""`planaria filter`: explains a condition, and whether one covers or overlaps another."""

import json
from typing import Any

import click
from msgspec import to_builtins

from planaria.cli.groups import Group
from planaria.filters.filters import Filter, covers, matches, merge, overlaps, witness
from planaria.filters.sql import parse
from planaria.filters.timestamps import Timestamp
from planaria.filters.wording import to_sql

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")


@click.group("filter", cls=Group)
def filters() -> None:
    """Explain and compare conditions such as "price > 10 AND symbol IN ('A','B')"."""


@filters.command()
@click.argument("condition")
@JSON
def explain(condition: str, as_json: bool) -> None:
    """Print the filters that CONDITION becomes, and a notification that passes each."""
    found = [_explained(filter) for filter in parse(condition)]
    if as_json:
        click.echo(json.dumps({"condition": condition, "filters": found}))
        return
    for number, one in enumerate(found, 1):
        click.echo(f"filter {number} of {len(found)}: {one['sql']}")
        for name, wanted in one["constraints"].items():
            click.echo(f"  {name}: {wanted}")
        click.echo(f"  passes, for example: {json.dumps(one['example'])}")


@filters.command("covers")
@click.argument("general")
@click.argument("special")
@JSON
def does_cover(general: str, special: str, as_json: bool) -> int:
    """Check whether GENERAL selects all that SPECIAL selects. Exit code 0: yes; 1: no.

    A filter counts as covered if one filter of GENERAL covers it, which is what routing uses.
    """
    wide = parse(general)
    uncovered = [f for f in parse(special) if not any(covers(g, f) for g in wide)]
    lacking = f"{to_sql(uncovered[0])} is not covered" if uncovered else None
    return _answer("covers", not uncovered, as_json, lacking)


@filters.command("overlaps")
@click.argument("one")
@click.argument("other")
@JSON
def do_overlap(one: str, other: str, as_json: bool) -> int:
    """Check whether some notification satisfies both conditions. Exit code 0: yes; 1: no."""
    found = any(overlaps(f, g) for f in parse(one) for g in parse(other))
    return _answer("overlaps", found, as_json, None)


@filters.command("merge")
@click.argument("one")
@click.argument("other")
@JSON
def do_merge(one: str, other: str, as_json: bool) -> int:
    """Print the filter that selects exactly what ONE or OTHER selects. Exit code 1: none does."""
    left, right = parse(one), parse(other)
    merged = merge(left[0], right[0]) if len(left) == len(right) == 1 else None
    return _answer(
        "merges", merged is not None, as_json, None if merged is None else to_sql(merged)
    )


def _answer(question: str, answer: bool, as_json: bool, detail: str | None) -> int:
    if as_json:
        click.echo(json.dumps({question: answer, "detail": detail}))
    else:
        click.echo(("yes" if answer else "no") + (f": {detail}" if detail else ""))
    return 0 if answer else 1


def _explained(filter: Filter) -> dict[str, Any]:
    example = witness(filter)
    assert example is None or matches(filter, example)
    one_by_one = {name: to_sql(Filter(((name, values),))) for name, values in filter.constraints}
    shown = None
    if example is not None:
        shown = {n: str(v) if isinstance(v, Timestamp) else v for n, v in example.items()}
    return {
        "sql": to_sql(filter),
        "constraints": one_by_one,
        "example": shown,
        "filter": to_builtins(filter),
    }
