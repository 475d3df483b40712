"""Calls every kernel of the fast gear, with all types of arguments that they get.

Kernels are compiled for the types they are called with, so this leads a few events of every kind
through the same functions as a batch of the pipeline. It runs in a process of its own
(`penstock.kernels.preparation`); a test checks that batches then find nothing left to compile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from penstock.catalog import Catalog, Relation, Row
from penstock.flow.columnar import PlainColumns, column_reader
from penstock.flow.group_steps import FIRST_STEP
from penstock.flow.index import Index
from penstock.flow.packed.delta_steps import packed_steps
from penstock.flow.packed.rows import PackedDeltas, SentChanges, event_deltas, packed_forms
from penstock.flow.packed.selection_messages import packed_selection_messages
from penstock.joins import Group, GroupStep, make_scheme
from penstock.joins.packed import MemberPlaces, Members, PackedJoins, SentSteps
from penstock.joins.packed.groups import GroupRun
from penstock.kernels.arrays import Flags
from penstock.kernels.msgpack_bins import packed_bins, sort_stretches
from penstock.kernels.packed_values import Packed
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.matching.segment import Policy
from penstock.matching.strategies import EACH
from penstock.messages import EVERYONE, Position, event_template
from penstock.routing.regions import RegionIndex
from penstock.spaces import Edge
from penstock.sql import bind, parse_relation

TABLES = (
    """CREATE TABLE warm_l (id BIGINT PRIMARY KEY, name VARCHAR, day DATE, v INTEGER,
    price DECIMAL(9,2), w DOUBLE, at TIMESTAMP, is_on BOOLEAN)""",
    "CREATE TABLE warm_r (name VARCHAR, v INTEGER, PRIMARY KEY (name, v))",
    "CREATE STREAM warm_s (name VARCHAR, v INTEGER)",
)
QUERIES = (
    "SELECT * FROM warm_l WHERE v > {0} AND w < 9.5",
    "SELECT * FROM warm_l WHERE name LIKE 'a{0}%' AND price > {0} AND day > DATE '2024-01-01'",
    "SELECT * FROM warm_s WHERE v BETWEEN {0} AND 7 OR name = 'b'",
    "SELECT * FROM warm_l l JOIN warm_r r ON l.name = r.name WHERE l.v > {0} AND r.v < 9",
    "SELECT * FROM warm_l l JOIN warm_r r ON l.v = r.v WHERE r.name > 'a{0}' AND l.name < 'x'",
    "SELECT * FROM warm_l x JOIN warm_l y ON x.name = y.name AND x.day = y.day WHERE x.v > {0}",
    "SELECT * FROM warm_s s JOIN warm_l l ON s.name = l.name WHERE s.v > {0} AND l.w > 1.5",
)
_SCHEME = "ref-sj-gap"
_SUBSCRIPTIONS, _ROWS, _BUCKETS = 20, 90, 8
_STRATEGIES = ("scan", "lanes", "boxes", *EACH)
_FEW, _MANY = 8, 200
"""Events at once: strategies for one event at a time compete up to 64."""


def warm_up() -> None:
    catalog = Catalog()
    for offset, sql in enumerate(TABLES):
        catalog.add(parse_relation(sql), offset)
    index = Index(catalog)
    for number in range(_SUBSCRIPTIONS):
        for place, sql in enumerate(QUERIES):
            index.add(10 + 10 * number + place, bind(sql.format(number), catalog))
    _run_batches(catalog, index)
    for relation in catalog:
        for strategy in _STRATEGIES:
            _match(relation, strategy)
    _merge_messages()


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
    rows, groups, plain_groups, bodies = _Rows(), _Groups(), _Groups(), _events()
    for first in (0, len(bodies) // 2):
        part = bodies[first : first + len(bodies) // 2]
        offsets = range(1000 + first, 1000 + first + len(part))
        read, _ = column_reader(catalog).read(list(offsets), part)
        sent = [piece for columns in read for piece in _decode(columns, index)]
        changes = SentChanges([(count, data) for kind, count, data in sent if kind == "changes"])
        steps = [(count, data) for kind, count, data in sent if kind == "steps"]
        forms = packed_forms(catalog)
        for deltas, _ in changes.carry_out(forms, rows):
            selections = index.selections(deltas.relation)
            if selections is not None:
                packed_selection_messages(deltas, selections)
            steps += _steps(deltas, index)
        arrived = SentSteps(steps)
        edges = {edge.name: edge for edge in index.edges}
        PackedJoins(make_scheme(_SCHEME), forms, groups, index.on_edge).run(arrived, edges)
        _run_groups(arrived, edges, index, plain_groups)


def _run_groups(sent: SentSteps, edges: Mapping[str, Edge], index: Index, store: _Groups) -> None:
    """The same steps group by group, many at once and one by one, and what new points start with:
    the kernels of the scheme are used by its plain gear too."""
    for number, name in enumerate(sent.edges):
        edge = edges[name]
        spaces = index.on_edge(edge)
        run = GroupRun.of(edge, sent.data, *sent.of_edge(number), store)
        run.store(store)
        scheme, groups = make_scheme(_SCHEME), []
        for group, steps in run.objects():
            scheme.run(group, steps, spaces)
            scheme.run(group, list(_in_and_out(group)), spaces)
            groups.append(group)
        for points in spaces:
            list(scheme.initial(Position(0, 0), groups, points))
            for row in (row for group in groups for row in group.sides[points.space.side].values()):
                RegionIndex(points).within(EVERYONE, row)
                break


def _in_and_out(group: Group) -> Iterator[GroupStep]:
    """Steps that take a row of a group away and bring it back."""
    for side, rows in enumerate(group.sides):
        for key, row in list(rows.items())[:1]:
            yield GroupStep(0, 1 + side, side, key, row, None)
            yield GroupStep(1, 1 + side, side, key, None, row)


def _decode(columns: PlainColumns, index: Index) -> Iterator[tuple[str, int, bytes]]:
    """What the first stage sends on: changes of tables, steps of streams."""
    if columns.relation.is_stream:
        selections = index.selections(columns.relation)
        assert selections is not None
        chosen = np.flatnonzero(
            selections.any_match_in(columns.batch(selections.mentioned_columns))
        )
        columns.packed_messages(chosen, event_template(FIRST_STEP, selections.space.id, EVERYONE))
        columns.packed_events()
        yield from (("steps", *one) for one in _steps(event_deltas(columns), index))
    else:
        order = np.argsort(columns.key_hashes() % _BUCKETS, kind="stable")
        yield "changes", *_chunk(columns.packed_changes(order))


def _steps(deltas: PackedDeltas, index: Index) -> list[tuple[int, bytes]]:
    edges = index.edges_of(deltas.relation)
    return [_chunk(packed_steps(deltas, edge, _BUCKETS).rows) for edge in edges]


def _chunk(packed: Packed) -> tuple[int, bytes]:
    return len(packed), packed.array(0, len(packed))


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


def _merge_messages() -> None:
    """The sink's order of the messages of one position, in mapped files and in memory."""
    data, ends, order = np.frombuffer(b"banana", np.uint8), np.array([0, 2, 4, 6]), np.arange(3)
    mapped = np.frombuffer(ends.tobytes(), np.int64)
    for some, where in ((data, mapped), (data.copy(), ends)):
        sort_stretches(some, where, order, np.array([0]), np.array([3]))
        packed_bins(some, where, order)


