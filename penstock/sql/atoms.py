"""Conditions on one column: the values that make them true, and those that make them false."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog import ValueType
from penstock.errors import SqlError
from penstock.predicates.intervals import (
    ABOVE_NULL,
    NOT_NULL,
    TOP,
    Cut,
    Interval,
    normalise,
    point,
    prefix,
)
from penstock.sql.constants import NULL, Constant
from penstock.sql.literal_rules import check_null, place, rules_of
from penstock.sql.truth import ISNULL, UNKNOWN, Truth, exactly, unless_null

MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
"""The comparison with swapped sides, if it is not the same."""


def comparison(kind: type[exp.Expr], constant: Constant, value_type: ValueType) -> Truth:
    """`column <kind> constant`."""
    if constant == NULL:
        check_null(constant, value_type)
    if kind is exp.NullSafeEQ:
        return ISNULL if constant == NULL else exactly(_interval(exp.EQ, constant, value_type))
    if kind is exp.NullSafeNEQ:
        return ~comparison(exp.NullSafeEQ, constant, value_type)
    if constant == NULL:
        return UNKNOWN
    if kind is exp.NEQ:
        return ~comparison(exp.EQ, constant, value_type)
    return unless_null(_interval(kind, constant, value_type))


def like(pattern: Constant, value_type: ValueType) -> Truth:
    """`column LIKE pattern`, for patterns that are an interval."""
    if not rules_of(value_type).has_patterns:
        raise SqlError(f"LIKE needs a string column, this one is {value_type}")
    if pattern == NULL:
        check_null(pattern, value_type)
        return UNKNOWN
    if pattern.kind != "string":
        raise SqlError(f"the pattern of LIKE is a string, not {pattern}")
    text = str(pattern.value)
    assert is_prefix(text)
    stem = text.rstrip("%")
    interval = point(stem) if stem == text else prefix(stem) if stem else NOT_NULL
    return unless_null(normalise(interval, value_type))


def is_prefix(pattern: str) -> bool:
    """Whether a pattern matches exactly the strings with a certain prefix, or one string."""
    stem = pattern.rstrip("%")
    return "%" not in stem and "_" not in stem


def is_boolean(value: bool, value_type: ValueType) -> Truth:
    """`column IS TRUE` and `column IS FALSE`."""
    if not rules_of(value_type).is_condition:
        raise SqlError(f"IS {str(value).upper()} needs a boolean column, this one is {value_type}")
    return exactly(normalise(point(int(value)), value_type))


def is_true(value_type: ValueType) -> Truth:
    """A boolean column by itself."""
    return unless_null(normalise(point(1), value_type))


def _interval(kind: type[exp.Expr], constant: Constant, value_type: ValueType) -> Interval:
    low, high = place(constant, value_type)
    ends: dict[type[exp.Expr], tuple[Cut, Cut]] = {
        exp.EQ: (low, high),
        exp.LT: (ABOVE_NULL, low),
        exp.LTE: (ABOVE_NULL, high),
        exp.GT: (high, TOP),
        exp.GTE: (low, TOP),
    }
    return normalise(Interval(*ends[kind]), value_type)
