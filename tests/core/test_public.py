"""The public surface: small, loaded when asked for, the same for people and for type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import planaria


def test_every_public_name_is_there_and_is_what_it_is_where_it_lives() -> None:
    tree = ast.parse(Path(planaria.__file__).read_text())
    shown = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("planaria.")
        for alias in node.names
    }
    assert sorted([*shown, "__version__", "sync"]) == sorted(planaria.__all__)
    assert planaria.sync is sys.modules["planaria.sync"]
    for name, module in shown.items():
        found = getattr(planaria, name)
        assert found is getattr(sys.modules[str(module)], name)


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="no public name 'Nothing'"):
        planaria.Nothing  # noqa: B018


def test_the_package_loads_nothing_by_itself() -> None:
    program = "import planaria, sys; print([it for it in sys.modules if 'planaria.' in it])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"


def test_a_user_needs_one_import() -> None:
    from planaria import Spec, find_kind, load_schedule, matches, must_heal, parse

    (condition,) = parse("delay > 60 AND carrier = 'UA'")
    assert matches(condition, {"delay": 75, "carrier": "UA"})
    overlay = find_kind("dht").make()
    assert must_heal(overlay, Spec(8, 1, faults=load_schedule("blip"))).legitimate
