"""The style of this repository as rules: import directions, purity, sizes, words.

Each rule takes one source file and yields what is wrong with it, as `line: what`. They judge by
the text of that one file alone. `test_tidy.py` runs them over the tree and proves that they bite.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

# What each room may import of the others: core <- filters, records <- protocols <- simulator,
# network, scale, literal, verify <- lab <- spark <- studies <- cli; gateway and web stand on
# network, chaos on network and simulator.
_PROTOCOLS = ("core", "filters", "records", "protocols")
_DRIVERS = (*_PROTOCOLS, "simulator", "network", "scale")
ROOMS: dict[str, tuple[str, ...]] = {
    # The public surface, for type checkers.
    "": ("core", "filters", "records", "network", "simulator"),
    "sync": ("core", "network", "records"),
    "core": (),
    "filters": ("core",),
    "records": ("core",),
    "protocols": ("core", "filters", "records"),
    "simulator": _PROTOCOLS,
    "network": _PROTOCOLS,
    "scale": _PROTOCOLS,
    "literal": _PROTOCOLS,
    "lab": (*_DRIVERS, "literal"),
    "verify": (*_PROTOCOLS, "simulator"),
    "spark": (*_DRIVERS, "lab", "verify"),
    "studies": (*_DRIVERS, "literal", "lab", "spark"),
    "chaos": (*_PROTOCOLS, "simulator", "network"),
    "gateway": (*_PROTOCOLS, "network"),
    "web": (*_PROTOCOLS, "network", "chaos"),
    "demo": (*_DRIVERS, "lab", "spark", "chaos", "web"),
    "cli": (*_DRIVERS, "lab", "spark", "studies", "chaos", "demo", "gateway", "web", "verify"),
    "__main__": ("cli",),
}
PURE_ROOMS = ("core", "filters", "records", "protocols")
REPEATABLE_ROOMS = (*PURE_ROOMS, "literal", "simulator", "lab")  # where a seed decides everything
IMPURE = re.compile(
    r"(time|datetime|sched|signal|socket|socketserver|ssl|select|selectors|asyncio|threading"
    r"|multiprocessing|concurrent|subprocess|uuid|secrets|os|io|pathlib|tempfile|http|urllib"
    r"|sqlite3|weakref|gc|numpy\.random)(\.|$)"
)
UNREPEATABLE = re.compile(r"random\.(?!Random$)|(uuid|secrets|numpy\.random|os\.urandom)(\.|$)")
IO_CALLS = ("open", "input", "print")
UNREPEATABLE_CALLS = ("hash", "id", "urandom")
ORDER_FREE = ("sorted", "set", "frozenset", "any", "all", "sum", "len", "min", "max")
ORDERED = ("list", "tuple", "iter", "next", "enumerate", "zip", "map", "filter", "join", "deque")
SET_TYPES = ("set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet")
SET_METHODS = ("union", "intersection", "difference", "symmetric_difference")
CONTAINERS = ("list", "dict", "set", "defaultdict", "deque", "Counter", "OrderedDict", "bytearray")
STATEFUL = (*CONTAINERS, "Random", "count", "cycle", "iter")
MUTATORS = re.compile(
    r"append|appendleft|add|update|pop|popleft|popitem|setdefault|clear|extend|insert|remove"
    r"|discard|sort|reverse"
)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 40
FUNCTION_LINES_STOP = 70
# Ratchets: what is already too long, with its size. A size may only fall; then lower it here.
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}

UNFINISHED = re.compile(r"\b(" + "TO-DO|FIX-ME|XX-X".replace("-", "") + r")\b")


class Source(NamedTuple):
    """One file: where it is, what it is called on import, what it says."""

    path: str
    module: str
    text: str
    tree: ast.Module
    nodes: list[ast.AST]  # all of the tree: to walk it takes longer than any rule

    @property
    def room(self) -> str:
        """The package directly under `planaria`; empty for `planaria` itself and for tests."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 and parts[0] == "planaria" else ""

    @property
    def pure(self) -> bool:
        """Is this part of what knows no outside world?"""
        return self.room in PURE_ROOMS

    @property
    def repeatable(self) -> bool:
        """Is this part of what must do the same again for the same seed?"""
        return self.room in REPEATABLE_ROOMS


def source(text: str, path: str) -> Source:
    parts = list(Path(path).with_suffix("").parts)
    if parts[0] == "src":
        parts = parts[1:]
    if parts[-1] == "__init__":
        parts = parts[:-1]
    tree = ast.parse(text)
    return Source(path, ".".join(parts), text, tree, [*ast.walk(tree)])


