"""How DuckDB parses a text: its structure, independent of notation.

Statements are parsed by sqlglot, and DuckDB defines what they mean. For computed values, both must
agree on the operands of every operation: the texts of two statements are compared as DuckDB parses
them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import duckdb

from penstock.errors import SqlError
from penstock.expressions.database import DATABASE, first_line

_NOT_STRUCTURE = frozenset(
    (
        *("query_location", "query_location_length", "alias", "is_operator", "qualified_name"),
        *("type_expr", "cast_type", "kind"),  # types have synonyms, and are compared elsewhere
    )
)

_SYNONYMS = {
    "^": "power",
    "**": "power",
    "pow": "power",
    "@": "abs",
    "substr": "substring",
    "^@": "starts_with",
    "position": "strpos",
    "instr": "strpos",
    "ceiling": "ceil",
    "datediff": "date_diff",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "mod": "%",
    "datetrunc": "date_trunc",
}
"""Synonyms of DuckDB functions."""


@lru_cache(1_000)
def read_structure(sql: str) -> object:
    """DuckDB's parse of a SELECT; SqlError if it fails. Case is ignored in texts: units are written
    both ways."""
    try:
        with DATABASE.connection() as connection:
            ((found,),) = connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchall()
    except duckdb.Error as error:
        raise SqlError("this statement cannot be read", detail=first_line(error)) from None
    parsed = json.loads(found)
    if parsed["error"]:
        message = str(parsed.get("error_message"))
        raise SqlError("this statement cannot be read", detail=message[:500])
    return _plain(parsed["statements"])


def _plain(part: Any) -> Any:
    if isinstance(part, list):
        return [_plain(one) for one in part]
    if isinstance(part, str):
        return part.lower()
    if not isinstance(part, dict):
        return part
    found = {name: _plain(one) for name, one in part.items() if name not in _NOT_STRUCTURE}
    if found.get("class") == "function":
        return _function(found)
    if found.get("type") == "operator_is_not_null":
        return {"not": {**found, "type": "operator_is_null"}}
    if found.get("type") == "compare_distinct_from":
        return {"not": {**found, "type": "compare_not_distinct_from"}}
    if found.get("type") == "operator_not":
        (negated,) = found["children"]
        return {"not": negated}
    return found


def _function(found: dict[str, Any]) -> dict[str, Any]:
    name, arguments = found["function_name"], found["arguments"]
    if name == "if" and len(arguments) == 3:
        when, then, otherwise = (one["expression"] for one in arguments)
        check = {"when_expr": when, "then_expr": then}
        return {
            "class": "case",
            "type": "case_expr",
            "case_checks": [check],
            "else_expr": otherwise,
        }
    return {**found, "function_name": _SYNONYMS.get(name, name)}
