"""The dialect that statements are read in: DuckDB's, with nothing dropped.

DuckDB is the reference for what a statement means, so its dialect is the one to read. Its parser
forgets the length of VARCHAR(n), which DuckDB does not enforce; Penstock does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser


class _Parser(DuckDBParser):
    TYPE_CONVERTERS: ClassVar[dict[exp.DType, Callable[[exp.DataType], exp.DataType]]] = {
        kind: convert
        for kind, convert in DuckDBParser.TYPE_CONVERTERS.items()
        if kind != exp.DType.TEXT
    }


class PenstockDialect(DuckDB):
    Parser = _Parser


DIALECT = PenstockDialect()
