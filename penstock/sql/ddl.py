"""CREATE TABLE, CREATE STREAM and CREATE OPERATOR: from text to declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import Token, TokenType, exp

from penstock.catalog import Column, Relation
from penstock.catalog.relations import MAX_COLUMNS
from penstock.catalog.signatures import Signature
from penstock.errors import SqlError
from penstock.sql.column_types import value_type_of
from penstock.sql.names import clause_name, constraint_name, other_arguments
from penstock.sql.operator_ddl import parse_operator
from penstock.sql.source import Source
from penstock.sql.strict import check_names

_PUBLISHED = "changes are published, not executed: penstock publish, or hub."
_SUBSCRIBED = "a SELECT is a subscription: penstock subscribe, or hub.subscribe"
INSTEAD = {
    "INSERT": f"{_PUBLISHED}insert",
    "UPDATE": f"{_PUBLISHED}update",
    "DELETE": f"{_PUBLISHED}delete",
    "TRUNCATE": f"{_PUBLISHED}delete",
    "MERGE": f"{_PUBLISHED}apply",
    "COPY": "files are published: penstock publish HOME FILE",
    "SELECT": _SUBSCRIBED,
    "WITH": _SUBSCRIBED,
    "FROM": _SUBSCRIBED,
    "CREATE": "CREATE is executed: penstock execute, or hub.execute",
    "DROP": "tables and streams live as long as their home; declare a new one by another name",
    "ALTER": "tables and streams keep their columns; declare a new one by another name",
}
"""What to use instead of a statement that is not supported here."""


def parse_declaration(sql: str) -> Relation | Signature:
    """The table, stream or operator that a CREATE statement declares; SqlError if it is refused."""
    source = Source(sql)
    with source.reading():
        if (source.word(0), source.word(1)) == ("CREATE", "OPERATOR"):
            return parse_operator(source, _columns_between)
        return _relation(source)


def _columns_between(source: Source, parentheses: Sequence[Token]) -> tuple[Column, ...]:
    """Columns in the syntax of CREATE TABLE."""
    if len(parentheses) == 2:
        return ()
    builder = _RelationBuilder(source, "OPERATOR")
    name = Token(TokenType.VAR, "t", start=source.tokens[2].start, end=source.tokens[2].end)
    create = _parse_create(source, "OPERATOR", [name, *parentheses])
    for item in create.this.expressions:
        builder.add(item)
    return tuple(builder.columns)


def parse_relation(sql: str) -> Relation:
    """The table or stream that a CREATE statement declares; SqlError if it is refused."""
    source = Source(sql)
    with source.reading():
        return _relation(source)


def _relation(source: Source) -> Relation:
    first, kind = source.word(0), source.word(1)
    if first != "CREATE":
        raise source.refuse(
            f"{first} is not a statement that can be executed",
            source.tokens[0],
            hint=INSTEAD.get(first, "only CREATE statements are executed"),
        )
    if kind not in ("TABLE", "STREAM"):
        what = "OR REPLACE" if kind == "OR" else kind
        raise source.refuse(
            f"CREATE {what} is not supported",
            source.tokens[min(1, len(source.tokens) - 1)],
            hint="CREATE TABLE, CREATE STREAM and CREATE OPERATOR are",
        )
    builder = _RelationBuilder(source, kind)
    schema = _parse_create(source, kind).this
    name = builder.name_of(schema.this if isinstance(schema, exp.Schema) else schema)
    if not isinstance(schema, exp.Schema) or not schema.expressions:
        raise source.refuse(f"{kind.lower()} {name} has no columns", source.tokens[-1])
    for item in schema.expressions:
        builder.add(item)
    check_names(source, schema)
    return builder.finish(name)


def _parse_create(source: Source, kind: str, rest: Sequence[Token] | None = None) -> exp.Create:
    """`rest`: the tokens after CREATE TABLE, if they differ from the text."""
    # The parser knows no streams. They are declared like tables.
    given = source.tokens[1]
    table = Token(
        TokenType.TABLE, "TABLE", line=given.line, col=given.col, start=given.start, end=given.end
    )
    behind = source.tokens[2:] if rest is None else rest
    statement = source.parse([source.tokens[0], table, *behind])
    assert isinstance(statement, exp.Create)
    for name in other_arguments(statement, "this", "kind"):
        what = clause_name(name)
        if name == "properties":
            what = constraint_name(statement.args[name].expressions[0])
        raise source.refuse(
            f"{what} is not supported in CREATE {kind}",
            source.token_of(what, *what.split()) or source.tokens[1],
        )
    return statement


class _RelationBuilder:
    """Collects columns and the key while the items of a CREATE are walked."""

    def __init__(self, source: Source, kind: str) -> None:
        self.source = source
        self.kind = kind
        self.columns: list[Column] = []
        self.positions: dict[str, int] = {}
        self.key: list[exp.Identifier] | None = None

    def name_of(self, table: exp.Expr) -> str:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise self.source.refuse("a name is missing", table)
        for argument in other_arguments(table, "this"):
            if argument in ("db", "catalog"):
                raise self.source.refuse(
                    "names with a schema are not supported", table, hint=f"use {table.name}"
                )
            raise self._unsupported(clause_name(argument), table)
        return self._checked_name(table.this)

    def _checked_name(self, identifier: exp.Identifier) -> str:
        if not identifier.name:
            raise self.source.refuse("a name has at least one character", identifier)
        return identifier.name

    def _unsupported(self, what: str, at: exp.Expr) -> SqlError:
        token = self.source.token_of(what)
        return self.source.refuse(f"{what} is not supported in CREATE {self.kind}", token or at)

    def add(self, item: exp.Expr) -> None:
        if isinstance(item, exp.ColumnDef):
            self._add_column(item)
        elif isinstance(item, exp.PrimaryKey):
            self._add_table_key(item)
        elif isinstance(item, exp.Identifier):
            raise self.source.refuse(f"column {item.name} has no type", item)
        else:
            raise self._unsupported(constraint_name(item), item)

    def _add_column(self, item: exp.ColumnDef) -> None:
        identifier, data_type = item.this, item.args.get("kind")
        if not isinstance(identifier, exp.Identifier):
            raise self._unsupported(constraint_name(item), item)
        name = self._checked_name(identifier)
        constraints = item.args.get("constraints") or []
        if not isinstance(data_type, exp.DataType):
            # A generated column may omit its type: check that first.
            self._read_constraints(identifier, constraints)
            raise self.source.refuse(f"column {name} has no type", item)
        for argument in other_arguments(item, "this", "kind", "constraints"):
            raise self._unsupported(clause_name(argument), item)
        if name.lower() in self.positions:
            raise self.source.refuse(f"column {name} is declared twice", identifier)
        if len(self.columns) == MAX_COLUMNS:
            raise self.source.refuse(f"a {self.kind} has at most {MAX_COLUMNS:,} columns", item)
        with self.source.pointing_at(self.source.token_after(identifier)):
            value_type = value_type_of(data_type)
        nullable = self._read_constraints(identifier, constraints)
        self.positions[name.lower()] = len(self.columns)
        self.columns.append(Column(name, value_type, nullable))

    def _read_constraints(self, name: exp.Identifier, constraints: list[exp.Expr]) -> bool:
        """Whether the column may be NULL; also records a key."""
        nullable = True
        for constraint in constraints:
            if constraint.args.get("this"):
                raise self._unsupported("a name for a constraint", constraint)
            kind = constraint.args["kind"]
            plain = all(value is None or value == [] for value in kind.args.values())
            if isinstance(kind, exp.NotNullColumnConstraint) and plain:
                nullable = False
            elif isinstance(kind, exp.PrimaryKeyColumnConstraint) and plain:
                self._set_key([name], name)
            elif not isinstance(kind, exp.NotNullColumnConstraint):  # NULL is the default
                raise self._unsupported(constraint_name(kind), constraint)
        return nullable

    def _add_table_key(self, item: exp.PrimaryKey) -> None:
        for argument in other_arguments(item, "expressions"):
            raise self._unsupported(f"PRIMARY KEY with {clause_name(argument)}", item)
        parts: list[exp.Identifier] = []
        for part in item.expressions:
            if not isinstance(part, exp.Identifier):
                raise self.source.refuse("a primary key lists plain columns", part)
            parts.append(part)
        self._set_key(parts, item)

    def _set_key(self, parts: list[exp.Identifier], at: exp.Expr) -> None:
        if self.key is not None:
            raise self.source.refuse(
                "there are two primary keys",
                at,
                hint="a key of two columns is written as PRIMARY KEY (a, b)",
            )
        self.key = parts

    def finish(self, name: str) -> Relation:
        key: list[int] = []
        for part in self.key or []:
            position = self.positions.get(part.name.lower())
            if position is None:
                raise self.source.refuse(f"the key names an unknown column {part.name}", part)
            if position in key:
                raise self.source.refuse(f"the key names {part.name} twice", part)
            if self.columns[position].type.is_opaque:
                raise self.source.refuse(
                    f"{part.name} is {self.columns[position].type}, and cannot be a key", part
                )
            key.append(position)
            self.columns[position] = replace(self.columns[position], nullable=False)
        if not key and self.kind == "TABLE":
            raise self.source.refuse(
                f"table {name} has no PRIMARY KEY",
                self.source.tokens[2],
                detail="rows of a table are updated and deleted by their key",
                hint="mark a column with PRIMARY KEY, or use CREATE STREAM for append-only events",
            )
        return Relation(name, tuple(self.columns), tuple(key), self.kind == "STREAM")
