"""The part of SQL that conditions are written in; all else that sqlglot can read is refused.

sqlglot reads far more than a filter can say, and new releases put new meanings into arguments of
old nodes (`NOT LIKE` is a LIKE with `negate`). So nothing is ignored: a node of a type that is not
listed here, or an argument that is not listed for its type, is named and refused.
"""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from planaria.core.errors import UsageError

CONDITION_BYTES_MAX = 16_384
DEPTH_MAX = 100  # of nested parentheses; keeps a hostile text from exhausting the stack
SHOWN_MAX = 60  # characters of a condition that a message repeats
FORMS = "use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE 'x%', IS NOT NULL"

_BINARY = frozenset({"this", "expression"})
UNDERSTOOD: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: frozenset({"this"}),
    exp.Paren: frozenset({"this"}),
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Like: _BINARY | {"negate"},
    exp.Is: _BINARY,
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: frozenset({"this"}),
    exp.Null: frozenset(),
    exp.Neg: frozenset({"this"}),
    exp.Cast: frozenset({"this", "to"}),  # TIMESTAMP '...'; CAST(...) is a TryCast
    exp.DataType: frozenset({"this"}),
}


def read(condition: str) -> exp.Expr:
    """The tree of `condition`, every node and argument of it understood. Raises UsageError."""
    if not isinstance(condition, str):
        raise UsageError(f"a condition of type {type(condition).__name__}: write text")
    try:
        size = len(condition.encode())
    except UnicodeEncodeError:
        raise UsageError(f"not a condition: {condition[:40]!r}: not Unicode text") from None
    if size > CONDITION_BYTES_MAX:
        raise UsageError(f"a condition of more than {CONDITION_BYTES_MAX} bytes")
    if condition.count("(") > DEPTH_MAX or condition.upper().count("NOT") > DEPTH_MAX:
        raise UsageError(f"a condition with more than {DEPTH_MAX} parentheses or NOTs")
    dialect = Spark()
    try:
        tokens = _quotes_joined(dialect.tokenize(condition), condition)
        found = dialect.parser().parse_into(exp.Condition, tokens, condition)
    except SqlglotError as error:
        raise UsageError(f"not a condition: {condition!r}: {_reason(error)}") from None
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1:
        what = "nothing to read" if not trees else "one condition, without `;`"
        raise UsageError(f"not a condition: {condition!r}: {what}")
    for node in trees[0].walk():
        _check(node)
    return trees[0]


def unsupported(node: exp.Expr, hint: str) -> UsageError:
    """The error that names the part of a condition which no filter can express."""
    text = " ".join(node.sql(dialect="spark").split())
    shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
    return UsageError(f"not supported: {shown}: {hint}")


def _check(node: exp.Expr) -> None:
    known = UNDERSTOOD.get(type(node))
    if known is None:
        raise unsupported(node, FORMS)
    for name, value in node.args.items():
        absent = value is None or value is False or value == []
        if name not in known and not absent:
            raise unsupported(node, f"{name.upper()} is unknown here; {FORMS}")


def _quotes_joined(tokens: list[Token], text: str) -> list[Token]:
    """A quote doubled inside a text is a quote: 'O''Brien' is one literal, as it is for Spark."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            whole = last.text + text[token.start] + token.text
            place = (last.line, last.col, last.start, token.end, token.comments)
            joined[-1] = Token(TokenType.STRING, whole, *place)
        else:
            joined.append(token)
    return joined


def _reason(error: SqlglotError) -> str:
    """Where reading stopped; how sqlglot says it is about its own classes."""
    said = error.errors if isinstance(error, ParseError) else []
    near = str(said[0].get("highlight") or "") if said else ""
    return f"cannot be read at {near!r}" if near else "a quote or bracket is left open"
