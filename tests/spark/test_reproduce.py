"""Reproductions: what is promised is written, whole, and a verdict tells ours from the papers'."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec import structs
from pyarrow import csv, parquet
from pyspark.sql import SparkSession

import toy_study
from planaria.cli.main import main
from planaria.cli.reproduce import in_words as printed
from planaria.cli.reproduce import worst
from planaria.core.errors import UsageError
from planaria.spark.checks import NothingMeasured
from planaria.spark.grid import crossed
from planaria.studies import study as studies
from planaria.studies.judge import counted
from planaria.studies.report import claims_beside_literal, figure
from planaria.studies.reproduce import Reproduction, Verdict
from planaria.studies.study import Experiment, StudyBroken

pytest_plugins = ("spark_session",)


class Outside(HTMLParser):
    """What a page would fetch from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.images = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "link", "iframe"):
            self.fetched.append(tag)
        if tag == "img":
            self.images += 1
            if not (given["src"] or "").startswith("data:"):
                self.fetched.append(given["src"] or "")


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Verdict]:
    out = tmp_path_factory.mktemp("reproduce") / "out"
    return out, Reproduction([toy_study.STUDY], "quick", str(out)).run(spark)


def test_every_table_is_there_as_parquet_and_csv_with_the_promised_columns(
    done: tuple[Path, Verdict],
) -> None:
    out, _ = done
    for name, columns in toy_study.PROMISED.items():
        table = parquet.read_table(out / f"toy/{name}.parquet")
        assert tuple(table.column_names) == tuple(columns)
        assert csv.read_csv(out / f"toy/{name}.csv").num_rows == table.num_rows > 0


def test_a_false_claim_of_a_paper_is_a_finding_and_not_a_failure(
    done: tuple[Path, Verdict],
) -> None:
    _, verdict = done
    assert [(it["claim"], it["holds"], it["meaning"]) for it in verdict.claims] == [
        ("sum <&>", "yes", None),
        ("square", "no", "slip"),
    ]
    assert verdict.good


def test_a_failed_check_of_ours_is_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    verdict = Reproduction([toy_study.STUDY], "beyond", str(tmp_path / "out")).run(spark)
    assert [it["holds"] for it in verdict.checks] == ["no"]  # 10 is more than 8
    assert not verdict.good


def test_the_report_fetches_nothing_and_escapes_what_studies_say(
    done: tuple[Path, Verdict],
) -> None:
    out, verdict = done
    assert verdict.report == f"{out}/report.html"
    text = Path(verdict.report).read_text()
    page = Outside()
    page.feed(text)
    assert page.fetched == []
    assert page.images == 1
    assert "sum &lt;&amp;&gt;" in text
    assert "<p>There are 3 points.</p>" in text
    assert (out / "toy/line.svg").read_text().startswith("<?xml")


def test_the_report_puts_the_literal_reading_beside_the_claim() -> None:
    claims = [{"claim": "a", "n": 4}, {"claim": "a", "n": 8}, {"claim": "b", "n": 8}]
    literal = [{"claim": "a", "n": 8, "literal": 3.0, "holds": "no"}]
    joined = claims_beside_literal({"claims": claims, "literal": literal})
    assert [it["literal"] for it in joined] == [None, 3.0, None]
    assert [it["literal_holds"] for it in joined] == [None, "no", None]


def test_the_same_command_goes_on_and_a_larger_scale_adds_only_what_is_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    Reproduction([toy_study.STUDY], "quick", out).run(spark)
    again = Reproduction([toy_study.STUDY], "paper", out)
    assert len(again.sweeps["toy"]["double"].missing()) == 1
    again.run(spark)
    assert again.sweeps["toy"]["double"].missing() == []
    assert parquet.read_table(tmp_path / "out/toy/points.parquet").num_rows == 4


def test_a_simulation_that_raises_is_told_with_the_command_that_repeats_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Reproduction([toy_study.FRAGILE], "quick", str(tmp_path / "out")).run(spark)
    assert not verdict.good
    (error,) = verdict.errors
    assert "KeyError" in error["error"]
    assert error["error"] in Path(verdict.report).read_text().replace("&#39;", "'")
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:FRAGILE"})
    with pytest.raises(KeyError, match="three"):
        main(error["replay"].split()[1:])


