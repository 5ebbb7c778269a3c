"""From the runs of the study of link reversal to its facts and tables."""

from collections.abc import Mapping
from functools import reduce
from operator import add

from planaria.studies.facts import (
    Found,
    Moments,
    Summary,
    Summed,
    exact,
    fraction,
    most,
    named,
    share,
    total,
)
from planaria.studies.judge import Fact, Facts, exactly, only
from planaria.studies.mobile.questions import QUESTIONS
from planaria.studies.study import REAL, VERDICTS, WHOLE, WORD, Columns, Table, Tables

PROMISED: Mapping[str, Columns] = {
    **VERDICTS,
    "fairness": {
        "graph": WORD,
        "executions": REAL,
        "ratio": REAL,
        "longest_wait": WHOLE,
        "sends": REAL,
        "rounds_mean": REAL,
        "rounds_max": WHOLE,
    },
    "cases": {"question": WORD, "reading": WORD, **dict.fromkeys(("n", "failing", "cases"), WHOLE)},
    "cost": {
        "graph": WORD,
        "orientation": WORD,
        **dict.fromkeys(("links", "rounds", "sends", "flooding", "table_4"), REAL),
    },
    "healing": {
        "orientation": WORD,
        "graph": WORD,
        "start": WORD,
        "intervals": REAL,
        **dict.fromkeys(("max", "missed", "longest_wait"), WHOLE),
    },
    "connections": dict.fromkeys(("f", "gone", "sets", "cutting"), WHOLE),
    "anonymity": {
        "graph": WORD,
        "observers": WORD,
        "walk": WHOLE,
        **dict.fromkeys(("blind", "first_sender", "best_guess", "bound"), REAL),
    },
}


SUMMED: Mapping[str, Summed] = {
    "questions": Summed(("question", "reading", "n"), named("failing", "cases")),
    "fairness": Summed(
        ("graph", "orientation"),
        named("executions", "ratio", "longest_wait", "silent", "nodes", "apart", "cyclic")
        | {"waited": "longest_wait / (2 * nodes)"},
    ),
    "spread": Summed(
        ("graph", "orientation", "echo"),
        named("links", "rounds", "rounds_max", "sends", "flooding", "table_4", "later")
        | named("spoken", "delivered", "duplicated")
        | {"copies": "sends / flooding", "printed_copies": "table_4 / flooding"}
        | {"per_link": "sends / links", "lacking": "delivered < 1"},
    ),
    "relay": Summed(("before",), {"lost": "not got"}),
    "healing": Summed(
        ("orientation", "graph", "start"),
        named("intervals", "missed", "duplicated", "longest_wait", "silent", "cyclic")
        | {"unhealed": "not healed"},
    ),
    "merging": Summed(
        ("links", "orientation"),
        named("nodes", "silent", "missed", "duplicated") | {"unhealed": "not healed"},
    ),
    "layers": Summed(("layers",), named("moved", "specified", "starved", "members")),
    "figure21": Summed(("processors",), named("first", "second")),
    "connections": Summed(("f", "gone"), named("sets", "cutting")),
    "anonymity": Summed(
        ("graph", "observers", "walk"),
        named("blind", "first_sender", "best_guess", "bound") | {"guessed": "best_guess / bound"},
    ),
}


def tables(found: Found) -> Tables:
    """The tables beside claims and checks."""
    return {
        "fairness": fairness(found),
        "cases": _cases(found["questions"]),
        "cost": _averages(found["spread"], ("graph", "orientation"), "cost"),
        "healing": _healing(found["healing"]),
        "connections": [
            {**at, "sets": round(runs["sets"].total), "cutting": round(runs["cutting"].total)}
            for at, runs in found["connections"].by("f", "gone")
        ],
        "anonymity": _averages(found["anonymity"], ("graph", "observers", "walk"), "anonymity"),
    }


def fairness(found: Found) -> Table:
    """Per graph, with heights: turns, waits, and what one publication costs."""
    rows = []
    for at, turns in found["fairness"].where(orientation="heights").by("graph"):
        news = found["spread"].where(orientation="heights", echo=False, **at)
        spread = news["sends"].runs > 0
        rows.append(
            {
                **at,
                "executions": turns["executions"].mean,
                "ratio": turns["ratio"].mean,
                "longest_wait": round(turns["longest_wait"].most),
                "sends": news["sends"].mean if spread else None,
                "rounds_mean": news["rounds"].mean if spread else None,
                "rounds_max": round(news["rounds_max"].most) if spread else None,
            }
        )
    return rows


def _cases(questions: Summary) -> Table:
    return [
        {**at, "failing": round(runs["failing"].total), "cases": round(runs["cases"].total)}
        for at, runs in questions.by("question", "reading", "n")
    ]


def _averages(runs: Summary, by: tuple[str, ...], table: str) -> Table:
    measures = [name for name in PROMISED[table] if name not in by]
    return [{**at, **{name: part[name].mean for name in measures}} for at, part in runs.by(*by)]


def _healing(runs: Summary) -> Table:
    return [
        {
            **at,
            "intervals": part["intervals"].mean,
            "max": round(part["intervals"].most),
            "missed": round(part["missed"].total),
            "longest_wait": round(part["longest_wait"].most),
        }
        for at, part in runs.by("orientation", "graph", "start")
    ]


