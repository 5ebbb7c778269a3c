"""The one judge: three verdicts, what a `no` means, and how claims are counted."""

from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planaria.studies.judge import (
    MEANINGS,
    Claim,
    Fact,
    Facts,
    Promise,
    Relation,
    checks,
    claims,
    counted,
    exactly,
    judge,
    literal,
    load,
    only,
    together,
)

THREE = Fact(3.0, 2.0, 4.0, 9)  # measured, with its interval
NARROW = Fact(3.0, 2.9, 3.1, 99)


@pytest.mark.parametrize(
    ("relation", "bound", "verdict"),
    [
        ("<=", 1.9, "no"), ("<=", 3.5, "undecided"), ("<=", 4.0, "yes"),
        ("<", 2.0, "no"), ("<", 3.0, "undecided"), ("<", 4.0, "undecided"), ("<", 4.1, "yes"),
        (">=", 4.1, "no"), (">=", 2.5, "undecided"), (">=", 2.0, "yes"),
        (">", 4.0, "no"), (">", 3.0, "undecided"), (">", 2.0, "undecided"), (">", 1.9, "yes"),
        ("=", 1.9, "no"), ("=", 4.1, "no"), ("=", 3.0, "undecided"),
    ],
)  # fmt: skip
def test_an_interval_that_contains_the_bound_decides_nothing(
    relation: Relation, bound: float, verdict: str
) -> None:
    assert judge(THREE, relation, exactly(bound)) == verdict


@pytest.mark.parametrize(
    ("bound", "within", "verdict"),
    [(3.0, 0.0, "yes"), (3.1, 0.0, "undecided"), (3.2, 0.0, "no"), (3.2, 0.1, "yes"),
     (3.2, 0.05, "undecided"), (3.4, 0.05, "no")],
)  # fmt: skip
def test_equality_needs_a_narrow_interval_or_slack_that_contains_it(
    bound: float, within: float, verdict: str
) -> None:
    assert judge(NARROW, "=", exactly(bound), within) == verdict


@pytest.mark.parametrize(("high", "verdict"), [(0.05, "yes"), (0.06, "undecided")])
def test_of_a_share_that_must_be_nothing_a_twentieth_is_narrow(high: float, verdict: str) -> None:
    assert judge(Fact(0.0, 0.0, high, 60), "=", exactly(0.0)) == verdict


def test_what_is_exact_is_always_decided_and_rounding_does_not_matter() -> None:
    for relation in ("=", "<=", ">="):
        assert judge(exactly(0.1 + 0.2), relation, exactly(0.3)) == "yes"
    assert judge(exactly(3.0), "<", exactly(3.0)) == "no"
    assert judge(exactly(inf), "<=", exactly(1e9)) == "no"  # what never ends
    assert judge(exactly(3.0), "<=", exactly(inf)) == "yes"


def test_nothing_measured_or_one_run_decides_nothing() -> None:
    for fact in (Fact(), Fact(3.0, runs=1)):
        assert judge(fact, "<=", exactly(9.0)) == "undecided"
        assert judge(exactly(3.0), "<=", fact) == "undecided"


ASKED = (
    Claim("a", "<=", 2.0, "big", meaning="slip", cause="one"),
    Claim("b", "<=", 4.0, "big", meaning="slip", cause="one"),
    Claim("c", "<=", "limit", "sized", "text", meaning="constant"),
    Claim("d", "=", 3.0, "open"),
    Claim("e", "<=", "constant", "grows"),
    Claim("f", "=", 1.0, "lost"),
    Claim("g", "=", 3.0, "big"),
)
FACTS: Facts = {
    **only(big=exactly(3.0), open=THREE, lost=Fact()),
    "sized": {4: exactly(2.0), 8: exactly(9.0), 16: exactly(4.0)},
    "text": {8: exactly(3.0)},
    "limit": {n: exactly(float(n) / 2) for n in (4, 8, 16)},
    "grows": {16: exactly(2.0), 64: exactly(3.0), 256: exactly(3.1)},
}


def rows() -> list[dict[str, Any]]:
    return claims(ASKED, FACTS)


def test_claims_are_judged_for_every_size_and_say_relation_meaning_and_cause() -> None:
    found = [(it["claim"], it["n"], it["paper"], it["holds"], it["meaning"]) for it in rows()]
    assert found == [
        ("a", None, 2.0, "no", "slip"),
        ("b", None, 4.0, "yes", None),
        ("c", 4, 2.0, "yes", None),
        ("c", 8, 4.0, "no", "constant"),
        ("c", 16, 8.0, "yes", None),
        ("d", None, 3.0, "undecided", None),
        ("e", 16, 3.0, "yes", None),
        ("e", 64, 3.0, "yes", None),
        ("e", 256, 3.0, "no", "paper"),
        ("f", None, 1.0, "undecided", None),
        ("g", None, 3.0, "yes", None),
    ]
    assert [it["relation"] for it in rows()][:2] == ["<=", "<="]
    assert rows()[0]["cause"] == "one"
    [text] = literal(ASKED, FACTS)
    assert (text["claim"], text["n"], text["literal"], text["holds"]) == ("c", 8, 3.0, "yes")


def test_a_claim_is_counted_once_whatever_its_sizes_and_so_is_a_cause() -> None:
    counts = counted(rows())
    assert (counts.claims, counts.yes, counts.no, counts.undecided) == (6, 1, 3, 2)
    assert counts.meanings == {"paper": 1, "constant": 1, "slip": 1}
    assert counts.yes + counts.no + counts.undecided == counts.claims
    assert sum(counts.meanings.values()) == counts.no
    assert together([{"holds": "yes"}, {"holds": "undecided"}]) == "undecided"
    assert set(counts.meanings) <= set(MEANINGS)


def test_what_never_ends_is_shown_as_nothing_and_does_not_hold() -> None:
    [row] = claims([Claim("x", "<=", 9.0, "endless")], only(endless=exactly(inf)))
    assert (row["measured"], row["low"], row["holds"]) == (None, None, "no")


def test_checks_are_judged_alike() -> None:
    asked = [Promise("kept", "<=", 3.0, "big"), Promise("broken", "<", 3.0, "big")]
    asked.append(Promise("unknown", "=", 1.0, "lost"))
    found = [(it["check"], it["bound"], it["holds"]) for it in checks(asked, FACTS)]
    assert found == [("kept", 3.0, "yes"), ("broken", 3.0, "no"), ("unknown", 1.0, "undecided")]


def test_a_table_of_claims_is_filled_with_words_and_refuses_what_it_does_not_know(
    tmp_path: Path,
) -> None:
    path = tmp_path / "claims.toml"
    claim = (
        '[[claim]]\ntext = "{group} of {bottom}"\nrelation = "="\npaper = 1\nmeasured = "{group}"\n'
    )
    path.write_text(claim + 'literal = "letter"\n')
    asked = load(path, {"group": ["T1", "T0"], "bottom": ["T1"]})
    assert [(it.text, it.measured) for it in asked.claim] == [
        ("T1 of T1", "T1"),
        ("T0 of T1", "T0"),
    ]
    assert asked.names() == ["T1", "letter", "T0"]
    for wrong in ('meaning = "odd"', 'cuase = "x"', 'relation = "=="'):
        path.write_text(claim.replace('relation = "="\n', "") + wrong + "\n")
        with pytest.raises(msgspec.ValidationError):
            load(path, {"group": ["T1"], "bottom": ["T1"]})
