"""XMLTABLE in FROM: rows extracted from the documents of an earlier table."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.unnested import XmlColumn, XmlTable
from penstock.errors import NotYetError, SqlError
from penstock.predicates.simplify import Place
from penstock.sql.column_types import value_type_of
from penstock.sql.names import clause_name, other_arguments
from penstock.sql.scope import Scope, Visible


def bind_xml_table(scope: Scope, table: exp.Table, alias: str | None) -> list[Visible]:
    """Unnest the table whose documents are passed; returns the columns of the XMLTABLE. SqlError,
    with its position, for what is not supported."""
    with scope.source.pointing_at(table):
        return _bind(scope, table, alias)


def _bind(scope: Scope, table: exp.Table, alias: str | None) -> list[Visible]:
    xml = table.this
    for name in other_arguments(xml, "this", "passing", "columns"):
        raise NotYetError(f"XMLTABLE with {clause_name(name)} is not supported yet")
    if alias is None:
        raise SqlError("XMLTABLE needs a name", hint="write XMLTABLE(...) AS x")
    node, document = _passed(scope, xml)
    wanted = XmlTable(document, _path(xml.this), tuple(map(_column, xml.args["columns"] or ())))
    from penstock.documents.unnesting import view_of  # loads numpy; most statements need neither

    view_of(wanted)
    return scope.unnest(node, wanted, alias, table)


def _passed(scope: Scope, xml: exp.Expr) -> Place:
    """The column whose documents are passed."""
    passing = xml.args.get("passing") or []
    if len(passing) != 1 or not isinstance(passing[0], exp.Column):
        raise SqlError(
            "XMLTABLE takes the documents of one column", hint="write PASSING and its name"
        )
    place = scope.resolve(passing[0])
    column = scope.column(place)
    if not column.type.is_opaque:
        raise SqlError(f"{column.name} is {column.type}, and XMLTABLE needs XML")
    return place


def _column(column: exp.Expr) -> XmlColumn:
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        what = "FOR ORDINALITY" if column.args.get("ordinality") else "a column without a type"
        raise NotYetError(f"{what} in XMLTABLE is not supported yet")
    path = None
    for constraint in column.args.get("constraints") or ():
        if path is not None or not isinstance(constraint.kind, exp.PathColumnConstraint):
            word = type(constraint.kind).__name__.removesuffix("ColumnConstraint").upper()
            raise NotYetError(
                f"{word} of a column of XMLTABLE is not supported yet", hint="write only its PATH"
            )
        path = _path(constraint.kind.this)
    if path is None:
        raise SqlError(
            f"column {column.name} of XMLTABLE has no PATH", hint=f"write PATH './/{column.name}'"
        )
    return XmlColumn(column.name, value_type_of(column.args["kind"]), path)


def _path(expression: exp.Expr) -> str:
    if not isinstance(expression, exp.Literal) or not expression.is_string:
        raise SqlError("a path of XMLTABLE is a string", hint="write it in single quotes")
    return str(expression.this)
