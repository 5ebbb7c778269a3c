"""Campaigns try what they say: no two parameters of a run are taken from its seed alike.

`n = 1 + seed % 12` and `supervisors = 1 + seed % 2` share a factor: even rings would never have one
supervisor, however many seeds are tried. `planaria.core.chance.combination` shares none.
"""

import ast
from pathlib import Path

import pytest

from toys import ROOT

FILES = [
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "src" / "planaria" / "simulator").rglob("*.py")),
    *sorted((ROOT / "src" / "planaria" / "spark").glob("*.py")),
]


def coupled(source: str) -> list[str]:
    """Functions that take more than one remainder or quotient of a seed."""
    if "seed" not in source:  # as in most files, and to parse them takes long
        return []
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            taken = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Mod | ast.FloorDiv | ast.BitAnd | ast.RShift)
                and any(isinstance(it, ast.Name) and it.id == "seed" for it in ast.walk(node.left))
            ]
            found += [function.name] * (len(taken) > 1)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_two_parameters_are_taken_from_a_seed_alike(path: Path) -> None:
    assert coupled(path.read_text(encoding="utf-8")) == []


def test_the_search_sees_remainders_that_share_a_factor() -> None:
    spec = "def spec(seed):\n    return Spec(1 + seed % 12, NAMES[3 * seed // 2 % 3])\n"
    assert coupled(spec) == ["spec"]
    assert coupled("def spec(seed):\n    return Spec(1 + seed % 12, seed)\n") == []
