"""Filters written as SQL conditions, read with sqlglot (Spark's dialect) and written back.

    carrier = 'UA' AND dep_delay > 60
    symbol IN ('A', 'B') OR name LIKE 'Pre%' AND active AND t >= TIMESTAMP '2013-01-31 05:00:00'
    topic = 'sensors/+/temperature' AND value NOT BETWEEN 10 AND 20

An attribute that is missing satisfies nothing, as NULL does. A disjunction becomes several filters.
"""

from functools import reduce
from itertools import product
from typing import Any

from msgspec import structs
from sqlglot import exp

from planaria.core.errors import UsageError
from planaria.core.topics import check_filter
from planaria.filters.filters import (
    ATTRIBUTE_BYTES_MAX,
    CONSTRAINTS_MAX,
    TOPIC,
    Filter,
    conjunction,
    covers,
)
from planaria.filters.grammar import FORMS, read, unsupported
from planaria.filters.numbers import read_number
from planaria.filters.patterns import normal_patterns
from planaria.filters.ranges import (
    ALL_BOOLEANS,
    ALL_NUMBERS,
    ALL_STRINGS,
    ALL_TIMESTAMPS,
    Ranges,
    complement,
    prefix_end,
)
from planaria.filters.timestamps import Timestamp, read_timestamp
from planaria.filters.values import (
    ANYTHING,
    EXACT_MAX,
    RANGES_MAX,
    Value,
    Values,
    both,
    either,
    parts,
    point,
)

DISJUNCTS_MAX = 64  # filters that one condition may become: each is a subscription of its own

Constraint = tuple[str, Values]
Disjuncts = list[list[Constraint]]

FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}
COMPARISONS = tuple(NEGATED)


def parse(condition: str) -> tuple[Filter, ...]:
    """The filters that together match what `condition` selects, none covering another.

    Raises UsageError, in one line, for what no filter can express or what is never true.
    """
    try:
        alternatives = _disjuncts(read(condition), positive=True)
    except RecursionError:
        raise UsageError(f"not a condition: nested too deeply: {condition[:40]!r}...") from None
    found = [conjunction(constraints) for constraints in alternatives]
    filters = list(dict.fromkeys(it for it in found if it is not None))
    if not filters:
        raise UsageError(f"never true: {' '.join(condition.split())}")
    for filter in filters:
        _check_size(filter)
    return tuple(_maximal(filters))


def _maximal(filters: list[Filter]) -> list[Filter]:
    return [f for f in filters if not any(covers(g, f) for g in filters if g != f)]


def _check_size(filter: Filter) -> None:
    if len(filter.constraints) > CONSTRAINTS_MAX:
        raise UsageError(f"{len(filter.constraints)} attributes: at most {CONSTRAINTS_MAX}")
    for name, values in filter.constraints:
        if parts(values) > RANGES_MAX:
            raise UsageError(f"{name}: {parts(values)} ranges of values: at most {RANGES_MAX}")


def _disjuncts(node: exp.Expr, *, positive: bool) -> Disjuncts:
    """Disjunctive normal form; a negation is pushed down to the comparisons."""
    if isinstance(node, exp.Paren):
        return _disjuncts(node.this, positive=positive)
    if isinstance(node, exp.Not):
        if isinstance(node.this, exp.Is):
            return _null(node.this, positive=not positive)
        return _disjuncts(node.this, positive=not positive)
    if isinstance(node, exp.And | exp.Or):
        sides = [_disjuncts(side, positive=positive) for side in (node.left, node.right)]
        if isinstance(node, exp.Or) == positive:
            return _bounded(_joined(sides[0] + sides[1]))
        _bounded([[]] * (len(sides[0]) * len(sides[1])))
        return [left + right for left, right in product(*sides)]
    if isinstance(node, exp.Boolean):
        return [[]] if node.this == positive else []
    if isinstance(node, exp.Is):
        return _null(node, positive=positive)
    return [[_constraint(node, positive=positive)]]


