"""`planaria demo`: heals a corrupted network of each overlay, then measures the papers."""

import sys
from typing import Any

import click
from msgspec import Struct

from planaria.cli.main import BROKEN, INTERRUPTED
from planaria.cli.tables import command, counted, filled
from planaria.simulator.trial import Spec
from planaria.simulator.worlds.registry import find_kind
from planaria.spark.sessions import choose_master, require


class Network(Struct, frozen=True):
    """An overlay with its own options, big enough to be a network, healed in seconds."""

    overlay: str
    n: int
    seed: int
    options: dict[str, Any]


NETWORKS = (
    Network("ring", 64, 7, {}),
    Network("gossip", 85, 3, {"groups": "5,20,60"}),
    Network("content", 12, 5, {"brokers": 12, "subscriptions": 60}),
    Network("mobile", 64, 2, {"graph": "grid:8x8", "publications": 0}),
)


@click.command()
@click.option("--out", metavar="DIR|URL", help="As in reproduce.")
@click.option("--master", metavar="URL", help="As in reproduce.")
def demo(out: str | None, master: str | None) -> int:
    """Heal a corrupted network of each overlay, then reproduce the papers at the quick scale.

    Exit code 0: every network healed and all of Planaria's own checks hold.
    """
    require()
    from planaria.cli.reproduce import in_words, prepared, run
    from planaria.spark.watch import Stopped
    from planaria.studies.study import STUDIES

    choose_master(master)  # a wrong master is an error now, not after all has healed
    reproduction = prepared(tuple(STUDIES), "quick", out)
    click.echo(
        "Every variable of every node starts out arbitrary, and so do messages in flight.\n"
        "Legitimate means healed: every invariant holds.\n"
    )
    healed = [heal(network) for network in NETWORKS]
    click.echo(f"networks healed: {sum(healed)} of {len(healed)}")
    click.echo("\nNow the papers, at a small scale: claimed and measured.")
    try:
        verdict = run(reproduction, master)
    except Stopped as stopped:
        click.echo(f"planaria: {stopped}", err=True)
        return INTERRUPTED
    click.echo(in_words(verdict))
    return 0 if all(healed) and verdict.good else BROKEN


def heal(network: Network) -> bool:
    """Show one network from an arbitrary state until it heals, and whether it did."""
    from planaria.cli.healing import Screen, Watched

    kind = find_kind(network.overlay)
    flags = [word for name, value in network.options.items() for word in (f"--{name}", str(value))]
    spec = Spec(network.n, network.seed, asked=(network.overlay, *flags))
    trial = Watched(kind.make(**network.options), spec, [make() for make in kind.checkers])
    nodes, messages = len(trial.simulator.nodes), len(list(trial.simulator.channel()))
    click.echo(f"{network.overlay}: {nodes} nodes, {messages} messages in flight")
    trial.screen = Screen(network.overlay, sys.stdout)
    try:
        outcome, violation = trial.judge()
    finally:
        trial.screen.stop()  # also at Ctrl-C: the terminal is its owner's
    if violation is not None:
        lines = filled(
            f"{network.overlay}: NOT healed: {violation.checker}: {violation.detail}", "  "
        )
        trial.screen.end("\n".join([*lines, *command(violation.replay)]), good=False)
        return False
    spent = (counted(outcome.intervals, "interval"), counted(outcome.messages, "message"))
    cost = f"after {' and '.join(spent)}"
    healed = f"legitimate {cost}, and for {spec.closure} more"
    trial.screen.end(f"{network.overlay}: {healed}", good=True)
    return True
