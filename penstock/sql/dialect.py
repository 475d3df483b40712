"""The dialect that statements are read in: DuckDB's, with nothing dropped.

DuckDB is the reference for what a statement means, so its dialect is the one to read. But its
parser forgets the length of VARCHAR(n), which DuckDB does not enforce and Penstock does, and lets
statements pass that it does not understand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Token, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser


class _Parser(DuckDBParser):
    TYPE_CONVERTERS: ClassVar[dict[exp.DType, Callable[[exp.DataType], exp.DataType]]] = {
        kind: convert
        for kind, convert in DuckDBParser.TYPE_CONVERTERS.items()
        if kind != exp.DType.TEXT
    }

    def _parse_as_command(self, start: Token) -> exp.Command:
        """The parser would log a warning and keep what it cannot read as text."""
        self.raise_error("Invalid expression / Unexpected token")
        return super()._parse_as_command(start)


class PenstockDialect(DuckDB):
    Parser = _Parser


DIALECT = PenstockDialect()


def write_sql(expression: exp.Expr, **options: Any) -> str:
    """The text of what was parsed. What the writer doubts it would log; whether DuckDB reads the
    same is seen elsewhere (`penstock.sql.reference`)."""
    return expression.sql(dialect=DIALECT, unsupported_level=ErrorLevel.IGNORE, **options)