def test_a_sweep_of_which_every_simulation_raises_is_one_line_with_a_command_that_repeats_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = crossed({"x": [3]}, [0, 1])
    columns = {"twice": "float64"}
    raising = Experiment("double", columns, toy_study.fragile, cells, toy_study.SUMMED)
    study = structs.replace(toy_study.FRAGILE, experiments=lambda _: [raising])
    words = r"^toy-double: all 2 simulations raised KeyError.*; replay: planaria reproduce toy .*$"
    with pytest.raises(NothingMeasured, match=words):
        Reproduction([study], "quick", str(tmp_path / "out")).run(spark)


def test_a_study_that_breaks_its_word_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    wrong = {**toy_study.PROMISED, "points": {"x": "int64", "thrice": "float64"}}
    study = structs.replace(toy_study.STUDY, promised=wrong)
    with pytest.raises(StudyBroken, match="toy/points has no column thrice"):
        Reproduction([study], "quick", str(tmp_path / "a")).run(spark)
    study = structs.replace(
        toy_study.STUDY, promised={**toy_study.PROMISED, "more": {"x": "int64"}}
    )
    with pytest.raises(StudyBroken, match="more"):
        Reproduction([study], "quick", str(tmp_path / "b")).run(spark)


def test_the_command_prints_the_claims_and_the_path_of_the_report(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:STUDY"})
    out = str(tmp_path / "out")
    assert main(["reproduce", "toy", "--out", out]) == 0
    text = capsys.readouterr().out
    assert text == (
        "toy:  1 of 2 claims hold,  0 undecided,  1 of 1 own checks\n"
        f"the others do not: a slip of the pen (1)\nreport: {out}/report.html\n"
    )
    assert main(["reproduce", "toy", "--out", out, "-v"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("paper  claim    claimed  measured  holds\n")
    assert text.count("\ntoy ") == 2
    assert main(["reproduce", "--scale", "beyond", "--out", out, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [it["holds"] for it in answer["checks"]] == ["no"]


def test_the_closing_line_and_the_table_of_the_report_agree(done: tuple[Path, Verdict]) -> None:
    """Both count by the judge: here one of two holds, the other is a slip of the pen."""
    _, verdict = done
    counts = counted(verdict.claims)
    assert (counts.yes, counts.claims, counts.meanings) == (1, 2, {"slip": 1})
    row = next(
        line
        for line in Path(verdict.report).read_text().splitlines()
        if 'href="#toy">A toy</a></td>' in line
    )
    cells = [it.partition("</td>")[0] for it in row.split('<td class="number">')[1:]]
    assert cells == ["2", "1", "0", "1", "0", "0", "1", "0", "1", "1", "0", "0"]
    closing = printed(verdict).splitlines()[:2]
    assert closing[0].startswith(f"toy:  {cells[1]} of {cells[0]} claims hold,  {cells[2]} undec")
    assert closing[1] == f"the others do not: a slip of the pen ({cells[6]})"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "unknown paper 'nothing' (one of toy)"),
        (["--scale", "huge"], "unknown scale 'huge' (one of quick, paper, beyond)"),
        (["toy", "--cell", "f00"], "unknown cell 'f00' of toy"),
        (["--out", "OTHER"], "is not empty and holds no sweep"),
    ],
)
def test_a_wrong_command_is_one_line_that_says_what_to_do(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(studies, "STUDIES", {"toy": "toy_study:STUDY"})
    (tmp_path / "thesis.tex").touch()
    given = [str(tmp_path) if it == "OTHER" else it for it in arguments]
    assert main(["reproduce", *given]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_of_a_claim_tried_at_several_sizes_the_worst_is_shown_else_the_largest() -> None:
    tried = [("a", 4, "yes"), ("a", 8, "no"), ("a", 16, "undecided"), ("b", 4, "yes")]
    tried += [("b", 8, "yes"), ("c", 4, "undecided"), ("c", 8, "yes")]
    claims = [{"study": "x", "claim": it[0], "n": it[1], "holds": it[2]} for it in tried]
    assert [(it["claim"], it["n"]) for it in worst(claims)] == [
        ("a", 8),
        ("b", 8),
        ("c", 4),
    ]


def test_an_output_directory_of_another_version_is_refused(tmp_path: Path) -> None:
    Reproduction([toy_study.STUDY], "quick", str(tmp_path / "out"))
    manifest = tmp_path / "out/sweep.json"
    manifest.write_text(manifest.read_text().replace('"code": "', '"code": "0'))
    with pytest.raises(UsageError, match="name another directory"):
        Reproduction([toy_study.STUDY], "quick", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (12345, "12,345"),
        (2.0, "2"),
        (0.123456, "0.1235"),
        (1234.5, "1,234"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        ("word", "word"),
    ],
)
def test_figures_are_written_as_people_read_them(value: object, text: str) -> None:
    assert figure(value) == text