def imported(file: Source) -> Iterator[tuple[int, str]]:
    """All modules and names that `file` imports, absolute, with their lines."""
    package = file.module.split(".")
    if not file.path.endswith("__init__.py"):
        package = package[:-1]
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def import_directions(file: Source) -> Iterator[str]:
    if not file.module.startswith("planaria"):
        return
    for line, name in imported(file):
        parts = name.split(".")
        if parts[0] != "planaria" or len(parts) == 1 or parts[1] in (file.room, "__version__"):
            continue
        if parts[1] not in ROOMS[file.room]:
            yield f"{line}: {file.room or 'planaria'} must not import {name}"


def package(module: str) -> str:
    """The room, or in `protocols` the package, that a module of Planaria belongs to."""
    parts = module.split(".")
    return ".".join(parts[1 : 3 if parts[1] == "protocols" else 2])


def import_cycles(files: Iterable[Source]) -> list[list[str]]:
    """The circles in the picture of the house: packages that import each other, in any number."""
    graph: dict[str, list[str]] = {}
    for file in files:
        if file.module.startswith("planaria."):
            below = [name for _, name in imported(file) if name.startswith("planaria.")]
            graph.setdefault(package(file.module), []).extend(map(package, below))
    for name, others in graph.items():
        graph[name] = sorted({other for other in others if other in graph and other != name})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return [circle.args[1]]
    return []


