"""Raw corruption: any variable of a node gets any value of its type, past every setter and repair.

What an overlay's own `corrupt` forgets (a cache, an index, a counter in a corner) is reached here.
An attribute counts as a variable if the run or `corrupt` was seen to change it; the rest is
configuration. What the overlay itself holds (a map of the world, say) is nobody's memory.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from msgspec import Struct, structs

from planaria.core.chance import any_integer
from planaria.core.errors import PlanariaError
from planaria.core.ids import NodeId
from planaria.core.node import Node
from planaria.core.overlay import Overlay

COPIES = 3  # of a node, corrupted to see what varies
HITS_MAX = 4  # variables of one node that are damaged at once: a few, so that each can matter

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

Slot = tuple[Any, str]  # an object and the name of its attribute


def slots_of(overlay: Overlay, node: Node) -> dict[str, Slot]:
    """Every attribute of `node` and of the objects it is made of, by its path."""
    found: dict[str, Slot] = {}
    seen: list[Any] = [overlay, *vars(overlay).values(), node]
    queue: list[tuple[str, Any]] = [("", node)]
    home = type(node).__module__
    while queue:
        path, owner = queue.pop()
        for name in _attributes(owner):
            value, here = getattr(owner, name), f"{path}.{name}"
            inner = [(f"{here}{at}", it) for at, it in _parts(value) if _is_part(it, home)]
            for at, part in inner:
                if not any(part is other for other in seen):
                    seen.append(part)
                    queue.append((at, part))
            if not inner and name != "id" and not callable(value) and not isinstance(value, Random):
                found[here] = (owner, name)
    return found


def values_of(slots: Mapping[str, Slot]) -> dict[str, str]:
    """What stands in each slot, in a form that can be kept and compared."""
    return {path: _shown(getattr(*slot)) for path, slot in slots.items()}


def damage(
    overlay: Overlay,
    node: Node,
    ids: Sequence[NodeId],
    rng: Random,
    before: Mapping[str, str],
) -> list[str]:
    """Damage some variables of `node`; `before` is what stood in them once. Returns which."""
    slots = slots_of(overlay, node)
    now, seen = values_of(slots), _corrupted(overlay, node, ids, rng)
    variables = [
        path
        for path in slots
        if before.get(path, now[path]) != now[path]
        or any(_shown(value) != now[path] for value in seen.get(path, ()))
    ]
    hit: list[str] = []
    hits = rng.randint(1, HITS_MAX)
    for path in rng.sample(variables, len(variables)):
        owner, name = slots[path]
        drawn = [mutated(getattr(owner, name), ids, rng), *seen.get(path, ())]
        others = [other for other in drawn if _shown(other) != now[path]]
        if others and len(hit) < hits:
            write = setattr if isinstance(owner, Struct) else object.__setattr__
            write(owner, name, rng.choice(others))
            hit.append(path)
    return hit


def _shown(value: Any) -> str:
    """A copy is shown as its original is, wherever in memory it lies and whatever hashes are."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_shown, value)))}}}"
    return _ADDRESS.sub("", repr(value))


def _corrupted(
    overlay: Overlay, node: Node, ids: Sequence[NodeId], rng: Random
) -> dict[str, list[Any]]:
    """Values that the overlay's own corruption gives to the variables of copies of `node`."""
    seen: dict[str, list[Any]] = {}
    for _ in range(COPIES):
        copy = deepcopy(node)
        overlay.corrupt(copy, ids, rng)
        for path, slot in slots_of(overlay, copy).items():
            seen.setdefault(path, []).append(getattr(*slot))
    return seen


def mutated(value: Any, ids: Sequence[NodeId], rng: Random) -> Any:
    """Another value of the same type; what has no other is returned as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return any_integer(rng, value, 0, rng.choice(ids))
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e300, value * rng.uniform(-2, 2)))
    if isinstance(value, bytes):
        return rng.randbytes(len(value))
    if isinstance(value, str):
        return rng.choice(("", value[:-1], value + value[:1]))
    if isinstance(value, Mapping):
        kept = [(key, it) for key, it in value.items() if rng.random() < 0.8]
        return type(value)((key, mutated(it, ids, rng)) for key, it in kept)  # type: ignore[call-arg]
    if isinstance(value, list | set | frozenset):
        those = value if isinstance(value, list) else sorted(value, key=_shown)
        return type(value)(mutated(it, ids, rng) for it in those if rng.random() < 0.8)
    if type(value) is tuple:  # as long as it was: its length is part of its type
        return tuple(mutated(it, ids, rng) for it in value)
    if isinstance(value, Struct):
        return _mutated_struct(value, ids, rng)
    return value


def _mutated_struct(value: Struct, ids: Sequence[NodeId], rng: Random) -> Struct:
    """With another value in one field; a struct in a struct is taken for configuration."""
    fields = structs.asdict(value)
    names = [name for name, it in fields.items() if not isinstance(it, Struct)]
    if not names:
        return value
    name = rng.choice(names)
    try:
        return structs.replace(value, **{name: mutated(fields[name], ids, rng)})
    except (ValueError, PlanariaError):  # its own constructor says that no such value exists
        return value


def _attributes(owner: Any) -> Iterator[str]:
    names = dict.fromkeys(getattr(owner, "__dict__", ()))
    for kind in type(owner).__mro__:
        declared = kind.__dict__.get("__slots__", ())
        names |= dict.fromkeys([declared] if isinstance(declared, str) else declared)
    hidden = ("__dict__", "__weakref__")
    return (name for name in names if name not in hidden and hasattr(owner, name))


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", it) for key, it in value.items()]
    if isinstance(value, list | tuple):
        return [(f"[{at}]", it) for at, it in enumerate(value)]
    return [("", value)]


def _is_part(value: Any, home: str) -> bool:
    """Is this an object that a node is made of, and not a value that it holds?"""
    if isinstance(value, type | Random | str | bytes | int | float) or callable(value):
        return False
    if isinstance(value, Struct) and value.__struct_config__.frozen:
        return False
    module = type(value).__module__
    own = module.startswith("planaria.protocols") or module == home
    return own and any(True for _ in _attributes(value))
