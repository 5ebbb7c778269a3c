"""Reports fit any screen: what is wider than a page scrolls by itself."""

import re
from pathlib import Path

import pytest

import planaria.studies

TEMPLATES = sorted(Path(planaria.studies.__file__).parent.glob("templates/*.html"))


@pytest.mark.parametrize("page", TEMPLATES, ids=lambda it: str(it.name))
def test_a_table_never_makes_the_whole_page_wider(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"(.*)<table>", text) == ['<div class="wide">'] * text.count("<table")


def test_tables_are_looked_at() -> None:
    assert sum("<table>" in page.read_text() for page in TEMPLATES) >= 3
