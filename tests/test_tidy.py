"""The whole tree obeys the rules of `tidy.py`, and each rule catches what it is there for."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import tidy
from tidy import RULES, Rule, Source, source

ROOT = Path(__file__).resolve().parent.parent


@cache
def tree() -> list[Source]:
    paths = [
        path
        for room in ("src", "tests", "benchmarks", "examples")
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    return [source(path.read_text(), path.relative_to(ROOT).as_posix()) for path in paths]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_every_file_obeys(rule: Rule) -> None:
    assert len(tree()) > 10
    assert [f"{file.path}:{wrong}" for file in tree() for wrong in rule(file)] == []


def test_the_ratchets_name_only_what_exists() -> None:
    functions = [
        f"{file.path}::{node.name}"
        for file in tree()
        for node in file.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [path for path in tidy.LONG_FILES if path not in [file.path for file in tree()]] == []
    assert [name for name in tidy.LONG_FUNCTIONS if name not in functions] == []


def test_the_picture_of_the_house_has_no_circle() -> None:
    assert tidy.import_cycles(tree()) == []


def test_a_circle_of_packages_is_found() -> None:
    texts = {"tree/x": "dht.y", "dht/y": "ring.z", "ring/z": "tree.x"}
    files = [
        source(f"import planaria.protocols.{name}", f"src/planaria/protocols/{path}.py")
        for path, name in texts.items()
    ]
    assert tidy.import_cycles(files) != []
    assert tidy.import_cycles(files[:2]) == []


def test_the_page_of_the_rooms_names_those_there_are_and_what_each_may_import() -> None:
    """The table in the docs, the packages in the tree and the rule that is checked are one."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = dict(
        re.findall(
            r"^\| `(\w+)` \| .* \| (.*) \|$", page.partition("## The contract")[0], re.MULTILINE
        )
    )
    there = {path.name for path in (ROOT / "src/planaria").iterdir() if path.is_dir()}
    there.discard("__pycache__")
    planned = {*rows} - there
    assert planned == {"gateway", "scale"}
    assert {*rows} - planned == there
    above: list[str] = []
    for name, words in rows.items():
        named = {*re.findall(r"`(\w+)`", words)}
        allowed = {*above} - named if "the above" in words else named
        assert allowed <= {*tidy.ROOMS[name]}, name
        assert {*tidy.ROOMS[name]} - allowed <= {"scale", "gateway"}, name
        above.append(name)


CITED = re.compile(r"(?<![\w.\"'])([A-Z]\d{1,2})(?!\w)")


def cited_rules() -> set[str]:
    """The rules that docstrings and comments of the product name, such as E21 or R3."""
    said = [it for file in tree() if file.path.startswith("src") for it in file.text.splitlines()]
    return {rule for line in said for rule in CITED.findall(line)} - {"L0", "L8"}  # an SVG's path


def test_every_rule_that_the_code_names_is_defined_in_the_docs() -> None:
    pages = "\n".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    defined = set(re.findall(r"^\|\s*\W{0,3}([A-Z]\d{1,2})\b", pages, re.MULTILINE))
    defined |= set(re.findall(r"\*\*([A-Z]\d{1,2})\b", pages))
    assert len(cited_rules()) > 40
    assert cited_rules() - defined == set()


CORE = "src/planaria/core/node.py"
PROTOCOL = "src/planaria/protocols/ring/node.py"
RECORDS = "src/planaria/records/store.py"
SIMULATOR = "src/planaria/simulator/run.py"

