"""The tables of a FROM clause: the visible columns and their names."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from penstock.catalog import Catalog, Column
from penstock.catalog.derived import MAX_DEFINITIONS, Definition, base_name
from penstock.catalog.relations import MAX_COLUMNS
from penstock.catalog.unnested import MAX_XML_TABLES, UnnestedRelation, XmlTable, unnest
from penstock.errors import SqlError
from penstock.predicates.simplify import Place
from penstock.query import Node
from penstock.sql.names import other_arguments
from penstock.sql.source import Source

FIRST_DERIVED = 1 << 20
"""The position of the first derived column of a node while a query is bound: a later XMLTABLE in
FROM adds columns to the node."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A column visible to the SELECT; USING and NATURAL merge several."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Named:
    """The meaning of a name in FROM: columns of a node, all of a table or those of an XMLTABLE."""

    alias: str
    node: int
    first: int
    stop: int


class Scope:
    """Nodes in the order of FROM, in groups: one per item between commas."""

    def __init__(self, source: Source, catalog: Catalog) -> None:
        self.source = source
        self.catalog = catalog
        self.nodes: list[Node] = []
        self.named: list[Named] = []
        self.derived: list[list[Definition]] = []
        """For each node, in the order in which the query mentions them."""
        self.groups: list[list[Visible]] = []
        self.in_on = False

    def column(self, place: Place) -> Column:
        node, position = place
        if position < FIRST_DERIVED:
            return self.nodes[node].relation.columns[position]
        one = self.derived[node][position - FIRST_DERIVED]
        return Column(one.text, one.type)

    def name(self, place: Place) -> str:
        """The query's name for a column. Columns of XMLTABLE may have the same name as those of the
        table; the relation then has another name for them."""
        node, position = place
        relation = self.nodes[node].relation
        if position < FIRST_DERIVED and isinstance(relation, UnnestedRelation):
            return relation.labels[position]
        return self.column(place).name

    def add_derived(self, node: int, definition: Definition) -> Place:
        """The provisional position of a derived column, until all columns are known."""
        mine = self.derived[node]
        if definition not in mine:
            if len(mine) == MAX_DEFINITIONS:
                raise SqlError(
                    f"a query has at most {MAX_DEFINITIONS} different expressions over one table"
                )
            mine.append(definition)
        return node, FIRST_DERIVED + mine.index(definition)

    def never_null(self) -> frozenset[Place]:
        return frozenset(
            (i, j)
            for i, node in enumerate(self.nodes)
            for j, column in enumerate(node.relation.columns)
            if not column.nullable
        )

    def show(self, place: Place) -> str:
        """A column's name, qualified if there is more than one table."""
        return self.name(place) if len(self.named) == 1 else self.qualified(place)

    def qualified(self, place: Place) -> str:
        return f"{self.owner(place)}.{self.name(place)}"

    def owner(self, place: Place) -> str:
        """The name of a column's table or XMLTABLE."""
        node, position = place
        aliases = [one.alias for one in self.named if one.node == node and position < one.stop]
        return aliases[0] if aliases else self.nodes[node].alias

    def add(self, table: exp.Table, alias: str | None) -> list[Visible]:
        """Add a node; returns its columns, not yet part of any group."""
        relation = self.catalog.get(table.name)
        if relation is None:
            names = self.catalog.names()
            raise self.source.refuse(
                f"there is no table or stream {table.name}",
                table.this,
                hint=did_you_mean(table.name, names) or known(names),
            )
        alias = alias or relation.name
        node = len(self.nodes)
        named = Named(alias, node, 0, len(relation.columns))
        self._check_alias(named, table, f"{table.name} AS other")
        self.nodes.append(Node(alias, relation))
        self.derived.append([])
        self.named.append(named)
        return self._visible(named)

    def unnest(self, node: int, table: XmlTable, alias: str, at: exp.Table) -> list[Visible]:
        """Unnest a node by an XMLTABLE; returns its columns, not yet part of any group."""
        before = self.nodes[node].relation
        if isinstance(before, UnnestedRelation):
            if len(before.tables) == MAX_XML_TABLES:
                raise SqlError(f"at most {MAX_XML_TABLES} XMLTABLEs over one table are supported")
            relation = unnest(before.base, (*before.tables, table))
        else:
            relation = unnest(before, (table,))
        if len(relation.columns) > MAX_COLUMNS:
            raise SqlError(f"a table and its XMLTABLEs have at most {MAX_COLUMNS:,} columns")
        named = Named(alias, node, len(before.columns) + 1, len(relation.columns))
        self._check_alias(named, at, "XMLTABLE(...) AS other")
        self.nodes[node] = Node(self.nodes[node].alias, relation)
        self.named.append(named)
        return self._visible(named)

    def _check_alias(self, named: Named, at: exp.Table, instead: str) -> None:
        if any(one.alias.lower() == named.alias.lower() for one in self.named):
            raise self.source.refuse(
                f"the name {named.alias} is used for two tables",
                at,
                hint=f"give one of them another name: {instead}",
            )

    def _visible(self, named: Named) -> list[Visible]:
        places = [(named.node, i) for i in range(named.first, named.stop)]
        return [Visible(self.name(place), place) for place in places]

    def star(self) -> list[Visible]:
        return [visible for group in self.groups for visible in group]

    def star_of(self, table: exp.Identifier) -> list[Visible]:
        return self._visible(self._named(table))

    def _named(self, table: exp.Identifier) -> Named:
        for one in self.named:
            if one.alias.lower() == table.name.lower():
                return one
        names = [one.alias for one in self.named]
        renamed = [n.alias for n in self.nodes if n.relation.name.lower() == table.name.lower()]
        hint = f"it is called {renamed[0]} here" if renamed else did_you_mean(table.name, names)
        raise self.source.refuse(
            f"{table.name} is not a table of this FROM", table, hint=hint or known(names)
        )

    def resolve(self, column: exp.Column) -> Place:
        """The column for a name; SqlError if it is unknown or ambiguous.

        A bare name in ON means the tables of that join if they have it, and other tables if not.
        """
        for argument in other_arguments(column, "this", "table"):
            what = "a name with a schema" if argument in ("db", "catalog") else argument.upper()
            raise self.source.refuse(f"{what} is not supported in a subscription", column)
        table = column.args.get("table")
        if isinstance(table, exp.Identifier):
            return self._resolve_in(self._named(table), column)
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
            choices = " or ".join(self.qualified(v.place) for v in found[:4])
            raise self.source.refuse(f"column {at.name} is ambiguous", at, hint=f"write {choices}")
        names = [v.name for v in self.star()]
        raise self.source.refuse(
            f"there is no column {at.name}", at, hint=did_you_mean(at.name, names) or known(names)
        )

    def _resolve_in(self, named: Named, column: exp.Column) -> Place:
        visible = self._visible(named)
        found = self.find(column.name, [visible])
        if not found:
            names = [one.name for one in visible]
            relation = self.nodes[named.node].relation
            what = f"{relation.kind} {base_name(relation.name)}" if not named.first else "XMLTABLE"
            raise self.source.refuse(
                f"{what} has no column {column.name}",
                column,
                hint=did_you_mean(column.name, names) or known(names),
            )
        return found[0].place


def did_you_mean(name: str, names: list[str]) -> str:
    lowered = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]}?" if close else ""


def known(names: list[str]) -> str:
    if not names:
        return "declare it with CREATE TABLE or CREATE STREAM"
    shown = ", ".join(names[:12])
    return f"known are {shown}{', ...' if len(names) > 12 else ''}"