def _joined(disjuncts: Disjuncts) -> Disjuncts:
    """Alternatives for one attribute are one set of values: `a < 1 OR a > 2` is one filter."""
    found: Disjuncts = []
    places: dict[str, int] = {}
    for constraints in disjuncts:
        name = constraints[0][0] if constraints else ""
        if not constraints or any(other != name for other, _ in constraints):
            found.append(constraints)
            continue
        values = reduce(both, (values for _, values in constraints))
        if name in places:
            ((_, before),) = found[places[name]]
            found[places[name]] = [(name, either(before, values))]
        else:
            places[name] = len(found)
            found.append([(name, values)])
    return found


def _bounded(disjuncts: Disjuncts) -> Disjuncts:
    if len(disjuncts) > DISJUNCTS_MAX:
        raise UsageError(f"a condition of more than {DISJUNCTS_MAX} alternatives: subscribe twice")
    return disjuncts


def _null(node: exp.Is, *, positive: bool) -> Disjuncts:
    if isinstance(node.expression, exp.Boolean):
        raise unsupported(node, "write `flag` or `NOT flag`")
    if not isinstance(node.expression, exp.Null) or positive:
        raise unsupported(
            node, "a filter can ask for an attribute (IS NOT NULL), not for its absence"
        )
    name = _attribute(node.this)
    if name == TOPIC:
        return [[(name, Values(topics=("#",)))]]
    return [[(name, ANYTHING)]]


def _constraint(node: exp.Expr, *, positive: bool) -> Constraint:
    if isinstance(node, exp.Column):
        return _attribute(node), point(positive)
    if isinstance(node, COMPARISONS):
        return _comparison(node, positive=positive)
    if isinstance(node, exp.Between):
        low, high = _literals([node.args["low"], node.args["high"]], node)
        inside = both(_compared(exp.GTE, low, node), _compared(exp.LTE, high, node))
        return _plain(node), inside if positive else _others(inside, low)
    if isinstance(node, exp.In) and node.expressions:
        return _membership(node, positive=positive)
    if isinstance(node, exp.Like):
        return _prefix(node, positive=positive != bool(node.args.get("negate")))
    raise unsupported(node, FORMS)


def _comparison(node: exp.Expr, *, positive: bool) -> Constraint:
    column, literal = node.this, node.expression
    operator: type[exp.Expr] = type(node)
    if not isinstance(column, exp.Column) and isinstance(literal, exp.Column):
        column, literal = literal, column
        operator = FLIPPED.get(operator, operator)
    name, value = _attribute(column), _literal(literal)
    operator = operator if positive else NEGATED[operator]
    if name == TOPIC:
        if operator is not exp.EQ:
            raise unsupported(node, "a topic takes = and IN with MQTT patterns")
        return name, _topics([value], node)
    return name, _compared(operator, value, node)


def _membership(node: exp.In, *, positive: bool) -> Constraint:
    name = _attribute(node.this)
    literals = _literals(node.expressions, node)
    # To Spark a list with one float is a list of floats: 10 ** 18 - 1 is in (1e0, 10 ** 18).
    large = any(isinstance(it, int | float) and abs(it) >= EXACT_MAX for it in literals)
    if large and any("e" in it.name.lower() for it in _numerals(node)):
        raise unsupported(node, "write numbers without an exponent beside such large ones")
    if name == TOPIC:
        if not positive:
            raise unsupported(node, "a topic takes = and IN with MQTT patterns")
        return name, _topics(literals, node)
    found = point(literals[0])
    for value in literals[1:]:
        found = either(found, point(value))
    return name, found if positive else _others(found, literals[0])


def _numerals(node: exp.Expr) -> list[exp.Literal]:
    return [it for it in node.find_all(exp.Literal) if not it.is_string]


