"""From the text of a statement to relations and bound queries."""

from typing import TYPE_CHECKING

from penstock.catalog.relations import MAX_COLUMNS
from penstock.doors import lazy_door
from penstock.predicates.normal_form import MAX_BRANCHES
from penstock.query import MAX_TABLES, Join, Node, Output, Query

if TYPE_CHECKING:
    from penstock.sql.binding import bind
    from penstock.sql.ddl import parse_declaration, parse_relation
    from penstock.sql.guard import MAX_BYTES, MAX_DEPTH, MAX_NAME_LENGTH, MAX_TOKENS
    from penstock.sql.operator_ddl import operator_statement
    from penstock.sql.payload import hinted
    from penstock.sql.shapes import ShapeBinder

__all__ = [
    "MAX_BRANCHES",
    "MAX_BYTES",
    "MAX_COLUMNS",
    "MAX_DEPTH",
    "MAX_NAME_LENGTH",
    "MAX_TABLES",
    "MAX_TOKENS",
    "Join",
    "Node",
    "Output",
    "Query",
    "ShapeBinder",
    "bind",
    "hinted",
    "operator_statement",
    "parse_declaration",
    "parse_relation",
]

# Loaded on first use: sqlglot takes a fifth of a second, and readers need no parser.
__getattr__ = lazy_door(
    __name__,
    {
        "binding": "bind",
        "ddl": "parse_declaration parse_relation",
        "guard": "MAX_BYTES MAX_DEPTH MAX_NAME_LENGTH MAX_TOKENS",
        "operator_ddl": "operator_statement",
        "payload": "hinted",
        "shapes": "ShapeBinder",
    },
)
