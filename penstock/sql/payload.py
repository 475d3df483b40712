"""Selections with a payload: a query over one table, run as a join of the table's two halves.

A subscription whose rows have a bulky column should not be sent it again whenever another column of
the row changes (Chandramouli and Yang, 2008, appendix I). This is requested by a hint right after
SELECT, so every process binds the same text to the same query:

    SELECT /*+ payload(photo) */ id, rating, photo FROM products WHERE rating >= 4

To SQL this is a comment. It changes how rows are sent, not what the query returns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import base_name
from penstock.catalog.payload_split import Halves, halves_of, is_split, split_names, whole_name
from penstock.errors import SqlError
from penstock.predicates.boxes import Box
from penstock.query import Join, Node, Output, Query
from penstock.sql.source import Source

_NAME = re.compile(r'"([^"]+)"|(\w+)')
_HINT = re.compile(
    rf"\+\s*payload\s*\(\s*(?:{_NAME.pattern})(\s*,\s*(?:{_NAME.pattern}))*\s*\)\s*", re.IGNORECASE
)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def hinted(sql: str, columns: Sequence[str]) -> str:
    """The text of a query with a hint that names its payload columns."""
    source = Source(sql)
    if source.word(0) != "SELECT":
        raise source.refuse("a payload needs a SELECT", source.tokens[0])
    if payload_columns(source):
        raise source.refuse("the payload is already named in a hint", source.tokens[0])
    if any('"' in name or "*/" in name for name in columns):
        raise SqlError(f"{', '.join(columns)} cannot be a payload", hint="give names of columns")
    names = [name if _PLAIN_NAME.fullmatch(name) else f'"{name}"' for name in columns]
    end = source.tokens[0].end + 1
    return f"{sql[:end]} /*+ payload({', '.join(names)}) */{sql[end:]}"


def payload_columns(source: Source) -> list[str]:
    """The payload columns named by a hint; none, if there is no hint."""
    hints = [comment for comment in source.tokens[0].comments if comment.startswith("+")]
    if not hints:
        return []
    if len(hints) > 1 or not _HINT.fullmatch(hints[0]):
        raise source.refuse(
            f"the hint /*{hints[0]}*/ is not understood",
            source.tokens[0],
            hint="a hint is written /*+ payload(column) */",
        )
    names = hints[0].partition("(")[2]
    return [quoted or plain for quoted, plain in _NAME.findall(names)]


def in_halves(source: Source, query: Query) -> Query:
    """The query transformed according to its hint: over the table's halves, or unchanged."""
    names = payload_columns(source)
    if not names:
        return query
    with source.pointing_at(source.tokens[0]):
        return _halved(query, names)


def _halved(query: Query, names: Sequence[str]) -> Query:
    if len(query.nodes) > 1:
        raise SqlError(
            "a payload can be named for one table only",
            detail="in a join, every table's rows travel apart from the others already",
        )
    node = query.nodes[0]
    halves = halves_of(node.relation, _positions(query, node.relation, names))
    digest = halves.columns[0]
    return replace(
        query,
        nodes=(Node(node.alias, halves.narrow), Node(f"payload of {node.alias}", halves.payload)),
        joins=(Join(0, 1, ((digest, 0),)),),
        branches=tuple(_parted(branch[0], halves) for branch in query.branches),
        outputs=tuple(_placed(output, halves) for output in query.outputs),
    )


def _positions(query: Query, relation: Relation, names: Sequence[str]) -> tuple[int, ...]:
    found: set[int] = set()
    for name in names:
        position = relation.positions.get(name.lower())
        if position is None:
            raise SqlError(f"{relation.kind} {base_name(relation.name)} has no column {name}")
        if position in relation.key:
            raise SqlError(f"{name} is part of the primary key, and cannot be a payload")
        if all(output.column != position for output in query.outputs):
            raise SqlError(f"the payload {name} is not selected", hint=f"add {name} to the SELECT")
        found.add(position)
    return tuple(sorted(found))


def _parted(box: Box, halves: Halves) -> tuple[Box, Box]:
    """The conditions on each half."""
    columns = halves.columns
    narrow = tuple((c, interval) for c, interval in box if c not in columns)
    payload = tuple((columns.index(c) + 1, i) for c, i in box if c in columns)
    return narrow, payload


def _placed(output: Output, halves: Halves) -> Output:
    if output.column not in halves.columns:
        return output
    return Output(output.label, 1, halves.columns.index(output.column) + 1)


def whole(query: Query, catalog: Catalog) -> tuple[Query, tuple[str, ...]]:
    """The query before it was split, and the names of its payload columns."""
    name = query.nodes[0].relation.name
    if not is_split(name):
        return query, ()
    halves = split_names(name, catalog[whole_name(name)])
    columns = halves.columns
    entire = replace(
        query,
        nodes=(Node(query.nodes[0].alias, halves.whole),),
        joins=(),
        branches=tuple(
            (tuple(sorted([*narrow, *((columns[c - 1], i) for c, i in payload)])),)
            for narrow, payload in query.branches
        ),
        outputs=tuple(
            Output(o.label, 0, columns[o.column - 1]) if o.node else o for o in query.outputs
        ),
    )
    return entire, tuple(halves.whole.columns[i].name for i in columns)
