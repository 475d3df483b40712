"""CREATE TABLE and CREATE STREAM: from text to a relation."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from penstock.catalog import Column, Relation
from penstock.errors import SqlError
from penstock.sql.column_types import value_type_of
from penstock.sql.source import Source

MAX_COLUMNS = 1_000
MAX_NAME_LENGTH = 255

INSTEAD = {
    "INSERT": "changes are published, not executed: penstock publish, or hub.insert",
    "UPDATE": "changes are published, not executed: penstock publish, or hub.update",
    "DELETE": "changes are published, not executed: penstock publish, or hub.delete",
    "MERGE": "changes are published, not executed: penstock publish, or hub.apply",
    "TRUNCATE": "changes are published, not executed: penstock publish, or hub.delete",
    "COPY": "files are published: penstock publish HOME FILE",
    "SELECT": "a SELECT is a subscription: penstock subscribe, or hub.subscribe",
    "WITH": "a SELECT is a subscription: penstock subscribe, or hub.subscribe",
    "FROM": "a SELECT is a subscription: penstock subscribe, or hub.subscribe",
    "DROP": "tables and streams live as long as their home: declare a new one by another name",
    "ALTER": "tables and streams keep their columns: declare a new one by another name",
}


def parse_relation(sql: str) -> Relation:
    """The table or stream that a CREATE statement declares; SqlError if it is refused."""
    source = Source(sql)
    create, is_stream = _parse_create(source)
    schema = create.this
    if not isinstance(schema, exp.Schema):
        raise source.refuse("a list of columns is missing", create.this)
    builder = _RelationBuilder(source, is_stream)
    name = builder.name_of(schema.this)
    for item in schema.expressions:
        builder.add(item)
    return builder.finish(name)


def _parse_create(source: Source) -> tuple[exp.Create, bool]:
    first, second = source.word(0), source.word(1)
    if first != "CREATE":
        raise source.refuse(
            f"{first} is not a statement that can be executed",
            source.tokens[0],
            hint=INSTEAD.get(first, "only CREATE TABLE and CREATE STREAM are executed"),
        )
    if second not in ("TABLE", "STREAM"):
        raise source.refuse(
            f"CREATE {second} is not supported".replace(" OR ", " OR REPLACE "),
            source.tokens[min(1, len(source.tokens) - 1)],
            hint="CREATE TABLE and CREATE STREAM are",
        )
    is_stream = second == "STREAM"
    tokens = list(source.tokens)
    if is_stream:  # the parser knows no streams; they are declared just like tables
        tokens[1] = _as_table(tokens[1])
    statement = source.parse(tokens)
    if not isinstance(statement, exp.Create):
        raise source.refuse(f"this CREATE {second} is not supported", source.tokens[1])
    _check_clauses(source, statement, second)
    return statement, is_stream


def _as_table(token: Token) -> Token:
    return Token(
        TokenType.TABLE, "TABLE", line=token.line, col=token.col, start=token.start, end=token.end
    )


_CLAUSES = {
    "expression": "AS SELECT",
    "exists": "IF NOT EXISTS",
    "replace": "OR REPLACE",
    "properties": "a table option",
}


def _check_clauses(source: Source, create: exp.Create, kind: str) -> None:
    for name, value in create.args.items():
        if value and name not in ("this", "kind"):
            what = _CLAUSES.get(name, name.upper())
            raise source.refuse(f"{what} is not supported in CREATE {kind}", source.tokens[1])


class _RelationBuilder:
    """Collects columns and the key while the items of a CREATE are walked."""

    def __init__(self, source: Source, is_stream: bool) -> None:
        self.source = source
        self.kind = "STREAM" if is_stream else "TABLE"
        self.columns: list[Column] = []
        self.key: list[exp.Identifier] | None = None

    def name_of(self, table: exp.Expr) -> str:
        known = {"this"}
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise self.source.refuse("a name is missing", table)
        if table.args.get("db") or table.args.get("catalog"):
            raise self.source.refuse(
                "names with a schema are not supported", table, hint=f"use {table.name}"
            )
        if any(value for name, value in table.args.items() if name not in known):
            raise self.source.refuse("only a plain name can be declared", table)
        return self._checked_name(table.this)

    def _checked_name(self, identifier: exp.Identifier) -> str:
        name = identifier.name
        if not name or len(name) > MAX_NAME_LENGTH:
            raise self.source.refuse(
                f"a name has 1 to {MAX_NAME_LENGTH} characters, this one has {len(name)}",
                identifier,
            )
        return name

    def add(self, item: exp.Expr) -> None:
        if isinstance(item, exp.ColumnDef):
            self._add_column(item)
        elif isinstance(item, exp.PrimaryKey):
            self._add_table_key(item)
        else:
            raise self._unsupported(item)

    def _unsupported(self, item: exp.Expr) -> SqlError:
        inner = item
        if isinstance(item, exp.Constraint) and item.expressions:
            inner = item.expressions[0]
        what = constraint_name(inner)
        return self.source.refuse(f"{what} is not supported in CREATE {self.kind}", item)

    def _add_column(self, item: exp.ColumnDef) -> None:
        identifier, data_type = item.this, item.args.get("kind")
        if not isinstance(identifier, exp.Identifier):
            raise self._unsupported(item)
        name = self._checked_name(identifier)
        if not isinstance(data_type, exp.DataType):
            raise self.source.refuse(f"column {name} has no type", item)
        unknown = [k for k, v in item.args.items() if v and k not in ("this", "kind", "constraints")]
        if unknown:
            raise self.source.refuse(f"{unknown[0].upper()} is not supported", item)
        if any(name.lower() == column.name.lower() for column in self.columns):
            raise self.source.refuse(f"column {name} is declared twice", identifier)
        if len(self.columns) == MAX_COLUMNS:
            raise self.source.refuse(f"at most {MAX_COLUMNS:,} columns are supported", identifier)
        with self.source.pointing_at(item):
            value_type = value_type_of(data_type)
        nullable = self._read_constraints(identifier, item.args.get("constraints") or [])
        self.columns.append(Column(name, value_type, nullable))

    def _read_constraints(self, name: exp.Identifier, constraints: list[exp.Expr]) -> bool:
        nullable = True
        for constraint in constraints:
            kind = constraint.args.get("kind")
            plain = not any(v for v in kind.args.values()) if isinstance(kind, exp.Expr) else False
            if isinstance(kind, exp.NotNullColumnConstraint) and plain:
                nullable = False
            elif isinstance(kind, exp.NotNullColumnConstraint) and kind.args.get("allow_null"):
                pass  # NULL: what columns are anyway
            elif isinstance(kind, exp.PrimaryKeyColumnConstraint) and plain:
                self._set_key([name], name)
            else:
                raise self._unsupported(kind if isinstance(kind, exp.Expr) else constraint)
        return nullable

    def _add_table_key(self, item: exp.PrimaryKey) -> None:
        parts: list[exp.Identifier] = []
        for part in item.expressions:
            if not isinstance(part, exp.Identifier):
                raise self.source.refuse("a primary key lists plain columns", part)
            parts.append(part)
        self._set_key(parts, item)

    def _set_key(self, parts: list[exp.Identifier], at: exp.Expr) -> None:
        if self.key is not None:
            raise self.source.refuse("a second PRIMARY KEY", at, hint="write PRIMARY KEY (a, b)")
        self.key = parts

    def finish(self, name: str) -> Relation:
        positions = {column.name.lower(): i for i, column in enumerate(self.columns)}
        key: list[int] = []
        for part in self.key or []:
            position = positions.get(part.name.lower())
            if position is None:
                raise self.source.refuse(f"the key names an unknown column {part.name}", part)
            if position in key:
                raise self.source.refuse(f"the key names {part.name} twice", part)
            key.append(position)
        if not key and self.kind == "TABLE":
            raise self.source.refuse(
                f"table {name} has no PRIMARY KEY",
                self.source.tokens[min(2, len(self.source.tokens) - 1)],
                detail="rows of a table are updated and deleted by their key",
                hint="mark a column with PRIMARY KEY, or use CREATE STREAM for append-only events",
            )
        if not self.columns:
            raise self.source.refuse("at least one column is needed", self.source.tokens[1])
        for position in key:
            self.columns[position] = replace(self.columns[position], nullable=False)
        return Relation(name, tuple(self.columns), tuple(key), self.kind == "STREAM")


_CONSTRAINTS: dict[type[exp.Expr], str] = {
    exp.DefaultColumnConstraint: "DEFAULT",
    exp.CheckColumnConstraint: "CHECK",
    exp.UniqueColumnConstraint: "UNIQUE",
    exp.Reference: "REFERENCES",
    exp.ForeignKey: "FOREIGN KEY",
    exp.ComputedColumnConstraint: "a generated column",
    exp.GeneratedAsIdentityColumnConstraint: "a generated column",
    exp.CollateColumnConstraint: "COLLATE",
    exp.LikeProperty: "LIKE",
}


def constraint_name(constraint: exp.Expr) -> str:
    """What a person would call a constraint."""
    known = _CONSTRAINTS.get(type(constraint))
    return known or constraint.sql(dialect="duckdb")
