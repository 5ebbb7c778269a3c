"""How a trial ended, for programs and for people."""

from typing import Any

from msgspec import to_builtins

from planaria import __version__
from planaria.cli.tables import WIDTH, command, counted, filled, folded
from planaria.core.errors import InvariantViolation
from planaria.core.overlay import Violation
from planaria.simulator.nemesis import Injection
from planaria.simulator.trial import Outcome, Trial

VIOLATIONS_SHOWN = 20
# What the table says in words of its own; every other key of the summary is a line as it is.
SHOWN = (
    "intervals", "bound", "delay", "promised", "violations", "relapse", "faults", "workload",
    "failure", "version", "replay",
)  # fmt: skip


def summary(
    trial: Trial, outcome: Outcome, violation: InvariantViolation | None, shrunk: str | None
) -> dict[str, Any]:
    """What programs read; the overlay's metrics stand beside the keys that all overlays share."""
    spec = trial.spec
    failure = None
    if violation is not None:
        failure = {
            "checker": violation.checker,
            "tick": violation.tick,
            "detail": violation.detail,
            "shrunk": shrunk,
        }
    return {
        **to_builtins(outcome.metrics),
        "overlay": spec.asked[0],
        "n": trial.n,
        "seed": spec.seed,
        "start": spec.start,
        "legitimate": outcome.legitimate if outcome.members else None,
        "intervals": outcome.intervals,
        "messages": outcome.messages,
        "bound": outcome.bound,
        "delay": outcome.delay,
        "promised": outcome.promised,
        "violations": [_shown(trial, it) for it in outcome.violations[:VIOLATIONS_SHOWN]],
        "relapse": [_shown(trial, it) for it in outcome.relapse[:VIOLATIONS_SHOWN]],
        "faults": [_injected(it) for it in outcome.faults if it.kind != "publish"],
        "workload": [_injected(it) for it in outcome.faults if it.kind == "publish"],
        "failure": failure,
        "version": __version__,
        "replay": spec.command(trial.overlay),
    }


def _shown(trial: Trial, violation: Violation) -> dict[str, Any]:
    place = None if violation.node is None else trial.overlay.called(violation.node)
    return {**to_builtins(violation), "where": place, "detail": trial.with_names(violation.detail)}


def _injected(it: Injection) -> dict[str, Any]:
    return {"action": it.action, "injected": it.injected, "affected": it.affected}


def table(summary: dict[str, Any]) -> str:
    """What people read."""
    yes = f"yes, after {counted(summary['intervals'], 'interval')}"
    healed = {True: yes, False: "no", None: "nobody is left"}[summary["legitimate"]]
    if not summary["promised"]:
        healed += "; not promised where messages take so long"
    rows = [(name, str(summary[name])) for name in ("overlay", "n", "seed", "start")]
    rows += [("legitimate", healed), ("messages", str(summary["messages"]))]
    if summary["bound"] is not None:
        longest = f"messages of up to {summary['delay']:g}"
        rows.append(("bound", f"{counted(summary['bound'], 'interval')}, with {longest}"))
    shown = [*SHOWN, *(name for name, _ in rows)]
    rows += [
        (name if not line else "", text)
        for name, value in summary.items()
        if name not in shown
        for line, text in enumerate(_lines(value))
    ]
    for it in summary["faults"]:
        effect = f"(injected {it['injected']}, affected {it['affected']})"
        rows.append(("fault", f"{it['action']}  {effect}"))
    for it in summary["workload"]:
        rows.append(("workload", f"{it['action']}  ({it['affected']} done)"))
    for name in ("violations", "relapse"):
        for it in summary[name]:
            where = "" if it["where"] is None else f" at {it['where']}"
            rows.append((name, f"{it['invariant']}{where}: {it['detail']}"))
    failure = summary["failure"]
    if failure:
        when = f"seed {summary['seed']}, tick {failure['tick']}"
        rows.append(("failed", f"{failure['checker']}, {when}"))
    rows.append(("replay", summary["replay"]))
    if failure and failure["shrunk"]:
        rows.append(("smaller", failure["shrunk"]))
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(line for name, value in rows for line in _row(name, value, width))


def _row(name: str, value: str, width: int) -> list[str]:
    """A name and its value; what does not fit stands below its name."""
    line = (f"{name:<{width}}{value}" if name else f"  {value}").rstrip()
    if len(line) <= WIDTH:
        return [line]
    return [
        name,
        *(command(value) if value.startswith("planaria ") else filled(f"  {value}", "  ")),
    ]


def _lines(value: Any) -> list[str]:
    """A value on one line; records, listed or named, as a table below, half widths left to JSON."""
    if isinstance(value, dict) and value and all(isinstance(it, dict) for it in value.values()):
        value = [{"": name, **record} for name, record in value.items()]
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return [_value(value)]
    names = [name for name in value[0] if not name.endswith("_95")]
    records = [[_value(record[name]) for name in names] for record in value]
    return ["", *folded([names, *records], width=WIDTH - 2)]


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
