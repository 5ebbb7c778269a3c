"""What `planaria sim` knows of each overlay: worlds, outputs, checkers. Loads none until asked.

The product's overlays are in `protocols/registry`; some have a world here, in which they are
simulated. A reference is a name, `package.module:Name` or `path/to/file.py:Name`, where Name is an
`Overlay` class or, for one with options or outputs of its own, a `Kind`.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from planaria.core.errors import UsageError, unknown
from planaria.core.ids import stable_hash
from planaria.core.overlay import Overlay
from planaria.protocols.registry import PRODUCTS, Option
from planaria.simulator.engine import Observer
from planaria.simulator.trial import Trial

__all__ = ["REGISTERED", "Kind", "Option", "Output", "find_kind"]

WORLDS: Mapping[str, str] = {
    "content": "planaria.simulator.worlds.content:CONTENT",
    "gossip": "planaria.simulator.worlds.gossip:GOSSIP",
    "mobile": "planaria.simulator.worlds.mobile:MOBILE",
    "ring": "planaria.simulator.worlds.ring:RING",
}
# Where to find each overlay of the product as it is simulated.
REGISTERED: Mapping[str, str] = {
    name: WORLDS.get(name, PRODUCTS[name].place) for name in sorted(PRODUCTS)
}


class Output(Struct, frozen=True):
    """A file that shows how the trial ended, offered as `--name FILE`."""

    name: str
    help: str
    render: Callable[[Trial], str | bytes]


class Kind(Struct, frozen=True):
    """An overlay as a command line needs it: how to make, watch and show one."""

    make: Callable[..., Overlay]
    options: tuple[Option, ...] = ()
    outputs: tuple[Output, ...] = ()
    checkers: tuple[Callable[[], Observer], ...] = ()


def find_kind(reference: str) -> Kind:
    """The overlay that `reference` names, or `UsageError` that says why there is none."""
    if reference in PRODUCTS and reference not in WORLDS:
        return Kind(PRODUCTS[reference].make, PRODUCTS[reference].options)
    target = REGISTERED.get(reference, reference)
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise unknown("overlay", reference, [*sorted(REGISTERED), "FILE.py:Class", "module:Class"])
    found = getattr(_module(place), name, None)
    if isinstance(found, Kind):
        return found
    if isinstance(found, type) and issubclass(found, Overlay):
        _check_class(reference, found)
        return Kind(make=found)
    raise UsageError(f"overlay {reference!r}: {place} has no Overlay class and no Kind {name!r}")


def _check_class(reference: str, found: type[Overlay]) -> None:
    """Refuse a class of which no overlay can be made, saying what it lacks."""
    lacking = sorted(found.__abstractmethods__)
    if not hasattr(found, "name"):
        lacking.append("name")
    if lacking:
        raise UsageError(f"overlay {reference!r} lacks {', '.join(lacking)}")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise UsageError(f"overlay {reference!r}: {error}; give options in a Kind") from None


def _module(place: str) -> ModuleType:
    try:
        return _file(Path(place)) if place.endswith(".py") else import_module(place)
    except Exception as error:  # whatever a stranger's file raises, it is theirs to mend
        raise UsageError(f"cannot import {place}: {type(error).__name__}: {error}") from error


def _file(path: Path) -> ModuleType:
    """The module in a file, loaded once: its message classes may exist only once."""
    resolved = str(path.resolve(strict=True))
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == resolved:
            return module
    name = f"planaria_overlay_{stable_hash(resolved, bits=64):016x}"
    spec = spec_from_file_location(name, resolved)
    assert spec is not None  # so it is for every *.py
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