def facts(found: Found) -> Facts:
    """All that claims and checks speak of; `printed_` ones are what the paper's text gives."""
    return only(
        **_answers(found["questions"]),
        **_model(found["figure21"], found["layers"], found["connections"]),
        **_changes(found["healing"], found["merging"]),
        **_turns(found["fairness"]),
        **_news(found["spread"], found["relay"]),
        **_observers(found["anonymity"]),
        **_losses(found),
    )


def _answers(asked: Summary) -> dict[str, Fact]:
    """Cases that fail, as a share of all cases of a question and reading; and Lemma 5's states."""
    # From heights that are not level a sink may stay a sink for a second turn: said, not promised.
    ours = asked.where(reading="ours", question=lambda name: name != "step_again")
    found = {"small": total(ours["failing"])}
    for name, question in QUESTIONS.items():
        for reading, prefix in (("ours", ""), ("literal", "printed_")):
            if getattr(question, reading) is not None:
                runs = asked.where(question=name, reading=reading)
                fact = part_of(runs["failing"], runs["cases"])
                found[prefix + name] = fact if question.drawn else exactly(fact.value, fact.runs)
    for prefix in ("", "printed_"):
        # If a scheme with two states starves nobody two are enough, else it takes three.
        starving = found[f"{prefix}two_states"].value
        found[f"{prefix}states"] = exactly(None if starving is None else 2 + (starving > 0))
    return found


def part_of(some: Moments, every: Moments) -> Fact:
    """A share by counts: so many of so many."""
    count = round(every.total)
    return share(Moments(count, 0, some.total / count)) if count else Fact()


def _model(figure_2_1: Summary, layers: Summary, connections: Summary) -> dict[str, Fact]:
    """Sections 2 and 3.1."""
    found = {
        "first": exact(figure_2_1["first"]),
        "second": exact(figure_2_1["second"]),
        "layer_moved": share(layers["moved"]),
        "layers_moved": total(layers["moved"]),
        "specified": share(layers["specified"]),
        "layer_starving": part_of(layers["starved"], layers["members"]),
    }
    for f in (2, 3):
        runs = connections.where(f=f, gone=f - 1)
        found[f"cutting_{f}"] = part_of(runs["cutting"], runs["sets"])
    return found


def _changes(healing: Summary, merging: Summary) -> dict[str, Fact]:
    """Newcomers that wait for sinks, nodes that move, parts."""
    ring = healing.where(graph="ring:5", orientation="edge-bits")
    moving = healing.where(graph=lambda graph: graph.startswith("waypoint"))
    return {
        "waiting": share(ring["silent"]),
        "moving": total(moving["missed"]),
        "parted": part_of(merging["silent"], merging["nodes"]),
    }


def _turns(fairness: Summary) -> dict[str, Fact]:
    """Section 3.3: whose turn it is."""
    return {
        "silent": part_of(fairness["silent"], fairness["nodes"]),
        "apart": most(fairness["apart"]),
        "waited": most(fairness["waited"]),
    }


def _news(spread: Summary, relay: Summary) -> dict[str, Fact]:
    """Section 4: how news spread, and what Table 4 as printed sends in forty rounds."""
    ours = spread.where(orientation="heights")
    small, path = "grid:3x3", lambda graph: graph.startswith("path:")
    lost = relay.where(before=False)["lost"]
    return {
        "spoken": fraction(ours["spoken"]),
        "delivered": fraction(ours["delivered"]),
        "copies": most(ours.where(echo=False, graph=small)["copies"]),
        "echo": most(ours.where(echo=True, graph=small)["copies"]),
        "path": most(ours.where(echo=False, graph=path)["copies"]),
        "printed_copies": exact(spread.where(graph=small)["printed_copies"]),
        "printed_path": exact(spread.where(graph=path)["printed_copies"]),
        "per_link": most(spread.where(echo=False)["per_link"]),
        "later": most(spread["later"]),
        "relay": share(lost),
        "relays_lost": total(lost),
    }


def _observers(anonymity: Summary) -> dict[str, Fact]:
    """Note 5."""
    grid = anonymity.where(
        graph=lambda graph: graph.startswith("grid"), observers=lambda who: "+" not in who
    )
    return {
        "named": fraction(grid.where(walk=0)["first_sender"]),
        "walked": fraction(grid.where(walk=lambda steps: steps > 0)["first_sender"]),
        "guessed": most(anonymity["guessed"]),
    }


def _losses(found: Found) -> dict[str, Fact]:
    """All that must not happen in any run."""
    healing, merging, spread = found["healing"], found["merging"], found["spread"]
    happened = {
        "unhealed": (healing["unhealed"], merging["unhealed"]),
        "missed": (healing["missed"], merging["missed"], spread["lacking"]),
        "duplicated": (healing["duplicated"], merging["duplicated"], spread["duplicated"]),
        "cycles": (healing["cyclic"], found["fairness"]["cyclic"]),
    }
    return {name: total(reduce(add, parts)) for name, parts in happened.items()}
