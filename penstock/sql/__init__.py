"""From the text of a statement to what it means: relations and bound queries."""

from penstock.predicates.normal_form import MAX_BRANCHES
from penstock.query import Join, Node, Output, Query
from penstock.sql.binding import bind
from penstock.sql.ddl import MAX_COLUMNS, parse_relation
from penstock.sql.guard import MAX_BYTES, MAX_DEPTH, MAX_NAME_LENGTH, MAX_TOKENS
from penstock.sql.payload import hinted
from penstock.sql.shapes import ShapeBinder
from penstock.sql.tables import MAX_TABLES

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
    "parse_relation",
]
