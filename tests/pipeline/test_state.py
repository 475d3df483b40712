"""State adapters: what they hold equals a dictionary, with as few round trips as possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Column, DecimalType, IntegerType, Relation, Row, RowKey, StringType
from penstock.engine.memory import MemoryGroups, MemoryRows
from penstock.joins import Edge, Group, Side
from penstock.pipeline.state import StoredGroups, StoredRows
from tests.pipeline.dry import FakeMap

STOCKS = Relation("stocks", (Column("id", IntegerType()), Column("symbol", StringType())), (0,))
PRICES = Relation("prices", (Column("id", DecimalType(38, 2)), Column("p", IntegerType())), (0,))
EDGE = Edge((Side("stocks", (1,)), Side("prices", (1,))))
OTHER = Edge((Side("stocks", (0,)), Side("prices", (0,))))
BIG = 10**37  # beyond what MessagePack holds


def contents(store: StoredRows | MemoryRows, relation: Relation) -> dict[RowKey, Row]:
    return dict(store.rows(relation))


keys = st.sampled_from([1, 2, 3, -BIG, BIG])
rows = st.none() | st.tuples(keys, st.sampled_from(["a", "b", None]))
moves = st.lists(
    st.tuples(st.sampled_from(["put", "get", "look", "flush"]), st.booleans(), keys, rows),
    max_size=30,
)


@given(moves)
def test_rows_behave_like_a_dictionary(moves: list[tuple[str, bool, int, Row | None]]) -> None:
    stored, memory = FakeMap(), MemoryRows()
    store = StoredRows(stored)
    for move, first, key, row in moves:
        relation = STOCKS if first else PRICES
        match move:
            case "put":
                store.put(relation, (key,), row)
                memory.put(relation, (key,), row)
            case "get":
                assert store.get(relation, (key,)) == memory.get(relation, (key,))
            case "look":
                assert contents(store, relation) == contents(memory, relation)
            case "flush":
                store.flush()
                store = StoredRows(stored)
    store.flush()
    for relation in (STOCKS, PRICES):
        assert contents(StoredRows(stored), relation) == contents(memory, relation)


@given(moves)
def test_groups_behave_like_a_dictionary(moves: list[tuple[str, bool, int, Row | None]]) -> None:
    stored, memory = FakeMap(), MemoryGroups()
    store = StoredGroups(stored)
    for move, first, key, row in moves:
        edge = EDGE if first else OTHER
        match move:
            case "put":
                for each in (store, memory):
                    group = each.get(edge, (key,))
                    group.sides[0].clear()
                    if row is not None:
                        group.sides[0][key,] = row
                    each.put(edge, (key,), group)
            case "get":
                assert store.get(edge, (key,)) == memory.get(edge, (key,))
            case "look":
                assert dict(store.groups(edge)) == dict(memory.groups(edge))
            case "flush":
                store.flush()
                store = StoredGroups(stored)
    store.flush()
    for edge in (EDGE, OTHER):
        assert dict(StoredGroups(stored).groups(edge)) == dict(memory.groups(edge))


def test_an_entry_is_read_once_and_written_once() -> None:
    stored = FakeMap()
    store = StoredRows(stored)
    for symbol in "abc":
        assert store.get(STOCKS, (1,)) is None or symbol > "a"
        store.put(STOCKS, (1,), (1, symbol))
    assert stored.calls == ["get"]
    store.flush()
    assert stored.calls == ["get", "update"]
    store.flush()
    assert stored.calls == ["get", "update"]


def test_what_comes_and_goes_in_one_batch_is_never_stored() -> None:
    stored = FakeMap()
    store = StoredGroups(stored)
    group = store.get(EDGE, (1,))
    group.sides[0][1,] = (1, "a")
    store.put(EDGE, (1,), group)
    store.put(EDGE, (1,), Group())
    store.flush()
    assert stored.calls == ["get"]


def test_all_entries_are_read_in_one_sweep() -> None:
    stored = FakeMap()
    store = StoredRows(stored)
    for key in range(5):
        store.put(STOCKS, (key,), (key, "a"))
        store.put(PRICES, (key,), (key, 1))
    store.flush()
    stored.calls.clear()
    store = StoredRows(stored)
    store.put(STOCKS, (9,), (9, "b"))
    store.put(STOCKS, (0,), None)
    assert sorted(contents(store, STOCKS)) == [(1,), (2,), (3,), (4,), (9,)]
    assert sorted(contents(store, PRICES)) == [(0,), (1,), (2,), (3,), (4,)]
    assert store.get(PRICES, (4,)) == (4, 1)
    assert store.get(PRICES, (5,)) is None
    assert stored.calls == ["get", "get", "iterator"]
