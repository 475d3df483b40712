"""The dialect that statements are read in: DuckDB's, with nothing dropped.

DuckDB is the reference for what a statement means, so its dialect is the one to read. But its
parser forgets the length of VARCHAR(n), which DuckDB does not enforce and Penstock does, and lets
statements pass that it does not understand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

_CONSTANTS = {TokenType.NUMBER: False, TokenType.STRING: True}
"""The constants of a plain comparison; whether they are strings."""
_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}
_BEHIND_COMPARISONS = frozenset({TokenType.AND, TokenType.OR, TokenType.R_PAREN})


class PenstockParser(DuckDBParser):
    TYPE_CONVERTERS: ClassVar[dict[exp.DType, Callable[[exp.DataType], exp.DataType]]] = {
        kind: convert
        for kind, convert in DuckDBParser.TYPE_CONVERTERS.items()
        if kind != exp.DType.TEXT
    }

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """Plain comparisons, which nearly all conditions are made of, are read at once: otherwise
        the parser descends some twenty levels of precedence for each."""
        return self._parse_plain_comparison() or super()._parse_equality(parse_is)

    def _parse_plain_comparison(self) -> exp.Expr | None:
        """`column < constant`, if that is all up to the next AND, OR, parenthesis or the end."""
        ahead = self._tokens[self._index : self._index + 4]
        if len(ahead) < 3 or ahead[0].token_type != TokenType.VAR:
            return None
        column, operator, constant = ahead[:3]
        kind = _COMPARISONS.get(operator.token_type)
        if kind is None or constant.token_type not in _CONSTANTS:
            return None
        if len(ahead) == 4 and ahead[3].token_type not in _BEHIND_COMPARISONS:
            return None
        if column.text.upper() in self.NO_PAREN_FUNCTION_PARSERS:
            return None
        if column.comments or operator.comments or constant.comments:
            return None
        self._advance(3)
        name = exp.Identifier(this=column.text, quoted=False).update_positions(column)
        value = exp.Literal(this=constant.text, is_string=_CONSTANTS[constant.token_type])
        value.update_positions(constant)
        return kind(this=exp.Column(this=name), expression=value)

    def _parse_as_command(self, start: Token) -> exp.Command:
        """The parser would log a warning and keep what it cannot read as text."""
        self.raise_error("Invalid expression / Unexpected token")
        return super()._parse_as_command(start)


class PenstockDialect(DuckDB):
    Parser = PenstockParser


DIALECT = PenstockDialect()


def write_sql(expression: exp.Expr, **options: Any) -> str:
    """The text of what was parsed. What the writer doubts it would log; whether DuckDB reads the
    same is seen elsewhere (`penstock.sql.reference`)."""
    return expression.sql(dialect=DIALECT, unsupported_level=ErrorLevel.IGNORE, **options)