class _Rows:
    """Packed rows in memory."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bytes], bytes] = {}

    def packed(self, relation: Relation, keys: list[bytes]) -> tuple[list[bytes], Flags]:
        found = [self._entries.get((relation.name, key)) for key in keys]
        is_there = np.array([one is not None for one in found], np.bool_)
        return [one for one in found if one is not None], is_there

    def keep(self, relation: Relation, keys: Iterable[bytes], entries: Iterable[bytes]) -> None:
        for key, entry in zip(keys, entries, strict=True):
            self._entries[relation.name, key] = entry

    def drop(self, relation: Relation, keys: Iterable[bytes]) -> None:
        for key in keys:
            del self._entries[relation.name, key]


class _Groups:
    """Packed groups in memory."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bytes], dict[tuple[int, bytes], bytes]] = {}

    def members(self, edge: Edge, values: Iterable[bytes]) -> Members:
        found = [self._entries.get((edge.name, value), {}) for value in values]
        sides = [side for group in found for side, _ in group]
        counts = np.array([len(group) for group in found], np.int64)
        entries = [entry for group in found for entry in group.values()]
        return Members(entries, np.array(sides, np.int64), counts)

    def keep(self, edge: Edge, places: MemberPlaces, entries: Iterable[bytes]) -> None:
        for place, entry in zip(_places(places), entries, strict=True):
            value, side, key = place
            self._entries.setdefault((edge.name, value), {})[side, key] = entry

    def drop(self, edge: Edge, places: MemberPlaces) -> None:
        for value, side, key in _places(places):
            del self._entries[edge.name, value][side, key]


def _places(places: MemberPlaces) -> Iterator[tuple[bytes, int, bytes]]:
    numbers = zip(places.groups.tolist(), places.sides.tolist(), places.keys, strict=True)
    return ((places.values[group], side, key) for group, side, key in numbers)
