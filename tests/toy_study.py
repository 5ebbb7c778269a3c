"""A study of a paper that says: twice x is x + x, and twice x is x times x."""

from collections.abc import Mapping

from planaria.spark.grid import Cell, crossed
from planaria.spark.sweep import Result
from planaria.studies.charts import Point, lines
from planaria.studies.facts import Found, Summed, exact, most
from planaria.studies.judge import Asked, Claim, Facts, Promise, exactly, only
from planaria.studies.study import REAL, VERDICTS, WHOLE, Experiment, Study, Tables

SIZES = {"quick": [1, 2, 3], "paper": [1, 2, 3, 4], "beyond": [1, 2, 3, 4, 5]}
SUMMED = Summed(("x",), {"twice": "twice"})
ASKED = Asked(
    (
        Claim("sum <&>", "=", 6.0, "twice"),
        Claim("square", "=", 9.0, "twice", "letter", meaning="slip"),
    ),
    (Promise("small", "<=", 8.0, "most"),),
)
PAGE = """<p>There are {{ tables.points|length }} points.</p>
{{ figure("line", "A line") }}
{{ table("points", "All points") }}"""


def double(cell: Cell) -> Result:
    return Result({"twice": 2.0 * float(cell.parameters["x"])})


def fragile(cell: Cell) -> Result:
    if cell.parameters["x"] == 3:
        raise KeyError("three")
    return double(cell)


def experiments(scale: str) -> list[Experiment]:
    cells = crossed({"x": SIZES[scale]}, [0])
    return [Experiment("double", {"twice": "float64"}, double, cells, SUMMED, share=2)]


def fragile_experiments(scale: str) -> list[Experiment]:
    cells = crossed({"x": SIZES[scale]}, [0])
    return [Experiment("double", {"twice": "float64"}, fragile, cells, SUMMED, share=2)]


def facts(found: Found) -> Facts:
    runs = found["double"]
    three = exact(runs.where(x=3)["twice"])
    return only(twice=three, letter=exactly(10.0), most=most(runs["twice"]))


def tables(found: Found) -> Tables:
    return {"points": [{**at, "twice": it["twice"].mean} for at, it in found["double"].by("x")]}


def figures(read: Tables) -> Mapping[str, str]:
    points = [Point(row["x"], row["twice"]) for row in read["points"]]
    return {"line": lines({"twice": points}, x="x", y="y")}


PROMISED = {"points": {"x": WHOLE, "twice": REAL}, **VERDICTS}
STUDY = Study(
    "toy", "A toy", "Nobody: Nothing. 2026.", PROMISED, experiments,
    lambda _: ASKED, facts, tables, figures, PAGE,
)  # fmt: skip
FRAGILE = Study(
    "toy", "A toy", "Nobody.", PROMISED, fragile_experiments,
    lambda _: ASKED, facts, tables, figures, PAGE,
)  # fmt: skip
