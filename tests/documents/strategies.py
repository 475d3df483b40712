"""Random documents and patterns over few labels, so that they meet often."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.documents.document import Document, parse_document
from penstock.documents.patterns import (
    Axis,
    Operator,
    PatternNode,
    Predicate,
    TreePattern,
    canonical_pattern,
)

LABELS = "abc"
VALUES = ("1", "2", "x")


@st.composite
def elements(draw: st.DrawFn, depth: int = 4) -> str:
    label = draw(st.sampled_from(LABELS))
    attributes = draw(st.dictionaries(st.sampled_from("pq"), st.sampled_from(VALUES), max_size=2))
    shown = "".join(f' {name}="{value}"' for name, value in attributes.items())
    parts = [draw(st.sampled_from(("", "", *VALUES)))]
    if depth > 0:
        for _ in range(draw(st.integers(0, 3))):
            parts += [draw(elements(depth - 1)), draw(st.sampled_from(("", "1")))]
    return f"<{label}{shown}>{''.join(parts)}</{label}>"


@st.composite
def documents(draw: st.DrawFn, depth: int = 4) -> Document:
    return parse_document(draw(elements(depth)))


predicates = st.one_of(
    st.builds(Predicate, st.just(Operator.EQ), st.sampled_from(VALUES)),
    st.builds(Predicate, st.just(Operator.NE), st.sampled_from(VALUES)),
    st.builds(Predicate, st.sampled_from(list(Operator)), st.sampled_from((1.0, 2.0))),
)


@st.composite
def patterns(draw: st.DrawFn, most: int = 4, odds: int = 4) -> TreePattern:
    """`odds`: one node in so many has a predicate."""
    count = draw(st.integers(1, most))
    nodes: list[PatternNode] = []
    path: list[int] = []
    for position in range(count):
        inner = [p for p in path if not nodes[p].label.startswith("@")]
        parent = draw(st.sampled_from(inner)) if position else -1
        is_attribute = position > 0 and draw(st.integers(0, 4)) == 0
        label = f"@{draw(st.sampled_from('pq'))}" if is_attribute else draw(st.sampled_from(LABELS))
        has_predicate = draw(st.integers(1, odds)) == odds
        nodes.append(
            PatternNode(
                label,
                parent,
                draw(st.sampled_from(Axis)),
                draw(predicates) if has_predicate else None,
                val=draw(st.booleans()),
                cont=not is_attribute and draw(st.integers(0, 3)) == 0,
            )
        )
        path = [*path[: path.index(parent) + 1 if parent >= 0 else 0], position]
    return canonical_pattern(TreePattern(tuple(nodes)))[0]
