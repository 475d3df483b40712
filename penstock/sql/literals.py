"""SQL literals and casts of them, as constants."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.column_types import value_type_of
from penstock.sql.constants import NULL, Constant, read_number
from penstock.sql.literal_rules import converted
from penstock.sql.names import clause_name, other_arguments


def read_constant(expression: exp.Expr) -> Constant | None:
    """The constant value of an expression, or None if it is not constant; SqlError if it is
    invalid."""
    if isinstance(expression, exp.Paren):
        return read_constant(expression.this)
    if isinstance(expression, exp.Null):
        return NULL
    if isinstance(expression, exp.Boolean):
        return Constant("boolean", bool(expression.this))
    if isinstance(expression, exp.Literal):
        text = str(expression.this)
        return Constant("string", text) if expression.is_string else read_number(text)
    if isinstance(expression, exp.Neg):
        inner = read_constant(expression.this)
        return None if inner is None else _negated(inner)
    if type(expression) is exp.Cast:
        inner = read_constant(expression.this)
        return None if inner is None else _cast(inner, expression)
    return None


def _negated(constant: Constant) -> Constant:
    if isinstance(constant.value, Decimal):
        return Constant(constant.kind, constant.value.copy_negate())  # minus would round
    if constant.is_number:
        assert isinstance(constant.value, int | float)
        return Constant(constant.kind, -constant.value)
    if constant == NULL:
        return NULL
    raise SqlError(f"there is no minus for {constant}")


def _cast(constant: Constant, cast: exp.Cast) -> Constant:
    for name in other_arguments(cast, "this", "to"):
        raise SqlError(f"CAST with {clause_name(name)} is not supported in a subscription")
    return converted(constant, value_type_of(cast.to))


_ORDERS: dict[type[exp.Expr], tuple[int, ...]] = {
    exp.EQ: (0,),
    exp.NEQ: (-1, 1),
    exp.LT: (-1,),
    exp.LTE: (-1, 0),
    exp.GT: (1,),
    exp.GTE: (0, 1),
}


def compared(kind: type[exp.Expr], left: Constant, right: Constant) -> Constant:
    """A comparison of two constants, as in WHERE 1 = 1."""
    orders = _ORDERS.get(kind)
    if orders is not None and NULL in (left, right):
        return NULL
    one, other = left.value, right.value
    if isinstance(one, str) and isinstance(other, str):
        order = (one > other) - (one < other)
    elif {left.kind, right.kind} <= {"integer", "decimal"}:
        assert isinstance(one, int | Decimal)
        assert isinstance(other, int | Decimal)
        order = (one > other) - (one < other)
    else:
        orders = None
    if orders is None:
        raise SqlError("one side of a comparison must be a column")
    return Constant("boolean", order in orders)
