"""FROM and JOIN: from parsed SQL to nodes, equalities between them, and other conditions of ON."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlError
from penstock.predicates.normal_form import All, Condition
from penstock.predicates.simplify import Place
from penstock.query import MAX_TABLES, Join
from penstock.sql.conditions import ConditionBinder, operands, unparenthesised
from penstock.sql.names import clause_name, other_arguments
from penstock.sql.scope import Scope, Visible, did_you_mean, known
from penstock.sql.xml_tables import bind_xml_table

_NOT_TABLES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Lateral, "LATERAL"),
    (exp.Values, "VALUES"),
    (exp.Unnest, "UNNEST"),
    (exp.Query, "a subquery"),
)


class TableBinder:
    """Walks FROM from left to right and fills the scope."""

    def __init__(self, scope: Scope, conditions: ConditionBinder) -> None:
        self.scope = scope
        self.source = scope.source
        self.conditions = conditions
        self.equalities: dict[tuple[int, int], set[tuple[int, int]]] = {}
        self.local: list[Condition] = []
        self.local_expressions: list[exp.Expr] = []

    def bind_from(self, select: exp.Select) -> None:
        from_clause = select.args.get("from_")
        if from_clause is None:
            raise self.source.refuse("a subscription needs FROM", self.source.tokens[0])
        self.scope.groups.append(self._table(from_clause.this))
        for join in select.args.get("joins") or []:
            self._join(join)

    def _table(self, table: exp.Expr) -> list[Visible]:
        if not isinstance(table, exp.Table):
            raise self._not_a_table(table)
        if isinstance(table.this, exp.XMLTable):
            return bind_xml_table(self.scope, table, self._alias(table))
        if not isinstance(table.this, exp.Identifier):
            raise self._unsupported("a function in FROM", table)
        if len(self.scope.nodes) == MAX_TABLES:
            raise self.source.refuse(f"at most {MAX_TABLES} tables can be joined", table)
        return self.scope.add(table, self._alias(table))

    def _unsupported(self, what: str, at: exp.Expr, hint: str = "") -> SqlError:
        return self.source.refuse(f"{what} is not supported in a subscription", at, hint=hint)

    def _not_a_table(self, table: exp.Expr) -> SqlError:
        if isinstance(table, exp.Subquery) and isinstance(table.unnest(), exp.Table):
            joined = bool(table.unnest().args.get("joins"))
            what = "a join in parentheses" if joined else "a table in parentheses"
            return self._unsupported(what, table, "leave the parentheses out")
        names = [name for kind, name in _NOT_TABLES if isinstance(table, kind)]
        return self._unsupported(names[0] if names else "this FROM", table)

    def _alias(self, table: exp.Table) -> str | None:
        for name in other_arguments(table, "this", "alias"):
            if name in ("db", "catalog"):
                raise self._unsupported("a name with a schema", table, f"use {table.name}")
            if name == "joins":
                raise self._unsupported(
                    "a join inside a join", table, "write ON directly behind each JOIN"
                )
            raise self._unsupported(clause_name(name), table)
        alias = table.args.get("alias")
        if alias is None:
            return None
        if not isinstance(alias.this, exp.Identifier) or any(other_arguments(alias, "this")):
            raise self._unsupported("naming columns in FROM", table, "use AS in the SELECT list")
        return alias.this.name

    def _join(self, join: exp.Join) -> None:
        self._check_kind(join)
        on, using = join.args.get("on"), join.args.get("using")
        natural = join.args.get("method") == "NATURAL"
        bare = not (on or using or natural or join.args.get("kind") == "CROSS")
        columns = self._table(join.this)
        if bare and self.source.word_before(join.this, "XMLTABLE", "(") != ",":
            raise self.source.refuse(
                "a JOIN without a condition", join, hint="add ON a.x = b.y, or USING (x)"
            )
        if bare:
            self.scope.groups.append(columns)
        elif natural or using:
            self._merge(columns, using or self._common_names(columns, join), join)
        else:
            self.scope.groups[-1] += columns
        if on is not None:
            self.scope.in_on = True
            self.bind_conjunction(on)
            self.scope.in_on = False

    def _check_kind(self, join: exp.Join) -> None:
        side, kind, method = (str(join.args.get(k) or "") for k in ("side", "kind", "method"))
        if side or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
            words = [word for word in (method, side, kind) if word]
            raise self.source.refuse(
                f"{' '.join(words)} JOIN is not supported in a subscription",
                self.source.token_of(*words) or join,
                hint="only inner joins are",
            )
        for name in other_arguments(join, "this", "on", "using", "kind", "method"):
            raise self._unsupported(clause_name(name), join)
        if kind == "CROSS" and (join.args.get("on") or join.args.get("using")):
            raise self.source.refuse("a CROSS JOIN has no condition", join)

    def _common_names(self, columns: list[Visible], join: exp.Join) -> list[exp.Identifier]:
        right = {visible.name.lower() for visible in columns}
        left = (visible.name.lower() for visible in self.scope.groups[-1])
        common = [exp.to_identifier(name) for name in dict.fromkeys(left) if name in right]
        if not common:
            raise self.source.refuse(
                "a NATURAL JOIN of tables without a common column", join, hint="use ON a.x = b.y"
            )
        return common

    def _merge(self, columns: list[Visible], names: list[exp.Identifier], join: exp.Join) -> None:
        """Join on columns of the same name and show them once, at their position on the left."""
        left = self.scope.groups[-1]
        with self.source.pointing_at(join):
            for name in names:
                one, other = self._side(name, left, "left"), self._side(name, columns, "right")
                self._add_equality(one, other)
        merged = {name.name.lower() for name in names}
        left += [visible for visible in columns if visible.name.lower() not in merged]

    def _side(self, name: exp.Identifier, columns: list[Visible], side: str) -> Place:
        found = self.scope.find(name.name, [columns])
        if not found:
            names = [visible.name for visible in columns]
            raise self.source.refuse(
                f"there is no column {name.name} on the {side} side of this JOIN",
                name,
                hint=did_you_mean(name.name, names) or known(names),
            )
        return self.scope.only(name, found)

    def bind_conjunction(self, expression: exp.Expr) -> None:
        """Extract equalities between tables from ANDed conditions, and bind the rest."""
        top = unparenthesised(expression)
        shared: list[exp.Expr] = []
        for part in operands(top) if isinstance(top, exp.And) else [top]:
            pair = self._join_columns(part)
            if pair is not None:
                with self.source.pointing_at(part):
                    self._add_equality(*pair)
            elif self.conditions.has_variables(part):
                shared.append(part)
            else:
                self.local.append(self.conditions.bind(part))
                self.local_expressions.append(part)
        if shared:
            self.local.append(All(tuple(self.conditions.bind_all(shared))))
            self.local_expressions.append(exp.and_(*shared, copy=False))

    def _join_columns(self, part: exp.Expr) -> tuple[Place, Place] | None:
        """The columns of `a.x = b.y`, if the condition is an equality between two tables."""
        if not isinstance(part, exp.EQ):
            return None
        left, right = unparenthesised(part.this), unparenthesised(part.expression)
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return None
        one, other = self.scope.resolve(left), self.scope.resolve(right)
        return None if one[0] == other[0] else (one, other)

    def _add_equality(self, one: Place, other: Place) -> None:
        first, second = self.scope.column(one).type, self.scope.column(other).type
        if not first.joins_with(second):
            raise SqlError(
                f"{self.scope.show(one)} is {first} and {self.scope.show(other)} is {second}: "
                "they cannot be joined",
                hint="join columns of one kind of type",
            )
        left, right = sorted((one, other))
        self.equalities.setdefault((left[0], right[0]), set()).add((left[1], right[1]))

    def joins(self) -> tuple[Join, ...]:
        """All joins; SqlError if they do not connect all tables."""
        reached: set[int] = set()
        waiting = [0]
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += [n for pair in self.equalities if node in pair for n in pair]
        apart = [n.alias for i, n in enumerate(self.scope.nodes) if i not in reached]
        if apart:
            together = [n.alias for i, n in enumerate(self.scope.nodes) if i in reached]
            raise self.source.refuse(
                f"nothing joins {', '.join(apart)} with {', '.join(together)}",
                self.source.token_of("FROM"),
                hint="add an equality between them, like a.x = b.y",
            )
        return tuple(
            Join(left, right, tuple(sorted(columns)))
            for (left, right), columns in sorted(self.equalities.items())
        )
