"""What the pages say is true: their code runs, their commands work, their links and names exist."""

import ast
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import click
import pytest

from planaria.cli.main import planaria as cli
from planaria.simulator.engine import KINDS
from planaria.simulator.links import SCHEDULERS
from planaria.simulator.schedule import ACTIONS
from planaria.simulator.trace import COLUMNS, LEVELS

ROOT = Path(__file__).resolve().parent.parent
PROOFS = ROOT / "docs/proofs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)
COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
SEPARATORS = ("&&", "||", "|", "&", ";", ">", "<")
SECONDS_MAX = 120  # a page that takes longer is a benchmark


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    line: int
    text: str


class Command(NamedTuple):
    """A `$` line of a console block, and what must come out of it."""

    words: list[str]
    expected: str
    code: int


def blocks(text: str, language: str) -> list[Block]:
    fences = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [Block(f[1], text[: f.start(2)].count("\n") + 1, f[2]) for f in fences]
    return [block for block in found if block.language == language]


def program(text: str) -> str:
    """All Python blocks of a page, each at its own line, so that a traceback points into it."""
    lines: list[str] = []
    for block in blocks(text, "python"):
        lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines)


def commands(text: str) -> list[Command]:
    """The `$` lines of all console blocks; `$ echo $?` after one states its exit code."""
    found: list[Command] = []
    for block in blocks(text, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            if line == "echo $?":
                found[-1] = found[-1]._replace(code=int(expected))
            else:
                found.append(Command(shlex.split(line), expected, 0))
    return found


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a page may define messages, and tags are unique in a process."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )


def run_blocks(text: str, name: str) -> subprocess.CompletedProcess[str]:
    execute = "import sys; exec(compile(sys.argv[1], sys.argv[2], 'exec'), {'__name__': 'page'})"
    return run(["-c", execute, program(text), name], ROOT)


def failed_commands(text: str, directory: Path) -> list[str]:
    """What is wrong with the console blocks of a page, run where `examples/` can be seen."""
    if not (directory / "examples").exists():
        (directory / "examples").symlink_to(ROOT / "examples")
    wrong = []
    for command in commands(text):
        if command.words[0] != "planaria":
            wrong.append(f"{command.words[0]}: console blocks show planaria only")
            continue
        result = run(["-m", "planaria", *command.words[1:]], directory)
        got = result.stdout
        if result.returncode != command.code:
            wrong.append(f"{command.words}: exit {result.returncode}: {got}{result.stderr}")
        elif not doctest.OutputChecker().check_output(command.expected or "...\n", got, COMPARE):
            wrong.append(f"{command.words} printed\n{got}")
    return wrong


def missing_links(text: str, directory: Path) -> list[str]:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    return [link for link in links if not (directory / link).exists()]


def missing_targets(text: str) -> list[str]:
    """Targets that a page tells its reader to make and that the Makefile does not have."""
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared is not None
    named = re.findall(r"^make ([a-z]+)$|`make ([a-z]+)`", text, re.MULTILINE)
    return [one or other for one, other in named if (one or other) not in declared[1].split()]


def missing_names(text: str) -> list[str]:
    """Functions and tests of the tables 'rule, function, test' that do not exist."""
    wrong = []
    for row in re.findall(r"^\| .* \| (`.*`) \| (`.*`) \|$", text, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", row[0]):
            room = "" if name.startswith("records.") else "protocols."
            try:
                resolve_name(f"planaria.{room}{name}")
            except (ImportError, AttributeError):
                wrong.append(name)
        for test in re.findall(r"`([^`]+)`", row[1]):
            path, _, name = test.partition("::")
            file = ROOT / "tests" / path
            body = ast.parse(file.read_text()).body if file.exists() else []
            if name not in [node.name for node in body if isinstance(node, ast.FunctionDef)]:
                wrong.append(test)
    return wrong


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page: str) -> None:
    text = (ROOT / page).read_text()
    if blocks(text, "python"):
        assert run_blocks(text, page).stderr == ""


@pytest.mark.parametrize("page", PAGES)
def test_console_blocks_do_what_they_show(page: str, tmp_path: Path) -> None:
    assert failed_commands((ROOT / page).read_text(), tmp_path) == []


def impossible(line: str) -> str:
    """Why a command that a page shows cannot be typed so; empty if it can."""
    words = list(takewhile(lambda it: it not in SEPARATORS, shlex.split(line, comments=True)))
    command: click.Command = cli
    context, rest = click.Context(cli), words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            return f"no command {rest[0]}"
        command, context, rest = found, click.Context(found, context), rest[1:]
    try:
        command.make_parser(context).parse_args(rest)
    except click.UsageError as error:
        return error.format_message()
    return ""


def shown_commands(text: str) -> list[str]:
    """The `planaria` lines of blocks that are no programs; those of `console` are run anyway."""
    shell = "".join(block.text for it in ("sh", "text") for block in blocks(text, it))
    lines = re.findall(r"^(?:\$ )?(planaria [a-z].*)$", shell, re.MULTILINE)
    return lines + re.findall(r"^    (planaria .*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_commands_can_be_typed_as_they_are_shown(page: str) -> None:
    lines = shown_commands((ROOT / page).read_text())
    assert [(it, why) for it in lines if (why := impossible(it))] == []


def test_a_command_or_an_option_that_does_not_exist_is_caught() -> None:
    assert impossible("planaria pub news hello --lines  # all of it") == ""
    assert "no command" in impossible("planaria publish news")
    assert "--since" in impossible("planaria pub news --since all")
    assert shown_commands("```sh\nplanaria up  # x\n```\n\n    planaria ls\n") == [
        "planaria up  # x",
        "planaria ls",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_targets_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    assert missing_links(text, (ROOT / page).parent) == []
    assert missing_targets(text) == []


def test_the_model_names_functions_and_tests_that_exist() -> None:
    text = (ROOT / "docs/model.md").read_text()
    assert "_labels.py::" in text
    assert missing_names(text) == []


def named_tests(text: str) -> list[str]:
    """Every `file.py::test` that a page names."""
    return re.findall(r"`([\w/]+\.py::\w+)`", text)


@pytest.mark.parametrize("page", sorted(it.name for it in PROOFS.glob("*.md")))
def test_the_proofs_name_tests_that_exist(page: str) -> None:
    tests = named_tests((PROOFS / page).read_text())
    assert tests or page == "index.md"
    missing = [it for it in tests if missing_names(f"| x | `core` | `{it}` |") != ["core"]]
    assert missing == []


def test_every_lemma_says_how_far_it_is_shown_and_names_a_test() -> None:
    marks = ("proved", "searched", "**open**", "as [")
    for page in [it for it in PROOFS.glob("*.md") if it.name != "mutants.md"]:
        for row in re.findall(r"^\| [LTS]\d+ \| .*$", page.read_text(), re.MULTILINE):
            _, _, status, _, test = row.split(" | ")
            assert status.startswith(marks), row
            assert "::" in test, row


def test_the_page_on_simulation_names_every_fault_scheduler_and_trace_column() -> None:
    text = (ROOT / "docs/simulation.md").read_text()
    arguments = [name for defaults in ACTIONS.values() for name in defaults]
    for name in [*ACTIONS, *arguments, *SCHEDULERS[1:], *COLUMNS, *LEVELS, *KINDS]:
        assert re.search(rf"`{name}\b", text), name


def test_the_readme_shows_the_commands_to_paste() -> None:
    lines = "".join(block.text for block in blocks((ROOT / "README.md").read_text(), "sh"))
    assert {"make demo", "make test"} <= set(lines.splitlines())


def test_the_docs_build_without_a_warning(tmp_path: Path) -> None:
    arguments = ["-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html"]
    result = subprocess.run(
        [sys.executable, *arguments, "-d", str(tmp_path / "trees"), "docs", str(tmp_path / "html")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "html/write-a-protocol.html").stat().st_size > 10_000
    if CHROMIUM is not None:
        assert cut_off(tmp_path / "html", ("reference", "nodes", "operating")) == []


def cut_off(site: Path, names: tuple[str, ...]) -> list[str]:
    """The pages whose text ends beyond the right edge of a usual screen, where nobody sees it."""
    tools = pytest.importorskip("playwright.sync_api", reason="skipped: no Playwright")
    beyond = "document.querySelector('article').getBoundingClientRect().right > innerWidth"
    with tools.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page, found = browser.new_page(viewport={"width": 1280, "height": 900}), []
        for name in names:
            page.goto((site / f"{name}.html").as_uri())
            found += [name] if page.evaluate(beyond) else []
        browser.close()
    return found


def test_a_failing_block_is_caught_and_its_line_named() -> None:
    text = "# Page\n\n```python\nx = 1\n```\n\nThen:\n\n```python\nassert x == 2\n```\n"
    assert 'File "page.md", line 10' in run_blocks(text, "page.md").stderr


@pytest.mark.parametrize(
    ("block", "good"),
    [
        ("$ planaria --version\nplanaria ...\n", True),
        ("$ planaria --version\nplanaria 77.0\n", False),
        ("$ planaria sim no-such-overlay\n", False),
        ("$ planaria sim no-such-overlay\n$ echo $?\n2\n", True),
        ("$ rm x\n", False),
    ],
)
def test_a_wrong_command_or_output_is_caught(block: str, good: bool, tmp_path: Path) -> None:
    assert (failed_commands(f"```console\n{block}```\n", tmp_path) == []) == good


def test_a_dead_link_target_or_name_is_caught() -> None:
    assert missing_links("[a](README.md) [b](docs/no.md) [c](https://x.org/)", ROOT) == [
        "docs/no.md"
    ]
    assert missing_targets("```sh\nmake nothing\n```\n`make test`") == ["nothing"]
    row = (
        "| r | `skipring.labels.position`, `skipring.labels.no` | `protocols/test_labels.py::no` |"
    )
    assert missing_names(row) == ["skipring.labels.no", "protocols/test_labels.py::no"]
