"""The figures of the link reversal paper's study in one row, from the rows of its runs."""

import pyspark.sql.functions as sql
from pyspark.sql import Column, DataFrame, SparkSession

from planaria.studies import verdicts
from planaria.studies.mobile.questions import COLUMNS, QUESTIONS
from planaria.studies.study import Rows


def figures(spark: SparkSession, rows: Rows) -> DataFrame:
    """All figures in one row; `printed_` ones are what the paper's text alone gives."""
    return verdicts.settle(
        spark,
        _answers(rows["questions"]),
        *_model(rows["figure21"], rows["layers"], rows["connections"]),
        *_changes(rows["healing"], rows["merging"]),
        _turns(rows["fairness"]),
        *_news(rows["spread"], rows["relay"]),
        _observers(rows["anonymity"]),
        _losses(rows),
    )


def _answers(asked: DataFrame) -> DataFrame:
    """Cases that fail, as a share of all cases of a question and reading; and Lemma 5's states."""
    # From heights that are not level a sink may stay a sink for a second turn: said, not promised.
    ours = (sql.col("reading") == "ours") & (sql.col("question") != "step_again")
    facts = {"small": sql.sum(sql.when(ours, sql.col("failing")))}
    for name, question in QUESTIONS.items():
        for reading, prefix in (("ours", ""), ("literal", "printed_")):
            if getattr(question, reading) is not None:
                which = (sql.col("question") == name) & (sql.col("reading") == reading)
                failing, cases = (sql.sum(sql.when(which, sql.col(it))) for it in COLUMNS)
                facts[prefix + name] = failing / cases
    # If a scheme with two states starves nobody two are enough, else it takes three.
    states = {
        f"{prefix}states": sql.expr(f"2 + int({prefix}two_states != 0)")
        for prefix in ("", "printed_")
    }
    return _named(asked, facts).withColumns(states)


def _model(figure_2_1: DataFrame, layers: DataFrame, connections: DataFrame) -> list[DataFrame]:
    """Sections 2 and 3.1."""
    seen = _named(figure_2_1, {"first": sql.avg("first"), "second": sql.avg("second")})
    independent = {
        "layer_moved": sql.avg("moved"),
        "specified": sql.avg("specified"),
        "layer_starving": sql.try_divide(sql.sum("starved"), sql.sum("members")),
    }
    cut = {}
    for f in (2, 3):
        asked = (sql.col("f") == f) & (sql.col("gone") == f - 1)
        cutting, sets = (sql.sum(sql.when(asked, sql.col(it))) for it in ("cutting", "sets"))
        cut[f"cutting_{f}"] = cutting / sets
    return [seen, _named(layers, independent), _named(connections, cut)]


def _changes(healing: DataFrame, merging: DataFrame) -> list[DataFrame]:
    """Newcomers that wait for sinks, nodes that move, parts."""
    ring = (sql.col("graph") == "ring:5") & (sql.col("orientation") == "edge-bits")
    moving = sql.col("graph").startswith("waypoint")
    healed = {
        "waiting": _among(ring, sql.col("silent")),
        "moving": sql.sum(sql.when(moving, sql.col("missed"))),
    }
    parted = {"parted": sql.sum("silent") / sql.sum("nodes")}
    return [_named(healing, healed), _named(merging, parted)]


def _turns(fairness: DataFrame) -> DataFrame:
    """Section 3.3: whose turn it is."""
    return _named(
        fairness,
        {
            "silent": sql.sum("silent") / sql.sum("nodes"),
            "apart": sql.max("apart"),
            "waited": sql.max(sql.col("longest_wait") / (2 * sql.col("nodes"))),
        },
    )


def _news(spread: DataFrame, relay: DataFrame) -> list[DataFrame]:
    """Section 4: how news spread, and what Table 4 as printed sends in forty rounds."""
    heights, echo = sql.col("orientation") == "heights", sql.col("echo")
    small, path = sql.col("graph") == "grid:3x3", sql.col("graph").startswith("path:")
    sends, printed = (sql.col(it) / sql.col("flooding") for it in ("sends", "table_4"))
    spreading = {
        "spoken": _among(heights, sql.col("spoken")),
        "delivered": _among(heights, sql.col("delivered")),
        "copies": _among(heights & ~echo & small, sends),
        "echo": _among(heights & echo & small, sends),
        "path": _among(heights & ~echo & path, sends),
        "printed_copies": _among(small, printed),
        "printed_path": _among(path, printed),
        "per_link": sql.max(sql.when(~echo, sql.col("sends") / sql.col("links"))),
        "later": sql.max("later"),
    }
    lost = {"relay": _among(~sql.col("before"), (~sql.col("got")).cast("int"))}
    return [_named(spread, spreading), _named(relay, lost)]


def _observers(anonymity: DataFrame) -> DataFrame:
    """Note 5."""
    first, still = sql.col("first_sender"), sql.col("walk") == 0
    grid = sql.col("graph").startswith("grid") & ~sql.col("observers").contains("+")
    centre = sql.col("graph").startswith("star") & (sql.col("observers") == "0")
    return _named(
        anonymity,
        {
            "named": _among(grid & still, first),
            "centre": _among(centre & still, first),
            "walked": _among(grid & ~still, first),
            "guessed": sql.max(sql.col("best_guess") / sql.col("bound")),
        },
    )


def _losses(rows: Rows) -> DataFrame:
    """All that must not happen in any run."""
    names = ("healed", "missed", "duplicated", "cyclic")
    yes, no = sql.lit(True).alias("healed"), sql.lit(0)
    lacking = (sql.col("delivered") < 1).cast("int")
    every = (
        rows["healing"]
        .select(*names)
        .union(rows["merging"].select("healed", "missed", "duplicated", no))
        .union(rows["spread"].select(yes, lacking, "duplicated", no))
        .union(rows["fairness"].select(yes, no, no, "cyclic"))
    )
    return _named(
        every,
        {
            "unhealed": sql.sum((~sql.col("healed")).cast("int")),
            "missed": sql.sum("missed"),
            "duplicated": sql.sum("duplicated"),
            "cycles": sql.sum("cyclic"),
        },
    )


def _among(which: Column, value: Column) -> Column:
    """The mean of `value` among the rows asked for."""
    return sql.avg(sql.when(which, value))


def _named(rows: DataFrame, facts: dict[str, Column]) -> DataFrame:
    return rows.agg(*(fact.alias(name) for name, fact in facts.items()))
