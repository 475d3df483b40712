"""Expressions of one row: their types, and their values for many rows.

DuckDB computes them, many rows at a time: it defines what an expression means, so the values are
right by construction, with SQL's NULLs, roundings and types.
"""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.expressions.evaluation import compute, compute_columns, constant_value, type_name
    from penstock.expressions.structure import read_structure

__all__ = ["compute", "compute_columns", "constant_value", "read_structure", "type_name"]

# Loaded on first use: most processes meet no expression, and DuckDB takes a while to load.
__getattr__ = lazy_door(
    __name__,
    {
        "evaluation": "compute compute_columns constant_value type_name",
        "structure": "read_structure",
    },
)
