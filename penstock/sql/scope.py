"""The tables of a FROM clause: which columns can be seen, and under which names."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from penstock.catalog import Catalog, Column
from penstock.predicates.simplify import Place
from penstock.query import Node
from penstock.sql.names import other_arguments
from penstock.sql.source import Source


@dataclass(frozen=True, slots=True)
class Visible:
    """A column as the SELECT sees it; USING and NATURAL make one of several."""

    name: str
    place: Place


class Scope:
    """Nodes in the order of FROM, in groups: one per item between commas."""

    def __init__(self, source: Source, catalog: Catalog) -> None:
        self.source = source
        self.catalog = catalog
        self.nodes: list[Node] = []
        self.groups: list[list[Visible]] = []
        self.in_on = False

    def column(self, place: Place) -> Column:
        return self.nodes[place[0]].relation.columns[place[1]]

    def never_null(self) -> frozenset[Place]:
        return frozenset(
            (i, j)
            for i, node in enumerate(self.nodes)
            for j, column in enumerate(node.relation.columns)
            if not column.nullable
        )

    def show(self, place: Place) -> str:
        """A column's name, qualified if there is more than one table."""
        name = self.column(place).name
        return name if len(self.nodes) == 1 else f"{self.nodes[place[0]].alias}.{name}"

    def add(self, table: exp.Table, alias: str | None) -> list[Visible]:
        """A new node; its columns, not yet part of any group."""
        relation = self.catalog.get(table.name)
        if relation is None:
            names = self.catalog.names()
            raise self.source.refuse(
                f"there is no table or stream {table.name}",
                table.this,
                hint=did_you_mean(table.name, names) or known(names),
            )
        alias = alias or relation.name
        if any(node.alias.lower() == alias.lower() for node in self.nodes):
            raise self.source.refuse(
                f"the name {alias} is used for two tables",
                table,
                hint=f"give one of them another name: {table.name} AS other",
            )
        node = len(self.nodes)
        self.nodes.append(Node(alias, relation))
        return [Visible(c.name, (node, i)) for i, c in enumerate(relation.columns)]

    def star(self) -> list[Visible]:
        return [visible for group in self.groups for visible in group]

    def star_of(self, table: exp.Identifier) -> list[Visible]:
        node = self.node_named(table)
        columns = self.nodes[node].relation.columns
        return [Visible(c.name, (node, i)) for i, c in enumerate(columns)]

    def node_named(self, table: exp.Identifier) -> int:
        for i, node in enumerate(self.nodes):
            if node.alias.lower() == table.name.lower():
                return i
        names = [node.alias for node in self.nodes]
        renamed = [n.alias for n in self.nodes if n.relation.name.lower() == table.name.lower()]
        hint = f"it is called {renamed[0]} here" if renamed else did_you_mean(table.name, names)
        raise self.source.refuse(
            f"{table.name} is not a table of this FROM", table, hint=hint or known(names)
        )

    def resolve(self, column: exp.Column) -> Place:
        """The column a name stands for; SqlError if it is unknown or ambiguous.

        A bare name in ON means the tables of that join where they have it, and others if not.
        """
        for argument in other_arguments(column, "this", "table"):
            what = "a name with a schema" if argument in ("db", "catalog") else argument.upper()
            raise self.source.refuse(f"{what} is not supported in a subscription", column)
        table = column.args.get("table")
        if isinstance(table, exp.Identifier):
            return self._resolve_in(self.node_named(table), column)
        found = self.find(column.name, self.groups[-1:]) if self.in_on else []
        return self.only(column, found or self.find(column.name, self.groups))

    def find(self, name: str, groups: list[list[Visible]]) -> list[Visible]:
        lowered = name.lower()
        return [v for group in groups for v in group if v.name.lower() == lowered]

    def only(self, at: exp.Expr, found: list[Visible]) -> Place:
        """The place of the one column found, or the error for none or several."""
        if len(found) == 1:
            return found[0].place
        if found:
            choices = " or ".join(f"{self.nodes[v.place[0]].alias}.{v.name}" for v in found[:4])
            raise self.source.refuse(f"column {at.name} is ambiguous", at, hint=f"write {choices}")
        names = [v.name for v in self.star()]
        raise self.source.refuse(
            f"there is no column {at.name}", at, hint=did_you_mean(at.name, names) or known(names)
        )

    def _resolve_in(self, node: int, column: exp.Column) -> Place:
        relation = self.nodes[node].relation
        position = relation.positions.get(column.name.lower())
        if position is None:
            names = [c.name for c in relation.columns]
            raise self.source.refuse(
                f"{relation.kind} {relation.name} has no column {column.name}",
                column,
                hint=did_you_mean(column.name, names) or known(names),
            )
        return node, position


def did_you_mean(name: str, names: list[str]) -> str:
    lowered = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]}?" if close else ""


def known(names: list[str]) -> str:
    if not names:
        return "declare it with CREATE TABLE or CREATE STREAM"
    shown = ", ".join(names[:12])
    return f"known are {shown}{', ...' if len(names) > 12 else ''}"
