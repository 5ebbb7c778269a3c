"""The report: what each paper says, what its text gives, what Planaria measures, side by side.

One HTML file with everything in it, for a screen and for paper.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from planaria.studies.study import Block, Figure, Prose, Shown, Study, Table

ROWS_SHOWN = 60  # of one table; all of them are in its CSV
LISTED = ("claims", "literal", "checks")  # these have their own place on every page


class Page(Struct, frozen=True):
    """What became of one study."""

    study: Study
    tables: Mapping[str, Table]
    blocks: Sequence[Block]
    errors: Sequence[Mapping[str, Any]]


def report(pages: Sequence[Page], scale: str, version: str) -> str:
    """The whole document."""
    environment = Environment(
        loader=PackageLoader("planaria.studies", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = figure
    template = environment.get_template("report.html")
    return template.render(
        pages=[_page(page) for page in pages], scale=scale, version=version, style=_style()
    )


def figure(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return f"{int(value):,}"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def claims_beside_literal(tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """Each claim with what the paper's text alone gives for it, if that was tried."""
    rows = []
    for claim in tables["claims"]:
        same = [
            row
            for row in tables["literal"]
            if row["claim"] == claim["claim"] and row.get("n") == claim.get("n")
        ]
        literal = same[0] if same else {"literal": None, "holds": None}
        rows.append({**claim, "literal": literal["literal"], "literal_holds": literal["holds"]})
    return rows


def _page(page: Page) -> dict[str, Any]:
    claims = claims_beside_literal(page.tables)
    return {
        "study": page.study,
        "claims": claims,
        "sized": any("n" in claim for claim in claims),
        "false": sum(not claim["holds"] for claim in claims),
        "literal_false": sum(claim["literal_holds"] is False for claim in claims),
        "checks": page.tables["checks"],
        "errors": page.errors,
        "blocks": [_block(page, block) for block in page.blocks],
        "files": [name for name in page.tables if name not in LISTED],
    }


def _block(page: Page, block: Block) -> dict[str, Any]:
    if isinstance(block, Prose):
        return {"kind": "prose", "html": Markup(block.html)}  # noqa: S704  the study's own words
    if isinstance(block, Figure):
        # As an image: the ids inside one figure must not meet those of another.
        data = b64encode(block.svg.encode()).decode()
        return {"kind": "figure", "name": block.name, "caption": block.caption, "data": data}
    rows = page.tables[block.table]
    return {
        "kind": "table",
        "name": block.table,
        "caption": block.caption,
        "columns": page.study.promised[block.table],
        "rows": rows[:ROWS_SHOWN],
        "left_out": max(0, len(rows) - ROWS_SHOWN),
        "numeric": _numeric(block, page),
    }


def _numeric(block: Shown, page: Page) -> list[str]:
    rows = page.tables[block.table]
    return [
        name
        for name in page.study.promised[block.table]
        if all(isinstance(row[name], int | float | None) for row in rows)
    ]


def _style() -> Markup:
    css = files("planaria.studies").joinpath("templates/report.css").read_text(encoding="utf-8")
    return Markup(css)  # noqa: S704  ours
