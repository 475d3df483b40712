"""Checks that DuckDB, which defines what expressions mean, parses a statement as sqlglot did.

The parser knows many dialects. If it finds other operands than DuckDB for an operator, or writes an
expression with other parentheses than it read, a subscription would not mean what its text says:
such a statement is refused. For the comparison, the parsed statement is written with parentheses
around every operation, and DuckDB parses both.
"""

from __future__ import annotations

from itertools import pairwise

from sqlglot import TokenType, exp

from penstock.errors import SqlError
from penstock.sql.dialect import DIALECT, write_sql
from penstock.sql.source import Source

_OPERATIONS = (exp.Binary, exp.Unary, exp.Between, exp.In)
_NO_OPERATIONS = (exp.Paren, exp.Dot, exp.Escape)


def check_read_alike(source: Source, select: exp.Select) -> None:
    """SqlError if DuckDB parses a statement differently."""
    from penstock.expressions import read_structure

    try:
        texts = source.sql, _unambiguous(select)
        if select.find(exp.XMLTable) is not None:
            texts = without_xml_tables(texts[0]), without_xml_tables(texts[1])
        if select.find(exp.Placeholder) is not None:
            texts = _with_parameters(texts[0]), _with_parameters(texts[1])
        alike = read_structure(texts[0]) == read_structure(texts[1])
    except SqlError as error:
        raise SqlError(
            "an expression of this statement is not valid", detail=error.detail
        ) from None
    if not alike:
        raise SqlError(
            "an expression of this statement can be read in two ways",
            hint="write parentheses around its parts",
        )


def without_xml_tables(sql: str) -> str:
    """A statement with names in place of XMLTABLEs, which DuckDB does not have."""
    written, at = [], 0
    for number, (start, end) in enumerate(xml_table_spans(sql)):
        written += [sql[at:start], f"xmltable_{number}"]
        at = end
    return "".join([*written, sql[at:]])


def xml_table_spans(sql: str) -> list[tuple[int, int]]:
    """The start and end of each XMLTABLE(...)."""
    tokens = DIALECT.tokenize(sql)
    found: list[tuple[int, int]] = []
    depth = start = 0
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        is_call = token.text.upper() == "XMLTABLE" and following.token_type == TokenType.L_PAREN
        if not depth and is_call and token.token_type != TokenType.IDENTIFIER:
            start, depth = token.start, 1
        elif depth and token.token_type == TokenType.L_PAREN:
            depth += 1
        elif depth and token.token_type == TokenType.R_PAREN:
            depth -= 1
            if depth == 1:
                found.append((start, token.end + 1))
                depth = 0
    return found


def _with_parameters(sql: str) -> str:
    """A statement with DuckDB's named parameters in place of variables: `$name` for `:name`."""
    written, at = [], 0
    for colon, name in pairwise(DIALECT.tokenize(sql)):
        if colon.token_type == TokenType.COLON and colon.end + 1 == name.start:
            written += [sql[at : colon.start], "$"]
            at = colon.end + 1
    return "".join([*written, sql[at:]])


def write_expression(expression: exp.Expr) -> str:
    """The text of an expression; SqlError if DuckDB would parse it differently."""
    from penstock.expressions import read_structure

    text = write_sql(expression)
    if read_structure(f"SELECT {text}") != read_structure(f"SELECT {_unambiguous(expression)}"):
        raise SqlError(
            "this expression can be read in two ways", hint="write parentheses around its parts"
        )
    return text


def _unambiguous(expression: exp.Expr) -> str:
    """An expression, or a statement, with parentheses around every operation."""
    written = expression.copy()
    for part in list(written.walk()):
        if isinstance(part, _OPERATIONS) and part is not written and not _stands_alone(part):
            around = exp.Paren()
            part.replace(around)
            around.set("this", part)
    return write_sql(written, comments=False, copy=False)


def _stands_alone(part: exp.Expr) -> bool:
    """Whether it is unambiguous; chains, which may be long, are left-associative."""
    parent = part.parent
    continues = type(parent) is type(part) and part.arg_key == "this"
    return continues or isinstance(part, _NO_OPERATIONS) or isinstance(parent, exp.Escape)
