"""The routing strategies (paper 4, sections 3.2 to 3.4): which filters a broker tells a neighbour.

Given all leases that the neighbour did not tell itself, each strategy is one reduction, computed
afresh from the table whenever it changed. Nothing is forwarded that is not in the table, so a
cover that expires uncovers what it covered, and a merge ends with its last constituent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from planaria.filters.filters import (
    TOPIC,
    Attributes,
    Filter,
    covers,
    filter_id,
    imperfect_merge,
    witness,
)
from planaria.filters.matching import MatchingIndex
from planaria.filters.values import RANGES_MAX, either, parts

STRATEGIES = ("flooding", "simple", "identity", "covering", "merging")
MERGE_ROUNDS_MAX = 4  # rounds over all attributes; more merges wait for the next change
REMEMBERED = 64  # sequences of filters of which the maximal ones are known, of at most
REMEMBERED_FILTERS_MAX = 256  # filters each: a megabyte of references in all
PAIRS_MAX = 32  # filters that are compared pair by pair; an index of more is worth its making
IMPERFECT_MAX = 200  # filters among which pairs are tried for imperfect merging: it is quadratic

Subscriptions = Mapping[int, Filter]


def reduced(
    strategy: str,
    subscriptions: Subscriptions,
    sample: Sequence[Attributes] = (),
    waste_max: float = 0.0,
    identify: Callable[[Filter], int] = filter_id,
) -> dict[int, Filter]:
    """What a neighbour has to know of `subscriptions` under `strategy`, by id."""
    if strategy == "flooding":
        return {}
    if strategy == "simple":
        return dict(subscriptions)
    filters = list(dict.fromkeys(subscriptions.values()))
    if strategy in ("covering", "merging"):
        filters = maximal(filters)
    if strategy == "merging":
        filters = merged(filters)
        if waste_max > 0:
            filters = _wasteful(filters, sample, waste_max)
    return {identify(filter): filter for filter in filters}


def maximal(filters: Sequence[Filter]) -> list[Filter]:
    """Those of `filters` that no other one covers; all are different.

    A broker asks again whenever a leasing period is over, and mostly about the same ones.
    """
    few = len(filters) <= REMEMBERED_FILTERS_MAX
    places = _remembered_places(tuple(filters)) if few else _maximal_places(filters)
    return [filters[place] for place in places]


def _maximal_places(filters: Sequence[Filter]) -> tuple[int, ...]:
    """Where those stand that no other one covers: the same places in equal sequences."""
    named = [frozenset([name for name, _ in it.constraints]) for it in filters]
    # Patterns of topics take several times as long to compare as other values.
    pairs = len(filters) <= PAIRS_MAX and not any(TOPIC in names for names in named)
    rivals = _frugal(named) if pairs else _matching(filters)
    return tuple(
        number
        for number, (filter, others) in enumerate(zip(filters, rivals, strict=True))
        if not any(covers(filters[it], filter) for it in others if it != number)
    )


def _frugal(named: Sequence[frozenset[str]]) -> Iterator[Sequence[int]]:
    """For each filter those that name no attribute beyond its own: another cannot cover it."""
    for mine in named:
        yield [place for place, names in enumerate(named) if names <= mine]


def _matching(filters: Sequence[Filter]) -> Iterator[Sequence[int]]:
    """For each filter those that match one chosen example of what it matches, by an index.

    Whoever covers it matches all that it matches.
    """
    index = MatchingIndex()
    for number, filter in enumerate(filters):
        index.add(number, filter)
    for filter in filters:
        example = witness(filter)
        yield range(len(filters)) if example is None else index.match(example)  # type: ignore[misc]


_remembered_places = lru_cache(maxsize=REMEMBERED)(_maximal_places)


def merged(filters: Sequence[Filter]) -> list[Filter]:
    """Perfect merging: filters that differ in one attribute only become one, as often as it goes.

    Matches exactly what `filters` match.
    """
    found = list(filters)
    for _ in range(MERGE_ROUNDS_MAX):
        before = len(found)
        for attribute in sorted({name for it in found for name, _ in it.constraints}):
            found = _merged_by(attribute, found)
        if len(found) == before:
            break
        found = maximal(list(dict.fromkeys(found)))
    return found


def _merged_by(attribute: str, filters: list[Filter]) -> list[Filter]:
    """Join those filters that agree on everything but `attribute`."""
    groups: dict[tuple[object, ...], Filter] = {}
    found: list[Filter] = []
    for filter in filters:
        named = dict(filter.constraints)
        if attribute not in named:
            found.append(filter)
            continue
        rest = tuple(it for it in filter.constraints if it[0] != attribute)
        other = groups.get(rest)
        if other is None:
            groups[rest] = filter
            continue
        values = either(dict(other.constraints)[attribute], named[attribute])
        if parts(values) > RANGES_MAX:
            found.append(filter)
            continue
        named[attribute] = values
        groups[rest] = Filter(tuple(sorted(named.items(), key=lambda it: it[0])))
    return found + list(groups.values())


def _wasteful(
    filters: list[Filter], sample: Sequence[Attributes], waste_max: float
) -> list[Filter]:
    """Imperfect merging of pairs while the waste measured on `sample` keeps its bound."""
    if len(filters) > IMPERFECT_MAX:
        return filters
    found: list[Filter] = []
    for filter in filters:
        for place, other in enumerate(found):
            both = imperfect_merge(other, filter, sample, waste_max)
            if both is not None:
                found[place] = both
                break
        else:
            found.append(filter)
    return maximal(list(dict.fromkeys(found)))
