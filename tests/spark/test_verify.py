"""A search spread over Spark covers and finds what a search in one process does."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.spark.verify import Share, Spread, divided
from planaria.verify import check
from planaria.verify.cases import Case
from planaria.verify.mutants import MUTANTS
from planaria.verify.mutation import mutated
from planaria.verify.replay import read
from spark_lab import Raising, WithoutRule

pytest_plugins = ("spark_session",)

CASE = Case("sorted-ring", 2, "labels", channel=4)
MOST = 100_000
COUNTED = ("starts", "states", "expanded", "transitions", "legitimate", "cut", "covered")


def counts(result: check.Result) -> dict[str, object]:
    found = {name: getattr(result, name) for name in COUNTED}
    return {**found, **{it.kind: it.count for it in result.findings}}


def test_parts_cover_together_what_one_search_covers(spark: SparkSession, tmp_path: Path) -> None:
    whole = CASE.search().run(MOST)
    covered = Spread(Share(CASE, MOST), 3, str(tmp_path)).covered(spark)
    assert counts(covered.result) == counts(whole)
    assert covered.visited > whole.states, "parts meet in states, which count once"
    assert (covered.parts, covered.errors, covered.examples) == (3, [], [])
    assert Spread(Share(CASE, MOST), 3, str(tmp_path)).sweep.missing() == []


def test_a_livelock_is_found_in_parts_and_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    mutant = next(it for it in MUTANTS if it.name == "older label")
    case = mutant.caught
    assert isinstance(case, Case)
    with mutated(mutant):
        whole = case.search().run(MOST)
    share = WithoutRule(case, MOST, mutant.name)
    covered = Spread(share, 4, str(tmp_path)).covered(spark)
    assert counts(covered.result) == counts(whole)
    assert {"livelock", "trap"} <= {it.kind for it in covered.result.findings}
    place = next(it for it, ex in enumerate(covered.examples) if ex["kind"] == "livelock")
    path = tmp_path / "example.json"
    path.write_text(json.dumps(covered.examples[place]))
    with mutated(mutant):
        lines = list(read(path).lines())
    assert "for ever:" in lines
    assert lines[-1].startswith("FOUND livelock")


def test_a_part_that_cannot_be_searched_is_told(spark: SparkSession, tmp_path: Path) -> None:
    covered = Spread(Raising(CASE, MOST), 2, str(tmp_path)).covered(spark)
    [(error, command)] = covered.errors
    assert "KeyError" in error
    assert command.endswith("--part 0:71")
    assert covered.result.starts == 71


def test_the_starts_are_divided_without_gaps() -> None:
    assert divided(CASE, 3) == [(0, 47), (47, 94), (94, 142)]
    with pytest.raises(UsageError, match="1 to 142"):
        divided(CASE, 143)


def test_one_part_is_searched_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["verify", *str(CASE).split(), "--json", "--part"]
    assert main([*asked, "47:94"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["starts"] == 47
    assert main([*asked, "94:47"]) == 2
    assert main(["verify", "sorted-ring", "--parts", "3"]) == 2
    assert main(["verify", *str(CASE).split(), "--master", "local"]) == 2
    assert main([*asked, "0:3", "--parts", "3"]) == 2
