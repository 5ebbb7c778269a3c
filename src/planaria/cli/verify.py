"""`planaria verify MODEL`: search every state of a small network; does it always heal?"""

import json
import re
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from planaria.cli.main import INTERRUPTED
from planaria.cli.tables import aligned, counted
from planaria.cli.ticker import Ticker
from planaria.core.errors import UsageError
from planaria.spark.sessions import LABORATORY, MASTER_HELP, require, session
from planaria.verify.adversary import IN_FLIGHT, attack
from planaria.verify.cases import MODELS, Case, cases_of, find_model
from planaria.verify.check import STATES_MAX, Result, code_version
from planaria.verify.counterexample import counterexample
from planaria.verify.graph import Graph
from planaria.verify.model import First
from planaria.verify.sample import chosen, count, draws, sampled
from planaria.verify.wide import Judged, Wide

if TYPE_CHECKING:
    from planaria.spark.verify import Covered

ROUNDS_MAX = 100  # of an adversarial run
SAVE_SECONDS = 120  # between two checkpoints of a search that can be resumed


@click.command()
@click.argument("model", metavar="[MODEL]", default="")
@click.option("--n", type=click.IntRange(1), help="How many nodes.  [default: the usual cases]")
@click.option("--starts", help="Which first states; a wrong one names those there are.")
@click.option(
    "--channel",
    type=click.IntRange(0),
    help="Most messages in flight; 0: heard before the next timeout.  [default: 0; --tries: 64]",
)
@click.option(
    "--delay",
    type=click.IntRange(0, 3),
    default=0,
    help="Rounds within which a message is heard; 0: no bound.",
)
@click.option("--fifo", is_flag=True, help="Each link delivers in the order sent.")
@click.option("--states", type=int, default=STATES_MAX, show_default=True, help="Most states.")
@click.option("--part", metavar="A:B", help="Search from start A to before start B alone.")
@click.option(
    "--parts", type=click.IntRange(1), help="Spread the starts over Spark in so many parts."
)
@click.option("--master", metavar="URL", help=MASTER_HELP)
@click.option(
    "--wide",
    is_flag=True,
    help="Many more states, without the ways to them; findings name a --part that has one.",
)
@click.option(
    "--bursts",
    is_flag=True,
    help="Wide, and only states with nothing in flight are kept: more still; not where coins fall.",
)
@click.option(
    "--sample",
    type=click.IntRange(2),
    metavar="K",
    help="Search wide (or by --bursts) what K drawn starts reach: what share may lead to a fault?",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn.")
@click.option("--large", is_flag=True, help="Search the cases of a campaign as well.")
@click.option(
    "--tries",
    type=click.IntRange(0),
    default=0,
    help="Let adversarial schedulers try so many drawn first states instead.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=ROUNDS_MAX,
    show_default=True,
    help="Within which each of those must heal.",
)
@click.option("--resume", metavar="DIR", help="Save the search there, or resume it.")
@click.option(
    "--out",
    type=Path,
    metavar="DIR",
    help="Write counterexamples there, for `planaria sim --replay`.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def verify(model: str, **values: Any) -> int:
    """Search all states that MODEL reaches from a stated set of starts, under every order of steps.

    It looks for runs that are fair and never legitimate, states without a way out, legitimate
    states that do not last, exceptions and broken safety, in the protocols' own classes with
    small constants. Exit code 0: nothing found; 1: something was; 2: the command is wrong.
    """
    if not model:
        raise UsageError(f"missing MODEL: {', '.join(sorted(MODELS))}")
    if values["tries"]:
        return _attacked(model, values)
    cases = _cases(model, values)
    for name in ("resume", "part", "parts", "sample"):
        if values[name] is not None and len(cases) != 1:
            raise UsageError(f"--{name} needs one case: name --n and --starts")
    if values["sample"] is not None:
        return _sampled(cases[0], values)
    if values["parts"] is not None:
        return _spread(cases[0], values)
    if values["master"] is not None:
        raise UsageError("--master needs --parts: into how many the starts are divided")
    searched = _searched_wide if values["wide"] or values["bursts"] else _searched
    results = [searched(case, values) for case in cases]
    if values["as_json"]:
        click.echo(json.dumps([_as_json(it) for it in results]))
    else:
        click.echo("\n\n".join(map(in_words, results)))
    return 1 if any(it.findings for it in results) else 0


def _attacked(model: str, values: dict[str, Any]) -> int:
    """Adversarial schedulers, where there are too many states to visit them all."""
    if values["n"] is None:
        raise UsageError("--tries needs --n")
    known = find_model(model)
    tried = known(values["n"], values["starts"] or known.starts[0])
    channel = IN_FLIGHT if values["channel"] is None else values["channel"]
    outcomes = attack(tried, values["tries"], values["rounds"], channel=channel)
    if values["as_json"]:
        click.echo(json.dumps(to_builtins(outcomes)))
    else:
        names = ["scheduler", "tries", "failed", "of all", "p50", "most", "states"]
        rows = [
            [
                it.strategy,
                f"{it.tries:,}",
                f"{len(it.failed):,}",
                f"< {it.share:.2%}",
                f"{it.p50:g}",
                f"{it.most:,}",
                f"{it.states:,}",
            ]
            for it in outcomes
        ]
        click.echo("\n".join([f"{model}, n = {tried.n}, drawn of: {tried.covered}", ""]))
        click.echo("\n".join(aligned([names, *rows], range(1, len(names)))))
        for it in outcomes:
            for what in (*(f"seed {seed} did not heal" for seed in it.failed), *it.raised):
                click.echo(f"{it.strategy}: {what}")
    return 1 if any(it.failed or it.raised for it in outcomes) else 0


def _cases(model: str, values: dict[str, Any]) -> list[Case]:
    """The one that the options name, or the usual ones."""
    known = find_model(model)
    if values["n"] is None:
        if values["starts"] is not None:
            raise UsageError("--starts needs --n")
        return cases_of(model, large=values["large"])
    start = values["starts"] or known.starts[0]
    channel = values["channel"] or 0
    return [Case(model, values["n"], start, channel, values["delay"], fifo=values["fifo"])]


def _spread(case: Case, values: dict[str, Any]) -> int:
    """The parts of one search on Spark; repeated, the command resumes."""
    if values["wide"] or values["bursts"]:
        raise UsageError(
            "--parts are searched with the ways to states: neither --wide nor --bursts"
        )
    require()
    from planaria.spark.sweep import progress_line
    from planaria.spark.verify import Share, Spread
    from planaria.spark.watch import Stopped, watched

    if values["part"] is not None:
        raise UsageError("--part searches one part here, --parts all of them on Spark: choose")
    slug = re.sub(r"\W+", "-", f"{case} {values['parts']}")
    out = values["resume"] or f"out/verify/{slug}-{code_version()}"
    spread = Spread(Share(case, values["states"]), values["parts"], out)
    sweep = spread.sweep
    click.echo("planaria: starting Spark", err=True)
    try:
        with session(values["master"], LABORATORY) as spark:
            line = partial(progress_line, [sweep], sweep.store)
            covered = watched(spark, "verify", partial(spread.covered, spark), line)
    except Stopped as stopped:
        click.echo(f"planaria: {stopped}", err=True)
        return INTERRUPTED
    if values["out"] is not None:
        kinds = [it.kind for it in covered.result.findings]
        _write(covered.result, zip(kinds, covered.examples, strict=True), values["out"])
    if values["as_json"]:
        click.echo(json.dumps([{**_as_json(covered.result), **_spread_json(covered)}]))
    else:
        click.echo(f"{in_words(covered.result)}\n{_spread_words(covered, out)}")
    return 1 if covered.result.findings or covered.errors else 0


def _spread_json(covered: "Covered") -> dict[str, Any]:
    return {
        "parts": covered.parts,
        "visited": covered.visited,
        "complete": covered.result.complete and not covered.errors,
        "errors": covered.errors,
    }


def _spread_words(covered: "Covered", out: str) -> str:
    again = covered.visited - covered.result.states
    lines = [
        f"  parts      {covered.parts:,} on Spark; {again:,} states were visited again by them"
    ]
    for error, command in covered.errors:
        lines += [f"  FAILED     {error}", f"             {command}"]
    return "\n".join([*lines, f"  results    in {out}"])


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, _, end = text.partition(":")
    if not (first.isdecimal() and end.isdecimal() and int(first) < int(end)):
        raise UsageError(f"--part {text!r}: write two numbers of starts, like 0:1000")
    return int(first), int(end)


def _searched(case: Case, values: dict[str, Any]) -> Result:
    search, ticker = case.search(_part(values["part"])), Ticker()
    resume = None if values["resume"] is None else Path(values["resume"])
    due = time.monotonic() + SAVE_SECONDS

    def tick(graph: Graph) -> bool:
        nonlocal due
        far = f"{graph.expanded:,} of {len(graph):,} states"
        ticker.show(f"planaria: {case}: {far}")
        if resume is not None and time.monotonic() > due:
            graph.save(resume, search.key)
            due = time.monotonic() + SAVE_SECONDS
        return True

    result = search.run(values["states"], tick, resume)
    ticker.clear()
    if values["out"] is not None:
        examples = ((it.kind, counterexample(search, it)) for it in result.findings)
        _write(result, examples, values["out"])
    return result


def _wide(case: Case, values: dict[str, Any], of: str = "") -> Wide:
    """A search without the ways to states."""
    if values["part"] is not None or values["out"] is not None:
        raise UsageError("--part and --out are of searches that keep the ways to states")
    directory = None if values["resume"] is None else Path(values["resume"])
    return (case.bursts if values["bursts"] else case.wide)(directory, of)


def _searched_wide(case: Case, values: dict[str, Any]) -> Result:
    """All starts, without the ways to states."""
    wide = _wide(case, values)
    judged = _judged(wide, case, wide.model.firsts(), values["states"])
    return wide.result(judged, range(len(wide.starts)))


def _sampled(case: Case, values: dict[str, Any]) -> int:
    """What a sample of the starts says of all of them."""
    wide = _wide(case, values, f"sample {values['sample']} seed {values['seed']}")
    total = count(wide.model)
    numbers = draws(total, values["sample"], values["seed"])
    judged = _judged(wide, case, chosen(wide.model, numbers), values["states"])
    result = wide.result(judged, sorted(set(numbers)))
    said = sampled(judged, numbers, total)
    if values["as_json"]:
        click.echo(json.dumps([{**_as_json(result), "sample": to_builtins(said)}]))
    else:
        click.echo(f"{in_words(result)}\n{said}")
    return 1 if result.findings else 0


def _judged(wide: Wide, case: Case, firsts: Iterable[First], most: int) -> Judged:
    """Run the search, and say how far it is meanwhile."""
    ticker = Ticker()

    def tick(wide: Wide) -> None:
        between = f", {wide.between:,} between them" if wide.between else ""
        far = f"{wide.expanded:,} of {len(wide):,} states{between}"
        ticker.show(f"planaria: {case}: {wide.phase or far}")

    try:
        return wide.run(firsts, most, tick)
    finally:
        ticker.clear()


def _write(result: Result, examples: Iterable[tuple[str, dict[str, Any]]], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number, (kind, example) in enumerate(examples):
        path = directory / f"{result.model}-{result.n}-{kind}-{number}.json"
        path.write_text(json.dumps(example))
        click.echo(f"planaria: wrote {path}: planaria sim --replay {path}", err=True)


def in_words(result: Result) -> str:
    """What people read: what was covered, exactly, and what was found."""
    share = f"{result.expanded:,} of {result.states:,} states found"
    whole = "all of them" if result.expanded == result.states else share
    lines = [
        f"{result.model}, n = {result.n}",
        f"  starts     {result.starts:,}: {result.covered}",
        f"  orders     {result.schedule}",
        f"  searched   {result.states:,} states ({whole}), {result.transitions:,} steps; "
        f"{result.legitimate:,} states are legitimate",
    ]
    if result.between:
        lines.append(f"  between    {result.between:,} more; those above have nothing in flight")
    if result.cut:
        lines.append(f"  left out   {result.cut:,} steps that the channel has no room for")
    if result.thinned:
        lines.append("  left out   coins of more than 12 outcomes: ends and middle stand for all")
    small = ", ".join(f"{name.rpartition(':')[2]} {it}" for name, it in result.constants.items())
    lines.append(f"  constants  {small or 'as they are'}")
    if not result.findings:
        said = "no livelock, no trap, no exception; what is legitimate stays so"
        lines.append(f"  found      {said}")
    kinds: dict[str, int] = {}
    for it in result.findings:
        if not it.stem:
            lines.append(f"  FOUND      {it.kind}: {it.count:,} starts lead to one, as {it.detail}")
        elif it.kind not in kinds:
            kinds[it.kind] = it.count
            lines.append(f"  FOUND      {counted(it.count, it.kind)}, one of them: {it.detail}")
    return "\n".join(lines)


def _as_json(result: Result) -> dict[str, Any]:
    found = to_builtins(result)
    assert isinstance(found, dict)
    for it in found["findings"]:
        it["stem"], it["loop"] = len(it["stem"]), len(it["loop"])
    return {**found, "complete": result.complete}
