"""Filters: conjunctions of constraints on attributes, and what can be said of two of them.

A filter is a box: one set of allowed values for each attribute it names. So covering and overlap
are decided attribute by attribute, and the union of two filters is a filter again exactly when one
covers the other or they differ in one attribute only. All answers are exact (numbers are taken as
dense), and equal sets of notifications have equal filters.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from planaria.core.ids import stable_hash
from planaria.filters.values import (
    RANGES_MAX,
    Value,
    Values,
    both,
    either,
    example,
    has,
    includes,
    parts,
    regular,
    sendable,
)

TOPIC = "topic"  # the attribute whose constraints are MQTT patterns
CONSTRAINTS_MAX = 32  # attributes in one filter; a notification has no more worth asking for
ATTRIBUTE_BYTES_MAX = 256  # an attribute's name travels in every filter and notification

REGULAR_MAX = 4096  # filters of which it is known whether they are well formed: about 4 MB

Attributes = Mapping[str, Value]


class Filter(Struct, frozen=True, array_like=True, gc=False, cache_hash=True):
    """A conjunction: every named attribute must be there and in its set; sorted by name."""

    constraints: tuple[tuple[str, Values], ...] = ()


EVERYTHING = Filter()


def conjunction(constraints: Iterable[tuple[str, Values]]) -> Filter | None:
    """The filter for which all `constraints` hold; None if nothing can match."""
    found: dict[str, Values] = {}
    for attribute, values in constraints:
        found[attribute] = both(found[attribute], values) if attribute in found else values
    if any(values.empty for values in found.values()):
        return None
    return Filter(tuple(sorted(found.items(), key=_name)))


def matches(filter: Filter, attributes: Attributes) -> bool:
    """Does the notification with these attributes pass?"""
    for attribute, values in filter.constraints:
        value = attributes.get(attribute)
        if value is None or not has(values, value):
            return False
    return True


def covers(f: Filter, g: Filter) -> bool:
    """Does `f` match every notification that `g` matches?"""
    wanted = dict(g.constraints)
    for attribute, values in f.constraints:
        if attribute not in wanted or not includes(values, wanted[attribute]):
            return False
    return True


def overlaps(f: Filter, g: Filter) -> bool:
    """Is there a notification that both match?"""
    return conjunction([*f.constraints, *g.constraints]) is not None


def merge(f: Filter, g: Filter) -> Filter | None:
    """The filter that matches what `f` or `g` matches and nothing else; None if there is none."""
    if covers(f, g):
        return f
    if covers(g, f):
        return g
    left, right = dict(f.constraints), dict(g.constraints)
    if left.keys() != right.keys():
        return None
    differing = [name for name, values in f.constraints if right[name] != values]
    return _hull(f, g) if len(differing) == 1 else None


def imperfect_merge(
    f: Filter, g: Filter, sample: Sequence[Attributes], waste_max: float
) -> Filter | None:
    """A filter that covers both, if few notifications of `sample` would pass it in vain.

    Of those that pass the merged filter at most the share `waste_max` may match neither `f` nor
    `g`. Without a sample only perfect merging is safe.
    """
    perfect = merge(f, g)
    if perfect is not None or waste_max <= 0:
        return perfect
    hull = _hull(f, g)
    if hull is None:
        return None
    passing = [it for it in sample if matches(hull, it)]
    if not passing:
        return None
    wasted = sum(not matches(f, it) and not matches(g, it) for it in passing)
    return hull if wasted <= waste_max * len(passing) else None


def witness(filter: Filter) -> dict[str, Value] | None:
    """Attributes of some notification that `filter` matches; whoever covers it matches it too."""
    found = {}
    for attribute, values in filter.constraints:
        value = example(values)
        if value is None:
            return None
        found[attribute] = value
    return found


def filter_id(filter: Filter) -> int:
    """A name for the set of notifications that `filter` matches, the same everywhere."""
    return stable_hash(repr(filter.constraints), bits=63)


def is_well_formed(filter: Filter) -> bool:
    """Could `filter` have been made here? One from a peer may be anything of its type.

    Of equal numbers one may be a float that can be sent and one an integer that is too long, so
    this is asked each time; all else is the same for equal filters.
    """
    return _is_regular(filter) and all(sendable(values) for _, values in filter.constraints)


@lru_cache(maxsize=REGULAR_MAX)  # routing asks about the same ones again and again
def _is_regular(filter: Filter) -> bool:
    """Is all in it as it is written here, whether or not its numbers can be sent?"""
    names = [name for name, _ in filter.constraints]
    return (
        len(names) <= CONSTRAINTS_MAX
        and all(before < after for before, after in pairwise(names))
        and all(0 < len(name) <= ATTRIBUTE_BYTES_MAX for name in names)
        and all(regular(values, topic=name == TOPIC) for name, values in filter.constraints)
    )


def _hull(f: Filter, g: Filter) -> Filter | None:
    """The smallest filter over the attributes common to both that covers both."""
    right = dict(g.constraints)
    joined = [
        (name, either(values, right[name])) for name, values in f.constraints if name in right
    ]
    if any(parts(values) > RANGES_MAX for _, values in joined):
        return None
    return Filter(tuple(joined))


def _name(constraint: tuple[str, Values]) -> str:
    return constraint[0]
