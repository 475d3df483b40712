"""Names of SQL constructs for error messages."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.dialect import write_sql

_CLAUSES = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "locks": "FOR UPDATE",
    "into": "INTO",
    "laterals": "LATERAL",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "when": "AT",
    "ordinality": "WITH ORDINALITY",
    "except_": "EXCLUDE",
    "expression": "AS SELECT",
    "exists": "IF NOT EXISTS",
}

_EXPRESSIONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Rand,), "the function random"),
    ((exp.Exists, exp.Query), "a subquery"),
    ((exp.RegexpILike,), "a regular expression"),
    ((exp.Window,), "a window function"),
    ((exp.Any, exp.All), "ANY or ALL"),
    ((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), "bit arithmetic"),
    ((exp.Xor,), "XOR"),
    ((exp.Collate,), "COLLATE"),
    ((exp.Tuple,), "a row value"),
    ((exp.Array, exp.Bracket, exp.List), "a list"),
    ((exp.Struct, exp.Dot), "a struct"),
    ((exp.Star,), "*"),
    ((exp.PositionalColumn,), "a column by position"),
    ((exp.Columns,), "COLUMNS"),
)

_CONSTRAINTS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.DefaultColumnConstraint,), "DEFAULT"),
    ((exp.CheckColumnConstraint,), "CHECK"),
    ((exp.UniqueColumnConstraint,), "UNIQUE"),
    ((exp.Reference,), "REFERENCES"),
    ((exp.ForeignKey,), "FOREIGN KEY"),
    ((exp.PrimaryKeyColumnConstraint,), "PRIMARY KEY with ASC or DESC"),
    (
        (
            exp.ComputedColumnConstraint,
            exp.GeneratedAsIdentityColumnConstraint,
            exp.GeneratedAsRowColumnConstraint,
            exp.AutoIncrementColumnConstraint,
        ),
        "a generated column",
    ),
    ((exp.CollateColumnConstraint,), "COLLATE"),
    ((exp.LikeProperty,), "LIKE"),
    ((exp.IndexColumnConstraint,), "INDEX"),
    ((exp.Constraint,), "a name for a constraint"),
    ((exp.PartitionedByProperty,), "PARTITION BY"),
    ((exp.Property,), "WITH"),
)


def other_arguments(expression: exp.Expr, *known: str) -> Iterator[str]:
    """What the parser read into an expression besides the known arguments: nothing may be
    ignored."""
    for name, value in expression.args.items():
        empty = isinstance(value, exp.IndexParameters) and not any(value.args.values())
        if value and not empty and name not in known:
            yield name


def clause_name(argument: str) -> str:
    """The name of a clause, from the parser's name for it."""
    return _CLAUSES.get(argument, argument.strip("_").upper().replace("_", " "))


def constraint_name(constraint: exp.Expr) -> str:
    """The name of a constraint or an option in CREATE TABLE."""
    for kinds, name in _CONSTRAINTS:
        if isinstance(constraint, kinds):
            return name
    return write_sql(constraint)[:60]


def expression_name(expression: exp.Expr) -> str:
    for kinds, name in _EXPRESSIONS:
        if isinstance(expression, kinds):
            return name
    if isinstance(expression, exp.Anonymous):
        return f"the function {expression.name}"
    if isinstance(expression, exp.Func):
        kind = "aggregate function" if isinstance(expression, exp.AggFunc) else "function"
        return f"the {kind} {expression.sql_name().lower()}"
    return f"the expression {write_sql(expression)[:60]}"


def refusal(expression: exp.Expr, where: str = "a subscription") -> SqlError:
    """The error for an expression that is not allowed in a subscription."""
    if isinstance(expression, exp.Placeholder) and expression.name.isidentifier():
        return SqlError(
            f"the variable :{expression.name} is not supported in {where}",
            hint="variables stand in calls of operators and in comparisons",
        )
    if isinstance(expression, exp.Placeholder | exp.Parameter):
        return SqlError(f"parameters are not supported in {where}", hint="write the value itself")
    return SqlError(f"{expression_name(expression)} is not supported in {where}")
