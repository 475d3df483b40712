"""Calls of operators in conditions, with their variables: from parsed SQL to groups of predicates.

Conditions that are combined by AND and share variables are one group, which is true if one joint
substitution satisfies all of them. The scope of a variable is one list of ANDs: the alternatives of
an OR have variables of their own, and NOT has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from sqlglot import exp

from penstock.catalog import BooleanType, DateType, Outside, TimestampType
from penstock.catalog.derived import Definition
from penstock.catalog.signatures import Signature
from penstock.errors import SqlError, UnknownOperatorError
from penstock.operators.canonical import canonical_group
from penstock.operators.groups import GroupDefinition, Predicate, check_group
from penstock.operators.interface import Argument, Operator, Output
from penstock.operators.terms import Arithmetic, ColumnTerm, Comparison, Leaf, Term, Variable
from penstock.operators.terms import Constant as ConstantTerm
from penstock.predicates.simplify import Place
from penstock.sql.constants import Constant
from penstock.sql.expressions import ExpressionBinder
from penstock.sql.literals import read_constant
from penstock.sql.names import refusal
from penstock.sql.scope import Scope, did_you_mean

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
GROUP = "penstock group"
"""The key under which a bound condition stores the column of its group."""


def may_have_variables(sql: str) -> bool:
    """Whether a text contains the character that variables begin with; checking each part takes
    longer."""
    return any(sign in sql for sign in ":$?")


def has_variables(expression: exp.Expr) -> bool:
    return any(_is_variable(one) for one in expression.walk())


def _is_variable(expression: exp.Expr) -> bool:
    return isinstance(expression, exp.Placeholder) and expression.name.isidentifier()


def variables_of(expression: exp.Expr) -> set[str]:
    """Their names, case-insensitive like all names."""
    return {one.name.lower() for one in expression.walk() if _is_variable(one)}


class OperatorBinder:
    """Turns the operators that conditions call into derived columns."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._expressions = ExpressionBinder(scope)

    def place(self, parts: Sequence[exp.Expr]) -> Place:
        """The column with the truth of conditions that share variables."""
        nodes: set[int] = set()
        predicates = [self._predicate(one, nodes) for one in parts if isinstance(one, exp.Func)]
        constraints = [
            constraint
            for one in parts
            if not isinstance(one, exp.Func)
            for constraint in self._constraints(one, nodes)
        ]
        if not predicates:
            names = ", ".join(f":{name}" for name in sorted(set().union(*map(variables_of, parts))))
            raise SqlError(f"{names} is bound by no operator", hint="give it to one: f(x, :name)")
        if len(nodes) > 1:
            what = "one operator" if len(predicates) == 1 else "operators that share variables"
            raise SqlError(
                f"{what} over several tables cannot be evaluated",
                hint="operators are evaluated for a row of one table",
            )
        place = self._scope.add_derived(*self._definition(nodes, predicates, constraints))
        for one in parts:
            one.meta[GROUP] = place
        return place

    def _definition(
        self, nodes: set[int], predicates: list[Predicate], constraints: list[Comparison]
    ) -> tuple[int, Definition]:
        node = nodes.pop() if nodes else 0
        relation = self._scope.nodes[node].relation
        called = {one.operator for one in predicates}
        operators = {name: declared_operator(self._signatures[name]) for name in called}
        columns = {one.name: one.type for one in relation.columns}
        group = GroupDefinition(tuple(predicates), tuple(constraints))
        group = canonical_group(check_group(group, operators, columns))
        reads = sorted(relation.positions[name.lower()] for name in group.columns())
        text = describe_group(group)
        return node, Definition(text, BooleanType(), tuple(reads), "operator", group.text())

    @property
    def _signatures(self) -> Mapping[str, Signature]:
        return self._scope.catalog.operators

    def _predicate(self, call: exp.Func, nodes: set[int]) -> Predicate:
        with self._scope.source.pointing_at(call):
            signature = self._signature(call)
            given = call.expressions
            taken, bound = len(signature.arguments), len(signature.outputs)
            if len(given) != taken + bound:
                raise SqlError(
                    f"operator {signature.name} takes {taken} arguments and binds {bound} "
                    f"variables, not {len(given)} together",
                    hint=f"call it as {signature}",
                )
            terms = [self._leaf(one, nodes) for one in given]
            return Predicate(signature.name.lower(), tuple(terms[:taken]), tuple(terms[taken:]))

    def _leaf(self, expression: exp.Expr, nodes: set[int]) -> Leaf:
        """An argument of a call."""
        with self._scope.source.pointing_at(expression):
            term = self._term(expression, nodes)
            if isinstance(term, Arithmetic):
                raise SqlError(
                    "an operator is given columns, constants and variables only",
                    hint="let the operator compute with its arguments",
                )
            return term

    def _signature(self, call: exp.Func) -> Signature:
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
        found = self._signatures.get(name.lower())
        if found is None or not isinstance(call, exp.Anonymous):
            known = [one.name for one in self._signatures.values()]
            raise UnknownOperatorError(name, hint=did_you_mean(name, known))
        return found

    def _constraints(self, expression: exp.Expr, nodes: set[int]) -> Iterable[Comparison]:
        with self._scope.source.pointing_at(expression):
            if isinstance(expression, exp.Between):
                value = self._term(expression.this, nodes)
                low = self._term(expression.args["low"], nodes)
                high = self._term(expression.args["high"], nodes)
                return [Comparison(">=", value, low), Comparison("<=", value, high)]
            sign = _SIGNS.get(type(expression))
            if sign is None:
                raise SqlError("variables are compared with =, <>, <, <=, >, >= and BETWEEN only")
            left = self._term(expression.this, nodes)
            return [Comparison(sign, left, self._term(expression.args["expression"], nodes))]

    def _term(self, expression: exp.Expr, nodes: set[int]) -> Term:
        while isinstance(expression, exp.Paren):
            expression = expression.this
        if _is_variable(expression):
            return Variable(expression.name.lower())
        if isinstance(expression, exp.Column):
            place = self._scope.resolve(expression)
            nodes.add(place[0])
            return ColumnTerm(self._scope.column(place).name)
        if has_variables(expression) or expression.find(exp.Column) is not None:
            return self._arithmetic(expression, nodes)
        constant = read_constant(expression) or self._expressions.constant(expression)
        if constant is None or constant.value is None:
            raise SqlError("NULL is not supported here")
        return ConstantTerm(_outside(constant))

    def _arithmetic(self, expression: exp.Expr, nodes: set[int]) -> Term:
        if isinstance(expression, exp.Neg):
            return Arithmetic("-", ConstantTerm(0), self._term(expression.this, nodes))
        sign = _ARITHMETIC.get(type(expression))
        if sign is None:
            raise refusal(expression, "the arguments of operators and in value constraints")
        left = self._term(expression.this, nodes)
        return Arithmetic(sign, left, self._term(expression.args["expression"], nodes))