BITES: list[tuple[Rule, str, str]] = [
    (tidy.import_directions, CORE, "from planaria.protocols.ring import x"),
    (tidy.import_directions, CORE, "from ..simulator import run"),
    (tidy.import_directions, CORE, "def f() -> None:\n    import planaria.cli.main"),
    (tidy.import_directions, CORE, "from planaria import simulator"),
    (tidy.import_directions, PROTOCOL, "import planaria.simulator.run"),
    (tidy.import_directions, PROTOCOL, "from planaria.literal import supervisor"),
    (tidy.import_directions, SIMULATOR, "from planaria.network import host"),
    (tidy.import_directions, SIMULATOR, "from planaria.literal import supervisor"),
    (tidy.import_directions, "src/planaria/network/host.py", "import planaria.simulator"),
    (tidy.import_directions, "src/planaria/spark/source.py", "from planaria.literal import x"),
    (tidy.import_directions, "src/planaria/web/app.py", "from planaria.spark import session"),
    (tidy.import_directions, "src/planaria/filters/sql.py", "import planaria.protocols.routing"),
    (tidy.import_directions, RECORDS, "from planaria.protocols.publications import trie"),
    (tidy.import_directions, RECORDS, "from planaria.network.store import database"),
    (tidy.import_directions, SIMULATOR, "from planaria.lab import tree"),
    (tidy.import_directions, "src/planaria/lab/tree.py", "from planaria.spark import session"),
    (tidy.import_directions, "src/planaria/spark/hunt.py", "from planaria.studies import judge"),
    (tidy.import_directions, "src/planaria/__init__.py", "from planaria.cli import main"),
    (tidy.outside_world, RECORDS, "import sqlite3"),
    (tidy.outside_world, CORE, "import time"),
    (tidy.outside_world, CORE, "from time import monotonic"),
    (tidy.outside_world, CORE, "import os.path"),
    (tidy.outside_world, PROTOCOL, "import socket, ast"),
    (tidy.chance, PROTOCOL, "from uuid import uuid4"),
    (tidy.chance, PROTOCOL, "import secrets"),
    (tidy.chance, PROTOCOL, "from os import urandom"),
    (tidy.chance, PROTOCOL, "from random import choice"),
    (tidy.chance, PROTOCOL, "from random import Random, SystemRandom"),
    (tidy.chance, PROTOCOL, "from numpy import random"),
    (tidy.outside_world, PROTOCOL, "def f() -> None:\n    from datetime import datetime"),
    (tidy.chance, CORE, "x = hash('a')"),
    (tidy.chance, PROTOCOL, "sorted(xs, key=lambda x: id(x))"),
    (tidy.outside_world, PROTOCOL, "print(1)"),
    (tidy.outside_world, PROTOCOL, "open('x')"),
    (tidy.chance, PROTOCOL, "import random\nrandom.random()"),
    (tidy.chance, PROTOCOL, "import random\nrandom.seed(1)"),
    (tidy.chance, PROTOCOL, "rng = Random()"),
    (tidy.chance, PROTOCOL, "rng = random.Random()"),
    (tidy.chance, PROTOCOL, "import numpy as np\nnp.random.rand()"),
    (tidy.chance, SIMULATOR, "seen[hash(message)] = 1"),
    (tidy.chance, SIMULATOR, "from random import shuffle"),
    (tidy.chance, SIMULATOR, "import os\nos.urandom(8)"),
    (tidy.set_iteration, SIMULATOR, "for x in {1, 2}: pass"),
    (tidy.set_iteration, PROTOCOL, "for x in {1, 2}: pass"),
    (tidy.set_iteration, PROTOCOL, "for x in set(xs): pass"),
    (tidy.set_iteration, PROTOCOL, "ys = [x for x in {y for y in xs}]"),
    (tidy.set_iteration, PROTOCOL, "ys = {x: 1 for x in frozenset(xs)}"),
    (tidy.set_iteration, PROTOCOL, "def f(s: set[int]) -> None:\n    for x in s: pass"),
    (tidy.set_iteration, PROTOCOL, "def f(s: set[int] | None) -> None:\n    g(x for x in s)"),
    (tidy.set_iteration, PROTOCOL, "class N:\n    s: set[int]\n    def f(self): [*self.s]"),
    (tidy.set_iteration, PROTOCOL, "class N:\n    s: ClassVar[set[int]]\n\nlist(N.s)"),
    (tidy.set_iteration, PROTOCOL, "s = set()\nfor x in s - other: pass"),
    (tidy.set_iteration, PROTOCOL, "s = set()\ns.pop()"),
    (tidy.set_iteration, PROTOCOL, "s = set()\nx = next(iter(s))"),
    (tidy.set_iteration, PROTOCOL, "s = {1}\nx = min(s, key=f)"),
    (tidy.set_iteration, PROTOCOL, "s = {1}\nx = max((y for y in s), key=f)"),
    (tidy.set_iteration, PROTOCOL, "def f() -> set[int]: ...\nfor x in f(): pass"),
    (tidy.set_iteration, PROTOCOL, "for x in a.union(b): pass"),
    (tidy.module_state, PROTOCOL, "cache = {1: 2}"),
    (tidy.module_state, PROTOCOL, "SEEN = set()"),
    (tidy.module_state, PROTOCOL, "SEEN: dict[int, int] = {}"),
    (tidy.module_state, PROTOCOL, "_rng = Random(1)"),
    (tidy.module_state, PROTOCOL, "T = {1: 2}\ndef f() -> None:\n    T[3] = 4"),
    (tidy.module_state, PROTOCOL, "T = [1]\ndef f() -> None:\n    T.append(4)"),
    (tidy.module_state, PROTOCOL, "T = [1]\ndef f() -> None:\n    del T[0]"),
    (tidy.module_state, PROTOCOL, "n = 1\ndef f() -> None:\n    global n\n    n = 2"),
    (tidy.file_length, "tests/test_x.py", "x = 1\n" * 401),
    (tidy.function_length, "benchmarks/x.py", "def f():\n" + "    x = 1\n" * 41),
    (tidy.function_length, "benchmarks/x.py", "async def f():\n" + "    x = 1\n" * 71),
    (tidy.module_docstring, CORE, "x = 1"),
    (tidy.unfinished, "tests/test_x.py", "x = 1  # TO" + "DO: more"),
]

