"""Every rule that is left out is missed by a search or by a test; all of them at night."""

import re
import runpy
from collections.abc import Callable

import pytest

from planaria.core.errors import UsageError
from planaria.protocols.ring.sorted_ring import SortedRing
from planaria.verify.cases import Case
from planaria.verify.errata_mutants import PAPERS
from planaria.verify.mutants import MUTANTS, PARTS
from planaria.verify.mutation import Mutant, mutated
from planaria.verify.ring_mutants import BUILD_RING
from toys import ROOT

page = runpy.run_path(str(ROOT / "docs" / "mutants_page.py"))
QUICK = ("E3", "wrong side", "displaced", "contest", "older label", "called", "called anew", "E7")


@pytest.mark.parametrize("name", QUICK)
def test_rule_that_is_left_out_is_found_by_a_search(name: str) -> None:
    mutant = next(it for it in MUTANTS if it.name == name)
    assert isinstance(mutant.caught, Case)
    assert page["caught"](mutant)
    assert not mutant.caught.search().run().findings  # and put back


@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_every_rule_that_is_left_out_is_missed(
    number: int, seeds: Callable[[int, int], int]
) -> None:
    seeds(0, 1)
    assert page["caught"](MUTANTS[number])


def test_every_mutant_fits_the_code_and_is_named_once() -> None:
    for mutant in MUTANTS:
        with mutated(mutant):
            pass
    assert len({(it.name, it.place) for it in MUTANTS}) == len(MUTANTS)
    before = SortedRing._key
    with mutated(next(it for it in BUILD_RING if it.name == "E3")):
        assert SortedRing._key is not before
    assert SortedRing._key is before


def errata_of(title: str) -> list[str]:
    """The numbers of the errata in the table under a heading of docs/errata.md."""
    text = (ROOT / "docs" / "errata.md").read_text().partition(f"### {title}\n")[2]
    return re.findall(r"^\| ([ET]?\d+) \|", text.partition("\n##")[0], re.MULTILINE)


def test_every_erratum_is_a_mutant_or_says_why_it_is_none() -> None:
    text = (ROOT / "docs" / "errata.md").read_text()
    assert re.findall(r"^### (Paper .*)$", text, re.MULTILINE) == list(PAPERS)
    for title, paper in PAPERS.items():
        assert sorted(paper.answers) == sorted(errata_of(title)) != []
        names = {it.name for part in paper.parts for it in PARTS[part]}
        for answer in paper.answers.values():
            assert isinstance(answer, str) or set(answer) <= names, answer


@pytest.mark.parametrize("name", ["skip-ring", "publications"])
def test_the_rule_of_every_lemma_that_is_proved_is_missed_by_its_own_test(name: str) -> None:
    text = (ROOT / "docs" / "proofs" / f"{name}.md").read_text()
    rows = re.findall(r"^\| ([LTS]\d+) \|[^|]*\|([^|]*)\|[^|]*\|(.*)\|$", text, re.MULTILINE)
    caught = {it.caught for it in MUTANTS}
    assert len(rows) > 10
    for lemma, status, tests in rows:
        if status.strip().startswith("proved"):
            assert caught & set(re.findall(r"`([^`]*)`", tests)), lemma


def test_the_page_has_every_mutant_and_every_erratum() -> None:
    text = (ROOT / "docs" / "proofs" / "mutants.md").read_text()
    for mutant in MUTANTS:
        assert f"| {mutant.name} | {mutant.rule} |" in text, mutant.name
    assert "not caught" not in text
    assert page["amendments"]() in text


def test_a_mutant_of_what_is_not_there_is_refused() -> None:
    wrong = Mutant("x", "x", "ring.sorted_ring:SortedRing._key", "nothing", "", "x")
    with pytest.raises(UsageError, match="0 times"), mutated(wrong):
        pass
