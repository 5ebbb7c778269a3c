"""Pages and pictures that are made from the code say what it says now."""

import re
import runpy

import planaria
from planaria.cli.main import COMMANDS
from toys import ROOT

DOI = re.compile(r"10\.\d{4}/[\w.]+")


def test_the_reference_has_every_command_and_every_public_name_with_its_promise() -> None:
    reference = runpy.run_path(str(ROOT / "docs" / "reference_pages.py"))
    program, context = reference["program"], reference["click"].Context(reference["program"])
    for name in COMMANDS:
        found = dict(reference["commands"](program.get_command(context, name), name))
        assert found, name
        assert all(text.startswith(f"Usage: {it} ") for it, text in found.items())
    described = {name: reference["described"](name, it) for name, it in reference["public"]()}
    assert {*planaria.__all__} - {*described} == {"__version__", "sync"}
    assert all("\n" in text for text in described.values()), "a name without a docstring"
    assert "publish(self, topic: str" in described["Client"]


def test_the_picture_of_healing_is_what_the_simulator_does() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "healing_picture.py"))
    curves = {name: script["curve"](it) for name, it in script["overlays"]().items()}
    assert script["PICTURE"].read_text().count("<polyline") == len(curves)
    broker, ring = curves.values()
    assert broker[-1] > 0
    assert ring[-1] == ring[script["FAULTS"][-1] - 1] == 0
    assert max(ring) == script["MEMBERS"]


def test_the_page_of_papers_has_the_dois_of_the_citation_in_table_and_bibtex() -> None:
    cited = set(DOI.findall((ROOT / "CITATION.cff").read_text()))
    page = (ROOT / "docs" / "papers.md").read_text()
    assert len(cited) == 4
    assert {*DOI.findall(page)} == cited
    assert all(f"doi       = {{{it}}}" in page for it in cited)
    assert page.count("@inproceedings") == 5