def called(node: ast.AST) -> str:
    """The last part of the name of what is called; empty if it has none or is no call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def outside_world(file: Source) -> Iterator[str]:
    if not file.pure:
        return
    for line, name in imported(file):
        if IMPURE.match(name):
            yield f"{line}: {name}: a node has no clock, no socket, no files, no entropy"
    for node in file.nodes:
        if called(node) in IO_CALLS and isinstance(getattr(node, "func", None), ast.Name):
            yield f"{getattr(node, 'lineno', 0)}: {called(node)}(): a node returns effects"


def chance(file: Source) -> Iterator[str]:
    if not file.repeatable:
        return
    for line, name in imported(file):
        if UNREPEATABLE.match(name):
            yield f"{line}: {name}: chance comes from a random.Random handed in"
    for node in file.nodes:
        if isinstance(node, ast.Call):
            name = called(node)
            # By one argument a call of the builtin `id` is told from one of a function so named.
            if name in UNREPEATABLE_CALLS and isinstance(node.func, ast.Name) and node.args:
                yield f"{node.lineno}: {name}(): differs from process to process"
            elif name == "Random" and not node.args:
                yield f"{node.lineno}: Random() without a seed draws from the machine"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            place = f"{node.value.id}.{node.attr}"
            if UNREPEATABLE.match(place.replace("np.", "numpy.")):
                yield f"{node.lineno}: {place}: use a random.Random handed in"


def names_a_set(annotation: ast.expr | None) -> bool:
    """Is this the annotation of a set, also as `ClassVar[set[int]]` or `set[int] | None`?"""
    if isinstance(annotation, ast.Subscript):
        wrapper = getattr(annotation.value, "id", getattr(annotation.value, "attr", ""))
        return wrapper in SET_TYPES or (
            wrapper in ("ClassVar", "Final", "Annotated", "Optional")
            and names_a_set(annotation.slice)
        )
    if isinstance(annotation, ast.BinOp):
        return names_a_set(annotation.left) or names_a_set(annotation.right)
    if isinstance(annotation, ast.Tuple):
        return names_a_set(annotation.elts[0])
    return getattr(annotation, "id", getattr(annotation, "attr", "")) in SET_TYPES


class Sets:
    """Which expressions of a file are sets, as far as its own text tells.

    Names are followed by name alone, not by scope: one name, one type in a file.
    """

    def __init__(self, nodes: list[ast.AST]) -> None:
        self.names: list[str] = []
        for node in nodes:
            if isinstance(node, ast.arg) and names_a_set(node.annotation):
                self.names.append(node.arg)
            elif isinstance(node, ast.FunctionDef) and names_a_set(node.returns):
                self.names.append(f"{node.name}()")
            elif isinstance(node, ast.AnnAssign) and names_a_set(node.annotation):
                self.names.append(ast.unparse(node.target).removeprefix("self."))
        for node in nodes:
            if isinstance(node, ast.Assign) and self.is_set(node.value):
                self.names += [ast.unparse(t).removeprefix("self.") for t in node.targets]

    def is_set(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Call):
            name = called(node)
            return name in ("set", "frozenset", *SET_METHODS) or f"{name}()" in self.names
        if isinstance(node, ast.BinOp):
            return self.is_set(node.left) or self.is_set(node.right)
        if isinstance(node, ast.IfExp):
            return self.is_set(node.body) or self.is_set(node.orelse)
        if isinstance(node, ast.Attribute):
            return node.attr in self.names
        return isinstance(node, ast.Name) and node.id in self.names


def ties(call: ast.Call) -> bool:
    """Is this a `min` or `max` by a key? Of two equal ones the first wins: order matters."""
    return called(call) in ("min", "max") and bool(call.keywords)


def set_iteration(file: Source) -> Iterator[str]:
    if not file.repeatable:
        return
    sets = Sets(file.nodes)
    order_free = [
        argument
        for node in file.nodes
        if isinstance(node, ast.Call) and called(node) in ORDER_FREE and not ties(node)
        for argument in node.args
    ]
    for node in file.nodes:
        walked: list[ast.expr] = []
        if isinstance(node, ast.For):
            walked = [node.iter]
        elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            if node not in order_free:
                walked = [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Starred | ast.YieldFrom):
            walked = [node.value]
        elif isinstance(node, ast.Call) and (called(node) in ORDERED or ties(node)):
            walked = node.args
        elif isinstance(node, ast.Call) and called(node) == "pop" and not node.args:
            walked = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for expression in walked:
            if sets.is_set(expression):
                text = ast.unparse(expression)
                yield f"{expression.lineno}: order of the set {text}: use sorted({text})"


def mutable_value(value: ast.expr | None) -> bool:
    literals = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    return isinstance(value, literals) or (value is not None and called(value) in STATEFUL)


def empty_value(value: ast.expr | None) -> bool:
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, ast.Call) and called(value) in STATEFUL and not value.args


def module_state(file: Source) -> Iterator[str]:
    """A table that nothing changes is a constant: named in capitals, not empty, never mutated."""
    if not file.pure:
        return
    tables = []
    for node in file.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and mutable_value(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            tables += names
            dunder = any(name.startswith("__") for name in names)
            if empty_value(node.value) or not (dunder or all(n.isupper() for n in names)):
                yield f"{node.lineno}: mutable state of the module: {', '.join(names)}"
    for inner in file.nodes:
        changed: list[ast.expr] = []
        if isinstance(inner, ast.Global):
            yield f"{inner.lineno}: global {', '.join(inner.names)}"
        elif isinstance(inner, ast.Assign | ast.Delete):
            changed = [t.value for t in inner.targets if isinstance(t, ast.Subscript)]
        elif isinstance(inner, ast.AugAssign):
            target = inner.target
            changed = [target.value if isinstance(target, ast.Subscript) else target]
        elif isinstance(inner, ast.Call) and MUTATORS.fullmatch(called(inner)):
            changed = [inner.func.value] if isinstance(inner.func, ast.Attribute) else []
        for expression in changed:
            if isinstance(expression, ast.Name) and expression.id in tables:
                yield f"{expression.lineno}: changes {expression.id}, state of the module"


def over(size: int, limit: int, allowed: int | None, stop: int | None = None) -> str | None:
    """What is wrong with a size, given its place in a ratchet (None: it has none)."""
    if stop is not None and size > stop:
        return f"{size} lines: never more than {stop}"
    if allowed is None:
        return f"{size} lines: at most {limit}" if size > limit else None
    if size > allowed:
        return f"{size} lines: the ratchet says {allowed}"
    if size < allowed:
        return f"{size} lines: lower the ratchet from {allowed}, or remove it"
    return None


def file_length(file: Source) -> Iterator[str]:
    size = len(file.text.splitlines())
    if wrong := over(size, FILE_LINES_MAX, LONG_FILES.get(file.path)):
        yield f"1: file of {wrong}"


def function_length(file: Source) -> Iterator[str]:
    for node in file.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        size = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        allowed = LONG_FUNCTIONS.get(f"{file.path}::{node.name}")
        if wrong := over(size, FUNCTION_LINES_MAX, allowed, FUNCTION_LINES_STOP):
            yield f"{node.lineno}: {node.name} of {wrong}"


def module_docstring(file: Source) -> Iterator[str]:
    private = file.module.rsplit(".", 1)[-1].startswith("_")
    if file.module.startswith("planaria") and not private and not ast.get_docstring(file.tree):
        yield "1: a module says in its docstring what it is"


def unfinished(file: Source) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if found := UNFINISHED.search(line):
            yield f"{number}: {found[0]}: finish it or make it an issue"


Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (
    import_directions,
    outside_world,
    chance,
    set_iteration,
    module_state,
    file_length,
    function_length,
    module_docstring,
    unfinished,
)
