"""The report: what each paper says, what its text gives, what Planaria measures, side by side.

One HTML file with everything in it, for a screen and for paper.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from planaria.studies.judge import MEANINGS, causes, counted, together
from planaria.studies.study import Row, Study, Table, Tables, said

ROWS_SHOWN = 60  # of one table; all of them are in its CSV
LISTED = ("claims", "literal", "checks")  # these have their own place on every page


class Page(Struct, frozen=True):
    """What became of one study."""

    study: Study
    tables: Tables
    figures: Mapping[str, str]
    errors: Sequence[Row]


def report(pages: Sequence[Page], scale: str, version: str) -> str:
    """The whole document."""
    shown = [_page(page) for page in pages]
    template = environment().get_template("report.html")
    return template.render(
        pages=shown, scale=scale, version=version, style=style(), meanings=MEANINGS
    )


def environment() -> Environment:
    """Templates that refuse names they do not know."""
    found = Environment(
        loader=PackageLoader("planaria.studies", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"figure": figure, "number": number, "percent": percent}
    return found


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


def number(value: float) -> str:
    """A figure within a sentence."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 0.9 or value >= 1 else f"{value:.4g}"


def percent(value: float) -> str:
    """A share within a sentence."""
    return f"{100 * value:.3g} %"


def claims_beside_literal(tables: Tables) -> list[dict[str, Any]]:
    """Each claim with what the paper's text alone gives for it, if that was tried."""
    texts = {(row["claim"], row.get("n")): row for row in tables["literal"]}
    rows = []
    for claim in tables["claims"]:
        same = texts.get((claim["claim"], claim.get("n")), {"literal": None, "holds": None})
        rows.append({**claim, "literal": same["literal"], "literal_holds": same["holds"]})
    return rows


def _page(page: Page) -> dict[str, Any]:
    claims = claims_beside_literal(page.tables)
    letters = [
        together([row for row in same if row["literal_holds"]], "literal_holds")
        for same in causes(claims).values()
    ]
    return {
        "study": page.study,
        "claims": claims,
        "sized": any("n" in claim for claim in claims),
        "counts": counted(claims),
        "literal_no": letters.count("no"),
        "checks": page.tables["checks"],
        "checks_no": sum(check["holds"] != "yes" for check in page.tables["checks"]),
        "errors": page.errors,
        "body": body(page),
        "files": [name for name in page.tables if name not in LISTED],
    }


def body(page: Page) -> Markup:
    """The study's own template, filled from its tables and figures."""
    lookup = environment()
    macros: Any = lookup.get_template("blocks.html").module

    def shown(name: str, caption: str) -> Any:
        rows = page.tables[name]
        columns = list(page.study.promised[name])
        numeric = [it for it in columns if _numeric(rows, it)]
        left_out = max(0, len(rows) - ROWS_SHOWN)
        part = (rows[:ROWS_SHOWN], columns, numeric, left_out)
        return macros.table(page.study.name, name, caption, *part)

    def drawn(name: str, caption: str) -> Any:
        # As an image: the ids inside one figure must not meet those of another.
        data = b64encode(page.figures[name].encode()).decode()
        return macros.figure(page.study.name, name, caption, data)

    context = {
        "said": partial(said, page.tables),
        "tables": page.tables,
        "table": shown,
        "figure": drawn,
        "counts": counted(page.tables["claims"]),
        "at": at,
        **page.study.numbers(page.tables),
    }
    return Markup(lookup.from_string(page.study.page).render(context))  # noqa: S704  ours


def at(rows: Table, **where: object) -> Row:
    """The row of a table in which these columns have these values."""
    return next(row for row in rows if all(row[key] == value for key, value in where.items()))


def _numeric(rows: Table, column: str) -> bool:
    values = [row[column] for row in rows]
    return all(isinstance(it, int | float | None) and not isinstance(it, bool) for it in values)


def style() -> Markup:
    """The style sheet of all pages."""
    css = files("planaria.studies").joinpath("templates/report.css").read_text(encoding="utf-8")
    return Markup(css)  # noqa: S704  ours
