"""Directives of the page Reference: every command and every public name, read from the code."""

import inspect
from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive

import planaria
from planaria.cli.main import SECTIONS
from planaria.cli.main import planaria as program
from planaria.network.live import LiveNode

WIDTH = 100  # columns of help
LISTED = ("Client", "Subscription", "LiveNode", "sync.Client", "sync.Subscription")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """A command and all below it, each with its help."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    if not isinstance(command, click.Group):
        yield name, command.get_help(context)
        return
    for one in command.list_commands(context):
        found = command.get_command(context, one)
        assert found is not None
        yield from commands(found, f"{name} {one}")


def public() -> Iterator[tuple[str, object]]:
    """The names that programs may use, in the order of the alphabet."""
    for name in sorted(planaria.__all__, key=str.lower):
        if name not in ("__version__", "sync"):
            yield name, getattr(planaria, name)
    yield "network.live.LiveNode", LiveNode
    for name in ("Client", "Subscription", "connect"):
        yield f"sync.{name}", getattr(planaria.sync, name)


def signature(name: str, thing: Any) -> str:
    """How it is called."""
    try:
        return f"{name}{inspect.signature(thing)}"
    except (TypeError, ValueError):
        return name


def described(name: str, thing: object) -> str:
    """How it is called and what it does; of a class that people call, its methods too."""
    parts = [signature(name, thing), inspect.getdoc(thing) or ""]
    if isinstance(thing, type) and name.removeprefix("network.live.") in LISTED:
        for method, it in vars(thing).items():
            if not method.startswith("_") and callable(it):
                parts += [f"    {signature(method, it)}", _indented(inspect.getdoc(it) or "")]
    return "\n\n".join(filter(None, parts))


def _indented(text: str) -> str:
    return "\n".join(f"        {line}".rstrip() for line in text.splitlines())


def section(title: str, text: str) -> nodes.section:
    """A heading and what stands under it, as it is."""
    id = nodes.make_id(title)
    found = nodes.section(ids=[id], names=[id])
    found += nodes.title(text=title)
    found += nodes.literal_block(text, text, language="text")
    return found


class Commands(Directive):
    """Every command, in the groups of `planaria --help`."""

    def run(self) -> list[nodes.Node]:
        """One section for each."""
        context = click.Context(program)
        return [
            section(name, text)
            for group in SECTIONS.values()
            for one in group
            if (command := program.get_command(context, one)) is not None  # type: ignore[attr-defined]
            for name, text in commands(command, f"planaria {one}")
        ]


class Names(Directive):
    """Every public name."""

    def run(self) -> list[nodes.Node]:
        """One section for each."""
        return [section(f"planaria.{name}", described(name, it)) for name, it in public()]


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("commands", Commands)
    app.add_directive("names", Names)
    return {"parallel_read_safe": True}
