"""The `planaria` command: data on stdout, log on stderr; 0 good, 1 a promise broken, 2 misuse."""

import gc
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from planaria import __version__
from planaria.cli.groups import Group
from planaria.cli.streams import Unread, print_anywhere, telling_unread
from planaria.core.errors import PlanariaError, UsageError

# One module per command group, imported when it is used: `planaria --version` loads none.
COMMANDS = {
    "archive": "planaria.cli.archive:archive",
    "bench": "planaria.cli.bench:bench",
    "chaos": "planaria.cli.chaos:chaos",
    "compare": "planaria.cli.compare:compare",
    "context": "planaria.cli.context:context",
    "dashboard": "planaria.cli.dashboard:dashboard",
    "demo": "planaria.cli.demo:demo",
    "doctor": "planaria.cli.doctor:doctor",
    "filter": "planaria.cli.filters:filters",
    "hunt": "planaria.cli.hunt:hunt",
    "incidents": "planaria.cli.incidents:incidents",
    "inspect": "planaria.cli.inspect:inspect",
    "keys": "planaria.cli.keys:keys",
    "ls": "planaria.cli.ls:ls",
    "node": "planaria.cli.node:node",
    "pub": "planaria.cli.pub:pub",
    "reproduce": "planaria.cli.reproduce:reproduce",
    "sim": "planaria.cli.sim:sim",
    "sub": "planaria.cli.sub:sub",
    "top": "planaria.cli.top:top",
    "topic": "planaria.cli.topic:topic",
    "trace": "planaria.cli.trace:trace",
    "up": "planaria.cli.up:up",
    "verify": "planaria.cli.verify:verify",
}
# What `planaria --help` says of them, so that it loads none either.
SECTIONS = {
    "A network": {
        "up": "run a whole network on this machine",
        "node": "run one node",
        "pub": "publish",
        "sub": "print what is published",
        "topic": "lay down what topics keep",
        "keys": "make keys and certificates",
        "archive": "keep a topic as Parquet, and bring it back",
        "context": "give networks names",
    },
    "Look at it": {
        "doctor": "judge the whole network: is it legitimate?",
        "dashboard": "draw it in a browser",
        "top": "show all nodes, again and again",
        "ls": "list topics or nodes",
        "inspect": "show one node or one topic",
        "trace": "print, compare, draw or replay what happened",
    },
    "Try and measure": {
        "demo": "break a real network in every way, and watch it heal",
        "sim": "simulate an overlay: faults, corruption, replay from a seed",
        "chaos": "break a running network, and judge how it heals",
        "incidents": "repeat what happened to others, and heal from it",
        "verify": "visit every state of a small network",
        "hunt": "look for starts from which an overlay does not heal",
        "compare": "compare the overlays, a broker, flooding and gossip",
        "reproduce": "measure what the papers claim",
        "bench": "measure nodes and clients beside other systems",
        "filter": "explain and compare conditions",
    },
}
BROKEN = 1  # a run broke a promise, or two traces differ
MISUSE = 2
INTERRUPTED = 130  # what a shell expects of a program stopped by Ctrl-C
UNREAD = 141  # and of one whose output nobody reads: neither of the verdicts 0 and 1


class Commands(Group):
    """The command groups, loaded by name."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """As click does; prints help."""
        with telling_unread():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; prints all else."""
        with telling_unread():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without loading anything."""
        return sorted(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What each is for, by what one wants to do."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names that begin so, without loading anything."""
        about = {name: words for section in SECTIONS.values() for name, words in section.items()}
        found = [CompletionItem(it, help=about[it]) for it in about if it.startswith(incomplete)]
        return found or super().shell_complete(ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        place, _, name = COMMANDS[cmd_name].partition(":")
        if place not in sys.modules:
            _load(place)
        command = getattr(sys.modules[place], name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="planaria", message="%(prog)s %(version)s")
@click.pass_context
def planaria(ctx: click.Context) -> None:
    """Self-stabilizing publish/subscribe: simulate it, break it, watch it heal."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one line on stderr."""
    print_anywhere()
    logging.basicConfig(handlers=[logging.NullHandler()])  # py4j would log a traceback at Ctrl-C
    try:
        code = planaria.main(
            args=None if arguments is None else list(arguments),
            prog_name="planaria",
            standalone_mode=False,
        )
    except click.ClickException as error:
        return _error(error.format_message(), MISUSE)
    except UsageError as error:
        return _error(str(error), MISUSE)
    except PlanariaError as error:
        return _error(str(error), BROKEN)
    except OSError as error:
        return _error(str(error), MISUSE)
    except (click.Abort, KeyboardInterrupt):
        return _error("interrupted", INTERRUPTED)
    except Unread:
        return UNREAD
    return code if isinstance(code, int) else 0


def _load(place: str) -> None:
    """Import a module, and never look for garbage in what it brought.

    It stays for as long as the process; to go through it again and again takes a seventh of the
    time in which a node starts.
    """
    gc.disable()
    try:
        import_module(place)
    finally:
        gc.freeze()
        gc.enable()


def _error(message: str, code: int) -> int:
    click.echo(f"planaria: error: {' '.join(message.split())}", err=True)
    return code