LONG_DOCSTRING = 'def f():\n    """a\n    b\n    """\n'
PASSES: list[tuple[Rule, str, str]] = [
    (tidy.import_directions, CORE, "from planaria.core.ids import NodeId\nimport msgspec"),
    (tidy.import_directions, PROTOCOL, "from planaria.protocols.dht import x"),
    (tidy.import_directions, SIMULATOR, "from planaria.protocols import ring"),
    (tidy.import_directions, PROTOCOL, "from planaria.records import store"),
    (tidy.import_directions, "src/planaria/studies/leases/runs.py", "from planaria import literal"),
    (tidy.import_directions, "tests/test_x.py", "from planaria.literal import supervisor"),
    (tidy.outside_world, PROTOCOL, "import ios, timeless; self.open(); printed()"),
    (tidy.chance, PROTOCOL, "from random import Random"),
    (tidy.outside_world, SIMULATOR, "import time\nprint(1)"),
    (tidy.chance, PROTOCOL, "def f(rng): rng.random(); Random(7); self.hash(x); x.id; id()"),
    (tidy.chance, PROTOCOL, "import random\ndef f(rng: random.Random): ..."),
    (tidy.set_iteration, PROTOCOL, "for x in sorted({1, 2}): pass"),
    (tidy.set_iteration, PROTOCOL, "def f(s: set[int]): sorted(x for x in s if x); 1 in s"),
    (tidy.set_iteration, PROTOCOL, "s = {1}\nt = {x + 1 for x in s}; any(x for x in s); max(s)"),
    (tidy.set_iteration, PROTOCOL, "for x in {1: 2}: pass"),
    (tidy.set_iteration, PROTOCOL, "xs = [1]\nxs.pop()"),
    (tidy.module_state, PROTOCOL, "_ONE = {'+': 1}\n__all__ = ['x']\nN = 3\nT = (1,)"),
    (tidy.module_state, PROTOCOL, "T = {1: 2}\ndef f(t) -> None:\n    t[3] = T[1]"),
    (tidy.file_length, "tests/test_x.py", "x = 1\n" * 400),
    (tidy.function_length, "x.py", LONG_DOCSTRING + "    x = 1\n" * 40),
    (tidy.module_docstring, CORE, "'''A module.'''"),
    (tidy.module_docstring, "src/planaria/__main__.py", "x = 1"),
    (tidy.unfinished, "tests/test_x.py", "XXXL = 1  # to do"),
]


def named(case: tuple[Rule, str, str]) -> str:
    return f"{case[0].__name__}: {case[2][:40]}"


@pytest.mark.parametrize("case", BITES, ids=named)
def test_a_rule_catches(case: tuple[Rule, str, str]) -> None:
    rule, path, text = case
    assert list(rule(source(text, path))) != []


@pytest.mark.parametrize("case", PASSES, ids=named)
def test_a_rule_lets_pass(case: tuple[Rule, str, str]) -> None:
    rule, path, text = case
    assert list(rule(source(text, path))) == []


def test_every_rule_has_a_file_it_catches_and_one_it_lets_pass() -> None:
    assert {case[0] for case in BITES} == {case[0] for case in PASSES} == {*RULES}


def test_a_ratchet_only_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    def sized(lines: int) -> Source:
        return source("def f():\n" + "    x = 1\n" * lines, "x.py")

    monkeypatch.setitem(tidy.LONG_FUNCTIONS, "x.py::f", 50)
    assert list(tidy.function_length(sized(50))) == []
    assert "lower the ratchet" in next(tidy.function_length(sized(49)))
    assert "the ratchet says" in next(tidy.function_length(sized(51)))
    monkeypatch.setitem(tidy.LONG_FUNCTIONS, "x.py::f", 71)
    assert "never more" in next(tidy.function_length(sized(71)))
