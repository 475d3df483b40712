"""Random stories whose conditions call operators, mixed with comparisons and expressions."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.stories import Shape, TableSpec, predicates

CALLS: dict[str, list[str]] = {
    "BIGINT": ["isOdd({0})", "near({0}, 1)", "near({0}, {1})", "isAbsent({0})", "isLucky({0})"],
    "DOUBLE": ["atLeast({0}, 0.5)", "atLeast({0}, 1)"],
    "DECIMAL(6,2)": ["atLeast({0}, 0.01)"],
    "VARCHAR": ["hasLetter({0}, 'a')", "hasLetter({0}, 'b')"],
    "VARCHAR(9)": ["hasLetter({0}, '5')"],
}
EXPRESSIONS = ["{0}.k < {0}.j", "{0}.k + {0}.j > 1", "abs({0}.k - 2) = 1"]


@st.composite
def call_predicates(draw: st.DrawFn, nodes: list[TableSpec]) -> str:
    form = draw(st.sampled_from(["call", "call", "call", "compare", "compute"]))
    if form == "compare":
        return draw(predicates(nodes))
    node = draw(st.integers(0, len(nodes) - 1))
    if form == "compute":
        return draw(st.sampled_from(EXPRESSIONS)).format(f"x{node}")
    kinds = {name: "BIGINT" if name in "kj" else kind for name, kind in nodes[node].types.items()}
    column = draw(st.sampled_from([name for name, kind in kinds.items() if kind in CALLS]))
    other = draw(st.sampled_from(["k", "j", "id"]))
    call = draw(st.sampled_from(CALLS[kinds[column]]))
    return call.format(f"x{node}.{column}", f"x{node}.{other}")


OVER_ONE = Shape(tables=(1, 2), nodes=(1, 1), predicates=call_predicates)
OVER_SEVERAL = Shape(tables=(1, 3), nodes=(2, 3), predicates=call_predicates)
OVER_ANY = Shape(tables=(1, 3), nodes=(1, 3), predicates=call_predicates)


@st.composite
def few_predicates(draw: st.DrawFn, nodes: list[TableSpec]) -> str:
    """So few that most subscriptions have the same calls, under other conditions."""
    node = draw(st.integers(0, len(nodes) - 1))
    call = draw(st.sampled_from(["isOdd({0}.k)", "isOdd({0}.k)", "isLucky({0}.j)"]))
    more = draw(
        st.sampled_from(["", "", " AND {0}.j > 0", " AND {0}.k <> 1", " AND {0}.k < {0}.j"])
    )
    return (call + more).format(f"x{node}")


ALIKE = Shape(tables=(1, 2), nodes=(1, 2), predicates=few_predicates)
"""Subscriptions that share calls, relations and joins, and come when rows are there."""
