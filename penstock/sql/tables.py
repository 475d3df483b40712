"""FROM and JOIN: from parsed SQL to nodes, equalities between them, and what else ON says."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog import joinable
from penstock.errors import NotYetError, SqlError
from penstock.predicates.normal_form import Condition
from penstock.predicates.simplify import Place
from penstock.sql.conditions import ConditionBinder, operands, unparenthesised
from penstock.sql.names import clause_name
from penstock.sql.query import Join
from penstock.sql.scope import Scope, Visible

MAX_TABLES = 32


class TableBinder:
    """Walks FROM from left to right and fills the scope."""

    def __init__(self, scope: Scope, conditions: ConditionBinder) -> None:
        self.scope = scope
        self.source = scope.source
        self.conditions = conditions
        self.equalities: dict[tuple[int, int], set[tuple[int, int]]] = {}
        self.local: list[Condition] = []

    def bind_from(self, select: exp.Select) -> None:
        from_clause = select.args.get("from_")
        if from_clause is None:
            raise self.source.refuse("a subscription needs FROM", self.source.tokens[0])
        self.scope.groups.append(self._table(from_clause.this))
        for join in select.args.get("joins") or []:
            self._join(join)

    def _table(self, table: exp.Expr) -> list[Visible]:
        if isinstance(table, exp.Table) and isinstance(table.this, exp.XMLTable):
            error = NotYetError("XMLTABLE is not supported yet")
            self.source.locate(error, self.source.token_of("XMLTABLE"))
            raise error
        if isinstance(table, exp.Subquery) and isinstance(table.this, exp.Table):
            raise self.source.refuse(
                "a join in parentheses is not supported in a subscription",
                table,
                hint="write the joins one after the other",
            )
        if not isinstance(table, exp.Table):
            what = "LATERAL" if isinstance(table, exp.Lateral) else "a subquery"
            what = "VALUES" if isinstance(table, exp.Values) else what
            raise self.source.refuse(f"{what} is not supported in a subscription", table)
        if not isinstance(table.this, exp.Identifier):
            raise self.source.refuse(
                "a function in FROM is not supported in a subscription", table
            )
        alias = self._alias(table)
        if len(self.scope.nodes) == MAX_TABLES:
            raise self.source.refuse(f"at most {MAX_TABLES} tables can be joined", table)
        return self.scope.add(table, alias)

    def _alias(self, table: exp.Table) -> str:
        for name, value in table.args.items():
            if not value or name in ("this", "alias"):
                continue
            if name in ("db", "catalog"):
                raise self.source.refuse(
                    "names with a schema are not supported", table, hint=f"use {table.name}"
                )
            if name == "joins":
                raise self.source.refuse(
                    "a join inside a join is not supported in a subscription",
                    table,
                    hint="write ON directly behind each JOIN",
                )
            raise self.source.refuse(
                f"{clause_name(name)} is not supported in a subscription", table
            )
        alias = table.args.get("alias")
        if alias is None:
            return table.name
        others = [value for name, value in alias.args.items() if value and name != "this"]
        if others or not isinstance(alias.this, exp.Identifier):
            raise self.source.refuse(
                "new names for columns are not supported in FROM", table, hint="use AS in SELECT"
            )
        return alias.this.name

    def _join(self, join: exp.Join) -> None:
        self._check_kind(join)
        on, using = join.args.get("on"), join.args.get("using")
        natural = join.args.get("method") == "NATURAL"
        comma = not (on or using or natural or join.args.get("kind"))
        if comma and not self._follows_comma(join):
            raise self.source.refuse(
                "JOIN without a condition", join, hint="add ON a.x = b.y, or USING (x)"
            )
        columns = self._table(join.this)
        if comma:
            self.scope.groups.append(columns)
        elif natural:
            self._merge(columns, self._common_names(columns, join), join)
        elif using:
            self._merge(columns, using, join)
        else:
            self.scope.groups[-1] += columns
        if on is not None:
            self.scope.in_on = True
            self.bind_conjunction(on)
            self.scope.in_on = False

    def _check_kind(self, join: exp.Join) -> None:
        side, kind, method = (str(join.args.get(k) or "") for k in ("side", "kind", "method"))
        if side or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            hint = "only inner joins are" if side or kind in ("OUTER", "FULL") else ""
            raise self.source.refuse(
                f"{words} JOIN is not supported in a subscription",
                self.source.token_of(*words.split()) or join,
                hint=hint,
            )
        known = ("this", "on", "using", "kind", "method")
        for name, value in join.args.items():
            if value and name not in known:
                raise self.source.refuse(
                    f"{clause_name(name)} is not supported in a subscription", join
                )
        if kind == "CROSS" and (join.args.get("on") or join.args.get("using")):
            raise self.source.refuse("CROSS JOIN has no condition", join)

    def _follows_comma(self, join: exp.Join) -> bool:
        error = SqlError("")
        self.source.locate(error, join.this)
        before = [t for t in self.source.tokens if t.end < (error.position or 0)]
        return bool(before) and before[-1].token_type == TokenType.COMMA

    def _common_names(self, columns: list[Visible], join: exp.Join) -> list[exp.Identifier]:
        right = {visible.name.lower() for visible in columns}
        names = [v.name for v in self.scope.groups[-1] if v.name.lower() in right]
        if not names:
            raise self.source.refuse(
                "NATURAL JOIN of tables without a common column", join, hint="use ON a.x = b.y"
            )
        return [exp.to_identifier(name) for name in dict.fromkeys(n.lower() for n in names)]

    def _merge(
        self, columns: list[Visible], names: list[exp.Identifier], join: exp.Join
    ) -> None:
        """Join on columns of one name and show them once, at their place on the left."""
        left = self.scope.groups[-1]
        merged: set[str] = set()
        for name in names:
            with self.source.pointing_at(join):
                one = self.scope.only(name, self.scope.find(name.name, [left]))
                other = self.scope.only(name, self.scope.find(name.name, [columns]))
                self._add_equality(one, other)
            merged.add(name.name.lower())
        left += [visible for visible in columns if visible.name.lower() not in merged]

    def bind_conjunction(self, expression: exp.Expr) -> None:
        """Take equalities between tables out of ANDed conditions, and bind the rest."""
        top = unparenthesised(expression)
        parts = operands(top) if isinstance(top, exp.And) else [top]
        for part in parts:
            left = right = None
            if isinstance(part, exp.EQ):
                left, right = unparenthesised(part.this), unparenthesised(part.expression)
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                one, other = self.scope.resolve(left), self.scope.resolve(right)
                if one[0] != other[0]:
                    with self.source.pointing_at(part):
                        self._add_equality(one, other)
                    continue
            self.local.append(self.conditions.bind(part))

    def _add_equality(self, one: Place, other: Place) -> None:
        first, second = self.scope.column(one).type, self.scope.column(other).type
        if not joinable(first, second):
            raise SqlError(
                f"{self.scope.show(one)} is {first} and {self.scope.show(other)} is {second}: "
                "they cannot be joined"
            )
        left, right = sorted((one, other))
        self.equalities.setdefault((left[0], right[0]), set()).add((left[1], right[1]))

    def joins(self) -> tuple[Join, ...]:
        """All joins; SqlError if they do not connect all tables."""
        self._check_connected()
        return tuple(
            Join(left, right, tuple(sorted(columns)))
            for (left, right), columns in sorted(self.equalities.items())
        )

    def _check_connected(self) -> None:
        reached = {0}
        edges = set(self.equalities)
        while True:
            more = {n for edge in edges if reached & set(edge) for n in edge} - reached
            if not more:
                break
            reached |= more
        apart = [n.alias for i, n in enumerate(self.scope.nodes) if i not in reached]
        if apart:
            joined = [n.alias for i, n in enumerate(self.scope.nodes) if i in reached]
            raise self.source.refuse(
                f"{', '.join(joined)} and {', '.join(apart)} are not joined with each other",
                self.source.token_of("FROM"),
                hint="add an equality between them, like a.x = b.y",
            )
