"""Do arrays, real nodes, the exact chain and the corrected formulas agree?"""

from collections.abc import Iterator, Mapping
from math import sqrt

from planaria.studies.damulticast.runs import NODE_EVENTS
from planaria.studies.facts import Found, Summary, most, total
from planaria.studies.judge import Fact, exactly

SLACK = 0.002  # relative, beside intervals that may be narrow: agreement to a five-hundredth
COMPARED = ("sent", "up_sent", "up_received", "of_all", "p_all")
SOLVED = ("(16)", "(23)", "(28)")


def facts(found: Found, known: Mapping[str, Fact], groups: list[str]) -> Iterator[tuple[str, Fact]]:
    """How far off things are at worst, 1 being as far as allowed; what must not happen, counted."""
    yield "nodes off", _largest(nodes_off(found["nodes"], known, groups))
    yield "exact off", _largest(chain_off(found["exact"], known, groups))
    yield "messages off", _messages_off(known)
    yield "dials short", _largest(_short(found["dials"], known))
    every = [f"{group} {name}" for group in groups for name in ("parasites", "repeated")]
    for name in ("parasites", "repeated"):
        counts = [found["nodes"][it] for it in every if it.endswith(name)]
        yield f"nodes {name}", exactly(sum(total(it).value or 0.0 for it in counts))
    ours = found["links"].where(reading="planaria")["right"]
    yield "links wrong", exactly(ours.runs - ours.total if ours.runs else None, ours.runs)
    healed = found["healing"]["healed"]
    yield "healing failed", exactly(healed.runs - healed.total if healed.runs else None)
    solved = found["formulas"].where(formula=list(SOLVED))["corrected"]
    yield "tuning off", most(solved)


def _largest(values: list[float]) -> Fact:
    return exactly(max(values, default=None))


def _width(fact: Fact) -> float:
    return 0.0 if fact.low is None or fact.high is None else fact.high - fact.low


def nodes_off(nodes: Summary, known: Mapping[str, Fact], groups: list[str]) -> list[float]:
    """Arrays and real nodes, of events on the bottom topic.

    Allowed are twice both 95% intervals together: some hundred comparisons are made. The nodes' is
    at least what the arrays' would be of as few events.
    """
    found = []
    for at, _ in nodes.where(event_group=groups[-1]).by("failures", "failed"):
        where = f"{at['failures']} {at['failed']}"
        for what in (f"{group} {name}" for group in groups for name in COMPARED):
            arrays = known.get(f"planaria {where} {what}")
            real = known.get(f"nodes on {groups[-1]} {where} {what}")
            if arrays is None or real is None or arrays.value is None or real.value is None:
                continue
            as_few = _width(arrays) * sqrt(arrays.runs / (real.runs * NODE_EVENTS))
            # Means that are all alike by luck have wide intervals: the arrays' count then.
            wide = as_few if real.low is None else min(max(_width(real), as_few), 4 * as_few)
            allowed = sqrt(_width(arrays) ** 2 + wide**2) + SLACK * max(1.0, abs(real.value))
            found.append(abs(arrays.value - real.value) / allowed)
    return found


def chain_off(exact: Summary, known: Mapping[str, Fact], groups: list[str]) -> list[float]:
    """Arrays and the exact chain, of either reading: four standard errors are allowed.

    Rare losses of a whole group are not normal yet with few runs.
    """
    found = []
    for at, part in exact.by("reading", "failures", "failed"):
        where = f"{at['reading']} {at['failures']} {at['failed']}"
        for group in groups:
            for name, chain in (("of_all", "of_all"), ("p_all", "p_all"), ("got", "p_reached")):
                arrays, value = known.get(f"{where} {group} {name}"), part[f"{group} {chain}"].mean
                if arrays is None or arrays.value is None:
                    continue
                coin = sqrt(max(0.0, value * (1 - value)))
                deviation = part[f"{group} deviation"].mean if name == "of_all" else coin
                allowed = 4 * deviation / sqrt(arrays.runs) + 3 / arrays.runs
                found.append(abs(arrays.value - value) / allowed)
    return found


def _messages_off(known: Mapping[str, Fact]) -> Fact:
    """Messages beside the corrected formula."""
    pair = [known.get(it) for it in ("planaria stillborn 0.0 all messages", "corrected messages")]
    values = [it.value for it in pair if it is not None and it.value is not None]
    return exactly(max(values) / min(values) - 1 if len(values) == len(pair) else None)


def _short(dials: Summary, known: Mapping[str, Fact]) -> list[float]:
    """By how much the dials miss their targets, beyond the error."""
    ends = [
        (at["target"], known[f"dials {at['target']} everybody"]) for at, _ in dials.by("target")
    ]
    return [max(0.0, target - (fact.high or 0.0)) for target, fact in ends]
