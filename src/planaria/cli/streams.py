"""The standard streams as whoever started us left them: closed, or with nobody who reads."""

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from planaria.core.errors import UsageError


class Unread(Exception):
    """Whoever read our output went away."""


def needed_stdin() -> TextIO:
    """The standard input; raises UsageError if it is closed."""
    if sys.stdin is None:  # as Python has it if the descriptor was closed when it started
        raise UsageError("the standard input is closed: there is nothing to read")
    return sys.stdin


def needed_stdout() -> TextIO:
    """The standard output; raises UsageError if it is closed."""
    if sys.stdout is None:
        raise UsageError("the standard output is closed: there is nowhere to print")
    return sys.stdout


def print_anywhere() -> None:
    """A terminal that lacks a character gets a question mark; a closed log goes nowhere."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


@contextmanager
def telling_unread() -> Iterator[None]:
    """Raise Unread where click would exit with 1, which is a verdict of some commands.

    A pipe that broke elsewhere, as a link to a node can, is an error as any other.
    """
    try:
        yield
    except BrokenPipeError as error:
        unread = [it for it in (sys.stdout, sys.stderr) if it is not None and _is_unread(it)]
        if not unread:
            raise ConnectionError(str(error)) from error
        for stream in unread:
            write_nowhere(stream)
        raise Unread from error


def write_nowhere(stream: TextIO) -> None:
    """Let Python drop at exit what is left to write: nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_unread(stream: TextIO) -> bool:
    poll = select.poll()
    poll.register(stream.fileno(), 0)  # the end of a reader is told also to who asks for nothing
    return bool(poll.poll(0))
