"""Write the table of docs/proofs/mutants.md: every rule left out once, and who noticed.

python docs/mutants_page.py
"""

import os
import subprocess
import sys
from pathlib import Path

from planaria.verify.cases import Case
from planaria.verify.errata_mutants import PAPERS, Answer
from planaria.verify.mutants import MUTANTS, PARTS
from planaria.verify.mutation import Mutant, mutated

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "proofs" / "mutants.md"
BEGIN, END = "<!-- mutants -->", "<!-- end of mutants -->"
STATES_MAX = 300_000
FAILED = 1  # what pytest returns when a test failed
RULES = ("core", "filters", "protocols", "records")  # where they are


def caught(mutant: Mutant) -> str:
    """What noticed that the rule is missing; empty: nothing did."""
    if isinstance(mutant.caught, Case):
        with mutated(mutant):
            result = mutant.caught.search().run(STATES_MAX)
        kinds = {it.kind: it.count for it in result.findings}
        return ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
    place = ROOT / "tests" / mutant.caught
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "mutant_plugin", str(place)]
    code = subprocess.run(  # noqa: S603
        [*command, "--no-header", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={
            **os.environ,
            "PLANARIA_MUTANT": str(MUTANTS.index(mutant)),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        },
        capture_output=True,
        check=False,
    ).returncode
    return "the test fails" if code == FAILED else ""


def row(mutant: Mutant) -> str:
    """One line of the table."""
    by = f"`planaria verify {mutant.caught}`"
    if isinstance(mutant.caught, str):
        by = f"`{mutant.caught}`"
    return f"| {mutant.name} | {mutant.rule} | {by} | {caught(mutant) or '**not caught**'} |\n"


def amendments() -> str:
    """Every erratum of the papers, and by which mutants it is answered, or why by none."""
    lines = ["\n## Every erratum\n", "| paper | erratum | rule left out, or why there is none |"]
    lines.append("|---|---|---|")
    for title, paper in PAPERS.items():
        answers: dict[Answer, list[str]] = {}
        for erratum, answer in paper.answers.items():
            answers.setdefault(answer, []).append(erratum)
        name = title.partition(":")[0]
        for answer, errata in answers.items():
            said = answer if isinstance(answer, str) else f"**{answer[0]}**"
            lines.append(f"| {name} | {', '.join(errata)} | {said} |")
    return "\n".join(lines) + "\n"


def code() -> str:
    """The last commit that changed any of the rules."""
    places = [str(ROOT / "src" / "planaria" / name) for name in RULES]
    command = ["git", "log", "-1", "--format=%h of %cs", "--", *places]
    return subprocess.run(  # noqa: S603
        command, cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.strip()


def main() -> None:
    """Run all of them; only what stands between the markers changes."""
    tables = f"\nAll were run with the protocols of commit {code()}.\n"
    for name, mutants in PARTS.items():
        tables += (
            f"\n## {name}\n\n| rule | what it says | looked for by | found |\n|---|---|---|---|\n"
        )
        for mutant in mutants:
            tables += row(mutant)
            sys.stdout.write(f"{mutant.name}: {tables.splitlines()[-1].split('|')[-2].strip()}\n")
            sys.stdout.flush()
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{tables}{amendments()}\n{END}{tail}")


if __name__ == "__main__":
    main()
