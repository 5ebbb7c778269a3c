"""The `planaria` command: data on stdout, log on stderr; 0 good, 1 a promise broken, 2 misuse."""

import io
import logging
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from planaria import __version__
from planaria.cli.groups import Group
from planaria.core.errors import PlanariaError, UsageError

# One module per command group, imported when it is used: `planaria --version` loads none.
COMMANDS = {
    "archive": "planaria.cli.archive:archive",
    "bench": "planaria.cli.bench:bench",
    "compare": "planaria.cli.compare:compare",
    "context": "planaria.cli.context:context",
    "demo": "planaria.cli.demo:demo",
    "doctor": "planaria.cli.doctor:doctor",
    "filter": "planaria.cli.filters:filters",
    "hunt": "planaria.cli.hunt:hunt",
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
}
BROKEN = 1  # a run broke a promise, or two traces differ
MISUSE = 2
INTERRUPTED = 130  # what a shell expects of a program stopped by Ctrl-C


class Commands(Group):
    """The command groups, loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without loading anything."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        place, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(place), name)
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
    _print_anywhere()
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
    return code if isinstance(code, int) else 0


def _print_anywhere() -> None:
    """A terminal that lacks a character gets a question mark instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _error(message: str, code: int) -> int:
    click.echo(f"planaria: error: {' '.join(message.split())}", err=True)
    return code
