"""What a person calls a piece of SQL that is refused."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import NotYetError, SqlError

_CLAUSES = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "locks": "FOR UPDATE",
    "into": "SELECT INTO",
    "laterals": "LATERAL",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "connect": "CONNECT BY",
    "match": "MATCH_RECOGNIZE",
    "match_condition": "MATCH_CONDITION",
    "when": "AT",
    "version": "AS OF",
    "only": "ONLY",
    "ordinality": "WITH ORDINALITY",
    "kind": "SELECT AS",
    "operation_modifiers": "a SELECT modifier",
    "hint": "a hint",
    "except_": "EXCLUDE",
    "replace": "REPLACE",
    "rename": "RENAME",
}

_EXPRESSIONS: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str], ...] = (
    (exp.Case, "CASE"),
    ((exp.Exists, exp.Query), "a subquery"),
    (exp.ILike, "ILIKE"),
    (exp.SimilarTo, "SIMILAR TO"),
    (exp.Glob, "GLOB"),
    ((exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch), "a regular expression"),
    (exp.StartsWith, "the function starts_with"),
    (exp.Escape, "ESCAPE"),
    (exp.Window, "a window function"),
    ((exp.Any, exp.All), "ANY and ALL"),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow), "arithmetic"),
    ((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), "bit arithmetic"),
    (exp.DPipe, "the operator ||"),
    (exp.Xor, "XOR"),
    (exp.Collate, "COLLATE"),
    (exp.Interval, "INTERVAL"),
    (exp.Tuple, "a row value"),
    ((exp.Array, exp.Bracket, exp.List), "a list"),
    ((exp.Struct, exp.Dot), "a struct"),
    (exp.TryCast, "TRY_CAST"),
    (exp.Cast, "CAST of anything but a constant"),
    (exp.Star, "*"),
    (exp.PositionalColumn, "a column by position"),
    (exp.Columns, "COLUMNS"),
)


def clause_name(argument: str) -> str:
    """The name of a clause, from the name the parser gives it."""
    return _CLAUSES.get(argument, argument.strip("_").upper().replace("_", " "))


def expression_name(expression: exp.Expr) -> str:
    for kinds, name in _EXPRESSIONS:
        if isinstance(expression, kinds):
            return name
    if isinstance(expression, exp.AggFunc):
        return f"the aggregate function {expression.sql_name().lower()}"
    if isinstance(expression, exp.Anonymous):
        return f"the function {expression.name}"
    if isinstance(expression, exp.Func):
        return f"the function {expression.sql_name().lower()}"
    return f"the expression {expression.sql(dialect='duckdb')[:60]}"


def refusal(expression: exp.Expr) -> SqlError:
    """The error for an expression that has no place in a subscription."""
    if isinstance(expression, exp.Placeholder | exp.Parameter):
        if isinstance(expression, exp.Placeholder) and not expression.name.isdecimal():
            if expression.name:
                return NotYetError(
                    f"the variable :{expression.name} is not supported yet",
                    detail="variables are bound by operators, which this release does not run",
                )
        return SqlError(
            "parameters are not supported in a subscription", hint="write the value itself"
        )
    return SqlError(f"{expression_name(expression)} is not supported in a subscription")
