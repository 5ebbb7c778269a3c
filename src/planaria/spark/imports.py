"""Which files of the package decide what a module does: those that it imports, read, not run."""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # no expression holds an import


def imported_files(roots: Iterable[str | Path], package: Path) -> list[Path]:
    """The files of `package` that `roots` (modules or files) import, directly or not, sorted.

    Imports within functions count, imports for type checkers alone do not. Modules that are found
    by name at run time must be roots themselves.
    """
    found: dict[Path, None] = {}
    pending = [path for root in roots for path in _files(root, package)]
    seen = dict.fromkeys(pending)
    while pending:
        path = pending.pop()
        if path.is_relative_to(package):
            found[path] = None
        for name in _named(path.read_bytes(), _module(path, package), package.name):
            for file in _files(name, package):
                if file not in seen:
                    seen[file] = None
                    pending.append(file)
    return sorted(found)


def _files(root: str | Path, package: Path) -> list[Path]:
    """The file of a module, with the packages that it is in; none if it is not ours."""
    if isinstance(root, Path):
        return [root]
    parts = root.split(".")
    if parts[0] != package.name:
        origin = getattr(sys.modules.get(root), "__file__", None)
        return [] if origin is None else [Path(origin)]
    found = []
    for size in range(1, len(parts) + 1):
        place = package.joinpath(*parts[1:size])
        files = [place / "__init__.py", *([place.with_suffix(".py")] if size > 1 else [])]
        found += [file for file in files if file.is_file()]
    return found


def _module(path: Path, package: Path) -> tuple[str, ...]:
    """The package that relative imports in this file begin at."""
    if not path.is_relative_to(package):
        return ()
    return (package.name, *path.relative_to(package).parent.parts)


@cache
def _named(text: bytes, module: tuple[str, ...], ours: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_imported(ast.parse(text), module, ours)))


def _imported(tree: ast.AST, module: tuple[str, ...], ours: str) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, HOLDERS):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == ours)
        elif isinstance(node, ast.ImportFrom):
            above = module[: len(module) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] == ours:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
        yield from _imported(node, module, ours)