def declared_operator(signature: Signature) -> Operator:
    """An operator with a given signature and no implementation."""
    made = Operator()
    made.name = signature.name
    made.arguments = tuple(Argument(p.name, p.type, p.constant) for p in signature.arguments)
    made.outputs = tuple(Output(p.name, p.type) for p in signature.outputs)
    return made


def _outside(constant: Constant) -> Outside:
    """A constant as an outside value."""
    if constant.kind == "date":
        return DateType().show(cast(int, constant.value))
    if constant.kind in ("timestamp", "timestamptz"):
        zoned = constant.kind == "timestamptz"
        return TimestampType(zoned=zoned).show(cast(int, constant.value))
    return constant.value


def describe_group(group: GroupDefinition) -> str:
    """A group in SQL notation."""
    calls = [
        f"{one.operator}({', '.join(map(_describe, (*one.arguments, *one.outputs)))})"
        for one in group.predicates
    ]
    constraints = [
        f"{_describe(one.left)} {one.sign} {_describe(one.right)}" for one in group.constraints
    ]
    return " AND ".join([*calls, *constraints])


def _describe(term: Term) -> str:
    if isinstance(term, ColumnTerm):
        return term.name
    if isinstance(term, Variable):
        return f":{term.name}"
    if isinstance(term, ConstantTerm):
        value = term.value
        if isinstance(value, int | float) or not isinstance(value, str):
            return str(value)
        return "'" + value.replace("'", "''") + "'"
    return f"({_describe(term.left)} {term.sign} {_describe(term.right)})"
