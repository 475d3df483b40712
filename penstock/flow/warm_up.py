"""Calls every kernel of the fast gear with all argument types that occur.

Kernels are compiled for the types they are called with, so this runs a few events of every kind
through the same functions as a batch of the pipeline. It runs in a separate process
(`penstock.kernels.preparation`); a test checks that batches then have nothing left to compile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.catalog import Catalog, Relation, Row
from penstock.documents.document import parse_document
from penstock.documents.fast_matching import FastMatcher
from penstock.documents.xmltable import ColumnPath, table_view
from penstock.errors import ChangeError, ExtraError
from penstock.flow.exchange import Spread, StageInput, StageOutput
from penstock.flow.index import Index
from penstock.flow.kinds import Events, Span
from penstock.flow.new_points import NewPoints
from penstock.flow.operator_values import OperatorRuntime
from penstock.flow.plan import FAST
from penstock.flow.stage import BatchView, advance_stage
from penstock.flow.stages import STAGES
from penstock.joins import Group, GroupStep, Scheme, make_scheme
from penstock.kernels.msgpack_bins import packed_bins, sort_stretches
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.matching.segment import Policy
from penstock.matching.strategies import EACH
from penstock.messages import EVERYONE, Position
from penstock.routing.regions import RegionIndex
from penstock.spaces import Edge
from penstock.sql import bind, parse_relation
from penstock.xml_text import load_lxml

TABLES = (
    """CREATE TABLE warm_l (id BIGINT PRIMARY KEY, name VARCHAR, day DATE, v INTEGER,
    price DECIMAL(9,2), w DOUBLE, at TIMESTAMP, is_on BOOLEAN)""",
    "CREATE TABLE warm_r (name VARCHAR, v INTEGER, PRIMARY KEY (name, v))",
    "CREATE STREAM warm_s (name VARCHAR, v INTEGER)",
)
QUERIES = (
    "SELECT * FROM warm_l WHERE v > {0} AND w < 9.5",
    "SELECT * FROM warm_l WHERE name LIKE 'a{0}%' AND price > {0} AND day > DATE '2024-01-01'",
    "SELECT id, upper(name) AS n, price * 2 AS p FROM warm_l WHERE v * 2 > 3 AND w / 2 < {0}",
    "SELECT v + 1 AS more FROM warm_s WHERE v % 7 > {0}",
    "SELECT * FROM warm_s WHERE v BETWEEN {0} AND 7 OR name = 'b'",
    "SELECT * FROM warm_l l JOIN warm_r r ON l.name = r.name WHERE l.v > {0} AND r.v < 9",
    "SELECT * FROM warm_l l JOIN warm_r r ON l.v = r.v WHERE r.name > 'a{0}' AND l.name < 'x'",
    "SELECT * FROM warm_l x JOIN warm_l y ON x.name = y.name AND x.day = y.day WHERE x.v > {0}",
    "SELECT * FROM warm_s s JOIN warm_l l ON s.name = l.name WHERE s.v > {0} AND l.w > 1.5",
)
_SUBSCRIPTIONS, _ROWS, _BUCKETS = 20, 80, 2
_STRATEGIES = ("scan", "lanes", "boxes", *EACH)
_FEW, _MANY = 8, 200
"""Batch sizes: strategies that take one event at a time are considered up to 64."""


def warm_up() -> None:
    catalog = Catalog()
    for offset, sql in enumerate(TABLES):
        catalog.add(parse_relation(sql), offset)
    index = Index(catalog)
    for number in range(_SUBSCRIPTIONS):
        for place, sql in enumerate(QUERIES):
            index.add(10 + 10 * number + place, bind(sql.format(number), catalog))
    _run_batches(catalog, index)
    for edge in index.edges:
        _run_group(edge, catalog, index)
    for relation in catalog:
        for strategy in _STRATEGIES:
            _match(relation, strategy)
    _merge_messages()
    _match_documents()


def _events() -> list[bytes]:
    """Inserts, updates and deletes of all tables, with values and NULLs of all types."""
    found: list[dict[str, object]] = []
    for i in range(_ROWS):
        name = f"a{i % 5}" if i % 7 else None
        row = {"id": i, "name": name, "day": "2024-02-29", "v": i % 9, "price": "3.25"}
        more = {"w": i / 4, "at": "2024-02-29 10:00:00", "is_on": bool(i % 2)}
        found.append({"op": "insert", "table": "warm_l", "row": {**row, **more}})
        key = {"name": f"a{i % 5}", "v": i % 9}
        found.append({"op": "upsert", "table": "warm_r", "row": key})
        found.append({"op": "insert", "table": "warm_s", "row": {"name": name, "v": i % 9}})
        if i % 3 == 0:
            found.append({"op": "update", "table": "warm_l", "row": {"id": i, "v": None}})
        if i % 4 == 0:
            found.append({"op": "delete", "table": "warm_r", "row": key})
    return [json.dumps(event).encode() for event in found]


def _run_batches(catalog: Catalog, index: Index) -> None:
    """Two batches: the second one finds rows and groups in the stores."""
    source, spread, bodies = _Source(catalog, index), Spread(tuple(range(_BUCKETS))), _events()
    entries = {(stage.name, b): _Entries() for stage in STAGES for b in spread.buckets}
    for first in (0, len(bodies) // 2):
        part = bodies[first : first + len(bodies) // 2]
        span = Span(1000 + first, 1000 + first + len(part), 1000, 1000, 1000)
        inputs = {0: StageInput(0, span, Events(list(range(span.start, span.end)), part))}
        for stage in STAGES:
            out = StageOutput(spread)
            for bucket, given in inputs.items():
                store = stage.open_store(entries[stage.name, bucket])
                view = BatchView(source, span, spread, FAST)
                out.extend(advance_stage(stage, given, store, view))
                if store is not None:
                    store.flush()
            inputs = dict(out.inputs(span))


@dataclass(frozen=True)
class _Source:
    """An `IndexSource` in which nothing is new."""

    tables: Catalog
    index: Index

    @property
    def edges(self) -> Mapping[str, Edge]:
        return {edge.name: edge for edge in self.index.edges}

    def catalog(self, _end: int) -> Catalog:
        return self.tables

    def index_at(self, _span: Span) -> Index:
        return self.index

    def new_points(self, _span: Span) -> NewPoints:
        return NewPoints(self.index)

    def operators(self) -> OperatorRuntime | None:
        return None

    def not_applied(self, _span: Span) -> Mapping[int, ChangeError]:
        return {}

    def scheme(self) -> Scheme:
        return make_scheme("ref-sj-gap")

    def needs(self, _relation: Relation) -> bool:
        return True


class _Entries:
    """The state of one partition in memory: a `ManyEntries`."""

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def get_many(self, keys: list[bytes]) -> dict[bytes, bytes]:
        return {key: self._entries[key] for key in keys if key in self._entries}

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = value

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self._entries.update(entries)

    def drop_many(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._entries.pop(key, None)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(one for one in self._entries.items() if one[0].startswith(prefix)))

    def groups(self, prefixes: Iterable[bytes]) -> tuple[list[tuple[bytes, bytes]], list[int]]:
        found = [list(self.scan(prefix)) for prefix in prefixes]
        return [one for group in found for one in group], list(map(len, found))


def _run_group(edge: Edge, catalog: Catalog, index: Index) -> None:
    """Steps of one group, in large and small batches, and initial content: the plain gear of joins
    uses kernels, too, if there are many subscriptions."""
    scheme, spaces, group = make_scheme("ref-sj-gap"), index.on_edge(edge), Group()
    relations = [catalog[side.table] for side in edge.sides]
    steps = [
        GroupStep(i, 1 + side, side, (i,), None, _row(relation, i))
        for i in range(_FEW)
        for side, relation in enumerate(relations)
    ]
    scheme.run(group, steps, spaces)
    for step in steps[:2]:
        scheme.run(group, [step._replace(offset=_FEW, old=step.new, new=None)], spaces)
    for points in spaces:
        list(scheme.initial(Position(0, 0), [group], points))
        RegionIndex(points).within(EVERYONE, _row(relations[points.space.side], 1))


def _match(relation: Relation, strategy: str) -> None:
    """One strategy of the matcher, on few and many events, with and without dead boxes."""
    matcher = LaneMatcher(relation, threads=1, background=False, policy=Policy(0, strategy))
    catalog = Catalog()
    catalog.add(relation, 0)
    sql = f"SELECT * FROM {relation.name} WHERE name > 'a{{0}}' AND v < {{0}} OR v = {{0}}"
    for number in range(_SUBSCRIPTIONS):
        query = bind(sql.format(number), catalog)
        matcher.insert(number, [branch[0] for branch in query.branches])
    for alive in (True, False):
        for count in (_FEW, _MANY):
            rows = [_row(relation, i) for i in range(count)]
            batch = EventBatch.of_stored(relation, rows, set(range(len(relation.columns))))
            matcher.match_batch(batch)
            matcher.any_match(batch)
        matcher.match(_row(relation, 1))
        if alive:
            matcher.remove(1)


def _row(relation: Relation, i: int) -> Row:
    values: dict[str, str | int] = {"name": f"a{i % 5}", "v": i % 9}
    return tuple(values.get(column.name) for column in relation.columns)


def _match_documents() -> None:
    """All kinds of tests of values. Without lxml there are no documents to match."""
    try:
        load_lxml()
    except ExtraError:
        return
    tests = ("a[. = 'x']", "a[. != 'x']", "a[. > 1]//b", "a/@b", "a[b and .//c = 'y']")
    paths = [f"//l{number}//{test}" for number in range(40) for test in tests]
    columns = [ColumnPath("v", "VARCHAR", ".")]
    matcher = FastMatcher([table_view(path, columns).pattern for path in paths])
    text = "<l1><l2><a b='1'>x<b>2</b><c>y</c></a></l2></l1>"
    for document in (text, f"<n>{text * 20}</n>"):
        matcher.matching(parse_document(document))


def _merge_messages() -> None:
    """The sink's order of the messages of one position, in mapped files and in memory."""
    data, ends, order = np.frombuffer(b"banana", np.uint8), np.array([0, 2, 4, 6]), np.arange(3)
    mapped = np.frombuffer(ends.tobytes(), np.int64)
    for some, where in ((data, mapped), (data.copy(), ends)):
        sort_stretches(some, where, order, np.array([0]), np.array([3]))
        packed_bins(some, where, order)
