"""What holds for the study of every paper."""

import pytest

from planaria.spark.sweep import summary_schema
from planaria.studies.facts import Summary
from planaria.studies.judge import claims
from planaria.studies.study import SCALES, STUDIES, find_study


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", STUDIES)
def test_every_scale_runs_the_same_experiments_and_no_cell_twice(name: str, scale: str) -> None:
    study = find_study(name)
    found = study.experiments(scale)
    assert [it.name for it in found] == [it.name for it in study.experiments("quick")]
    for experiment in found:
        keys = [cell.key(experiment.name) for cell in experiment.cells]
        assert keys
        assert len({*keys}) == len(keys)
        assert summary_schema(experiment.work(name), experiment.cells)


@pytest.mark.parametrize("name", ["dhttree", "leases", "mobile"])
def test_no_claim_names_a_fact_that_does_not_exist_and_without_runs_none_is_decided_by_them(
    name: str,
) -> None:
    """The other two have facts by whose rules or by group: their tests ask with real runs."""
    study = find_study(name)
    found = {it.name: Summary([]) for it in study.experiments("quick")}
    asked, facts = study.asked(found), study.facts(found)
    assert [it for it in asked.names() if it not in facts] == []
    judged = claims(asked.claim, facts)
    counts = ("crossings", "crossings_simulated", "affected")  # of which there are none at all
    known = {it.text for it in asked.claim if it.measured in counts}
    assert {row["holds"] for row in judged if row["claim"] not in known} == {"undecided"}
    causes: dict[str, set[str]] = {}
    for claim in asked.claim:
        causes.setdefault(claim.cause or claim.text, set()).add(claim.meaning)
    assert all(len(meanings) == 1 for meanings in causes.values())
