"""Groups of predicates that share variables, and their syntax.

    distanceFrom(at, 'Statue of Liberty', :x) AND :x < 1000
    AND tourBoatCount(image, :y) AND coastGuardBoatCount(image, :z) AND :y > 2 * :z

A *predicate* is a call of an operator: its arguments are columns and constants, followed by, for
each output, a variable that it binds or a constant that it must equal. A *group* is a set of
predicates and value constraints; it is true if one joint substitution of all variables satisfies
all of them (Liu et al., 2007, section 2.1). Variables cannot be arguments: an operator is evaluated
once for a row, before anything is substituted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.catalog import ValueType
from penstock.errors import ChangeError, OperatorError
from penstock.operators.interface import Argument, Operator, Output, is_number, signature
from penstock.operators.terms import (
    MAX_TERM_NODES,
    Arithmetic,
    ColumnTerm,
    Comparison,
    Constant,
    Leaf,
    Term,
    Variable,
    leaves_of,
    plain_term,
    read_term,
)

MAX_PREDICATES = 16
MAX_CONSTRAINTS = 16
MAX_VARIABLES = 16


@dataclass(frozen=True, slots=True)
class Predicate:
    operator: str
    arguments: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...] = ()

    @property
    def call(self) -> Predicate:
        """The expensive part: predicates that differ only in their variables share it."""
        return Predicate(self.operator, self.arguments)

    def plain(self) -> list[object]:
        arguments = [plain_term(one) for one in self.arguments]
        return [self.operator, arguments, [plain_term(one) for one in self.outputs]]


@dataclass(frozen=True, slots=True)
class GroupDefinition:
    predicates: tuple[Predicate, ...]
    constraints: tuple[Comparison, ...] = ()

    def text(self) -> str:
        """The definition as JSON: the same for the same definition, in every process."""
        predicates = [one.plain() for one in self.predicates]
        constraints = [plain_term(one) for one in self.constraints]
        return json.dumps([predicates, constraints], separators=(",", ":"))

    def columns(self) -> list[str]:
        """The columns it reads, in the order of their first use."""
        return list(dict.fromkeys(one.name for one in self._leaves() if type(one) is ColumnTerm))

    def variables(self) -> list[str]:
        """In the order of their first use."""
        return list(dict.fromkeys(one.name for one in self._leaves() if type(one) is Variable))

    def _leaves(self) -> Iterator[Leaf]:
        for predicate in self.predicates:
            yield from predicate.arguments
            yield from predicate.outputs
        for constraint in self.constraints:
            yield from leaves_of(constraint)


def read_group(text: str) -> GroupDefinition:
    """Parses the output of `GroupDefinition.text`."""
    try:
        predicates, constraints = json.loads(text)
        return GroupDefinition(
            tuple(_read_predicate(*one) for one in predicates),
            tuple(_checked(read_term(one), Comparison) for one in constraints),
        )
    except (ValueError, TypeError) as error:
        raise OperatorError("the definition of a group of predicates cannot be read") from error


def _read_predicate(operator: str, arguments: Any, outputs: Any) -> Predicate:
    return Predicate(
        operator,
        tuple(_checked(read_term(one), ColumnTerm, Constant) for one in arguments),
        tuple(_checked(read_term(one), Variable, Constant) for one in outputs),
    )


def _checked(term: Any, *kinds: type) -> Any:
    if not isinstance(term, kinds):
        raise ValueError("a term stands where it cannot")
    return term


def check_group(
    group: GroupDefinition,
    operators: Mapping[str, Operator],
    columns: Mapping[str, ValueType],
) -> GroupDefinition:
    """The group with constants converted to the types they are compared with. OperatorError if an
    operator or a column does not exist, or something is in the wrong place."""
    if not group.predicates:
        raise OperatorError("a group has at least one predicate")
    if len(group.predicates) > MAX_PREDICATES or len(group.constraints) > MAX_CONSTRAINTS:
        raise OperatorError(
            f"at most {MAX_PREDICATES} predicates and {MAX_CONSTRAINTS} constraints share variables"
        )
    if len(group.variables()) > MAX_VARIABLES:
        raise OperatorError(f"a group has at most {MAX_VARIABLES} variables")
    checker = _Checker(operators, columns, {})
    predicates = tuple(map(checker.check_predicate, group.predicates))
    return GroupDefinition(predicates, tuple(map(checker.check_constraint, group.constraints)))


@dataclass(frozen=True, slots=True)
class _Checker:
    operators: Mapping[str, Operator]
    columns: Mapping[str, ValueType]
    variables: dict[str, ValueType]

    def check_predicate(self, predicate: Predicate) -> Predicate:
        if predicate.operator not in self.operators:
            raise OperatorError(f"operator {predicate.operator} is not registered")
        operator = self.operators[predicate.operator]
        taken, bound = len(operator.arguments), len(operator.outputs)
        if (len(predicate.arguments), len(predicate.outputs)) != (taken, bound):
            raise OperatorError(
                f"operator {operator.name} takes {taken} arguments and binds {bound} variables",
                hint=f"call it as {signature(operator)}",
            )
        arguments = tuple(
            self._check_argument(operator, argument, term)
            for argument, term in zip(operator.arguments, predicate.arguments, strict=True)
        )
        operator.check_constants(
            {
                argument.name: term.value
                for argument, term in zip(operator.arguments, arguments, strict=True)
                if isinstance(term, Constant)
            }
        )
        outputs = tuple(
            self._check_output(operator, output, term)
            for output, term in zip(operator.outputs, predicate.outputs, strict=True)
        )
        return Predicate(operator.name, arguments, outputs)

    def _check_argument(self, operator: Operator, argument: Argument, term: Leaf) -> Leaf:
        what = f"argument {argument.name} of {operator.name}"
        if isinstance(term, Variable):
            raise OperatorError(
                f"{what} cannot be the variable :{term.name}",
                hint="variables stand for outputs, behind all arguments",
            )
        if isinstance(term, Constant):
            return _constant_of(argument.type, term, what)
        if argument.constant:
            raise OperatorError(f"{what} is a constant, not the column {term.name}")
        given = self._column_type(term)
        if not argument.accepts(given):
            raise OperatorError(f"{what} is a {argument.type}, and {term.name} is a {given}")
        return term

    def _check_output(self, operator: Operator, output: Output, term: Leaf) -> Leaf:
        what = f"output {output.name} of {operator.name}"
        if isinstance(term, Constant):
            return _constant_of(output.type, term, what)
        if not isinstance(term, Variable):
            raise OperatorError(
                f"{what} is a variable or a constant", hint="compare the variable with the column"
            )
        known = self.variables.setdefault(term.name, output.type)
        if not known.joins_with(output.type):
            raise OperatorError(f":{term.name} is a {known}, and {what} is a {output.type}")
        return term

    def check_constraint(self, constraint: Comparison) -> Comparison:
        # 2n - 1 nodes have n leaves.
        if 2 * sum(1 for _ in leaves_of(constraint)) - 1 > MAX_TERM_NODES:
            raise OperatorError(f"a value constraint has at most {MAX_TERM_NODES} parts")
        left, right = constraint.left, constraint.right
        one, other = self._type_of(left), self._type_of(right)
        if one is not None:
            right = _meeting(one, right, other)
        elif other is not None:
            left = _meeting(other, left, one)
        elif _family(left) != _family(right):
            raise OperatorError(
                f"a value constraint compares a {_family(left)} with a {_family(right)}"
            )
        return Comparison(constraint.sign, left, right)

    def _type_of(self, term: Term) -> ValueType | None:
        """The type of a column or a variable that is not a number; None for numbers and for
        constants, which take the type they are compared with."""
        if isinstance(term, Arithmetic):
            for operand in (term.left, term.right):
                if self._type_of(operand) is not None or _family(operand) != _NUMBER:
                    raise OperatorError(f"{term.sign} takes numbers in value constraints")
            return None
        if isinstance(term, Constant):
            return None
        if isinstance(term, ColumnTerm):
            found = self._column_type(term)
        elif term.name in self.variables:
            found = self.variables[term.name]
        else:
            raise OperatorError(f":{term.name} is bound by no predicate")
        return None if is_number(found) else found

    def _column_type(self, term: ColumnTerm) -> ValueType:
        if term.name not in self.columns:
            raise OperatorError(f"there is no column {term.name}")
        return self.columns[term.name]


_NUMBER = "number"


def _family(term: Term) -> str:
    """The family of types for comparing a constant without a column or variable of a type."""
    if isinstance(term, Constant) and term.kind not in ("int", "float", "Decimal"):
        return term.kind
    return _NUMBER


def _meeting(value_type: ValueType, term: Term, given: ValueType | None) -> Term:
    """A term compared with a value of a non-numeric type."""
    if isinstance(term, Constant):
        return _constant_of(value_type, term, "a value constraint")
    if given is None or not value_type.joins_with(given):
        raise OperatorError(f"a value constraint compares a {value_type} with a {given or _NUMBER}")
    return term


def _constant_of(value_type: ValueType, constant: Constant, what: str) -> Constant:
    try:
        return Constant(value_type.show(value_type.store(constant.value)))
    except ChangeError as error:
        raise OperatorError(f"{what}: {error.primary}", detail=error.detail) from None
