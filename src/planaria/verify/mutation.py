"""A rule left out or bent, in this process and for a while: does anybody notice?"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from textwrap import dedent
from typing import Any

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.verify.cases import Case


class Mutant(Struct, frozen=True):
    """A rule of a protocol without which it must fail, and who notices.

    `place` is 'module:Class.method' in `planaria.protocols`, whose text `old` becomes `new`. It is
    `caught` by a search, or by a test, named by its file in `tests/` and its name.
    """

    name: str
    rule: str
    place: str
    old: str
    new: str
    caught: Case | str


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Let the protocols run without the rule, and put it back."""
    module, _, path = mutant.place.partition(":")
    home: Any = import_module(f"planaria.protocols.{module}")
    owner = home
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    before = owner.__dict__[name]
    after = _bent(home, before, mutant)
    users = [it for name, it in sys.modules.items() if name.startswith("planaria.")]
    others = [it for it in users if it is not owner and vars(it).get(name) is before]
    tables = [it for it in vars(home).values() if isinstance(it, dict)]
    places = [(table, key) for table in tables for key, it in table.items() if it is before]
    places = [(table, key) for table, key in places if table is not vars(home)]
    try:
        for user in (owner, *others):  # who imported a function has a name of its own for it
            setattr(user, name, after)
        for table, key in places:
            table[key] = after
        yield
    finally:
        for user in (owner, *others):
            setattr(user, name, before)
        for table, key in places:
            table[key] = before


def _bent(home: Any, before: Any, mutant: Mutant) -> Any:
    """The function with its text changed in one place. Raises UsageError if that is not there."""
    function: Any = before.fget if isinstance(before, property) else before
    source = dedent(inspect.getsource(function))
    if source.count(mutant.old) != 1:
        times = source.count(mutant.old)
        raise UsageError(f"mutant {mutant.name}: {mutant.old!r} is {times} times in the rule")
    made: dict[str, Any] = {}
    text = source.replace(mutant.old, mutant.new)
    exec(compile(text, f"mutant {mutant.name}", "exec"), vars(home), made)  # noqa: S102
    return next(iter(made.values()))