def _prefix(node: exp.Like, *, positive: bool) -> Constraint:
    name, pattern = _plain(node), _literal(node.expression)
    if not isinstance(pattern, str) or "_" in pattern or "\\" in pattern:
        raise unsupported(node, "LIKE takes a prefix: 'x%'")
    stem = pattern.removesuffix("%")
    if "%" in stem:
        raise unsupported(node, "LIKE takes a prefix: 'x%'")
    wanted = point(stem)
    if stem != pattern:
        wanted = Values(strings=(((0, stem), prefix_end(stem)),))
    return name, wanted if positive else _others(wanted, "")


def _compared(operator: type[exp.Expr], value: Value, node: exp.Expr) -> Values:
    """All values of the kind of `value` that compare with it as asked."""
    here = point(value)
    if operator is exp.EQ:
        return here
    if operator is exp.NEQ:
        return _others(here, value)
    if isinstance(value, bool):
        raise unsupported(node, "true and false have no order")
    field, everything = _kind(value)
    (before, after), (first, end) = getattr(here, field)[0], everything[0]
    spans: dict[type[exp.Expr], tuple[Any, Any]] = {
        exp.LT: (first, before),
        exp.LTE: (first, after),
        exp.GT: (after, end),
        exp.GTE: (before, end),
    }
    low, high = spans[operator]
    return _of_kind(field, ((low, high),) if low < high else ())


def _others(values: Values, like: Value) -> Values:
    """All other values of the kind of `like`."""
    field, everything = _kind(like)
    return _of_kind(field, complement(getattr(values, field), everything))


def _of_kind(field: str, ranges: Ranges) -> Values:
    return structs.replace(Values(), **{field: ranges})


def _kind(value: Value) -> tuple[str, Ranges]:
    if isinstance(value, bool):
        return "booleans", ALL_BOOLEANS
    if isinstance(value, str):
        return "strings", ALL_STRINGS
    if isinstance(value, Timestamp):
        return "timestamps", ALL_TIMESTAMPS
    return "numbers", ALL_NUMBERS


def _topics(literals: list[Value], node: exp.Expr) -> Values:
    if not all(isinstance(it, str) for it in literals):
        raise unsupported(node, "a topic is text")
    return Values(topics=normal_patterns([check_filter(str(it)) for it in literals]))


def _plain(node: exp.Expr) -> str:
    """The attribute of a constraint that a topic cannot have."""
    name = _attribute(node.this)
    if name == TOPIC:
        raise unsupported(node, "a topic takes = and IN with MQTT patterns")
    return name


def _attribute(node: exp.Expr) -> str:
    if not isinstance(node, exp.Column):
        raise unsupported(node, "an attribute is needed here")
    name = ".".join(part.name for part in node.parts)
    if not name:
        raise UsageError("an attribute without a name")
    if len(name.encode(errors="replace")) > ATTRIBUTE_BYTES_MAX:
        raise UsageError(f"attribute {name[:40]!r}...: at most {ATTRIBUTE_BYTES_MAX} bytes")
    return name


def _literals(nodes: list[exp.Expr], around: exp.Expr) -> list[Value]:
    """Spark would make values of different kinds one kind; what that gives nobody expects."""
    found = [_literal(node) for node in nodes]
    if len({_kind(value)[0] for value in found}) > 1:
        raise unsupported(around, "write values of one kind")
    return found


def _literal(node: exp.Expr) -> Value:
    if isinstance(node, exp.Paren):
        return _literal(node.this)
    if isinstance(node, exp.Neg):
        value = _literal(node.this)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else read_number(str(node.this))
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    kind = node.to.this.name if isinstance(node, exp.Cast) else ""
    if kind in TIME_TYPES and isinstance(node.this, exp.Literal) and node.this.is_string:
        value = read_timestamp(node.this.name)
        if kind == "DATE" and ":" in node.this.name:
            raise unsupported(node, "a DATE has no time of day: write TIMESTAMP '...'")
        return value
    raise unsupported(node, "a literal is needed here: 1, 2.5, 'text', TRUE, TIMESTAMP '...'")


# Of Spark. One without time zone takes none in its text either, so it is left out.
TIME_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "DATE")
