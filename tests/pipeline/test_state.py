"""State: what a bucket holds equals a dictionary, through crashes and lost copies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Column, DecimalType, IntegerType, Relation, StringType
from penstock.flow.memory import MemoryGroups, MemoryRows
from penstock.joins import Group
from penstock.pipeline.state import BucketState, Ledger, Mirror, StoredGroups, StoredRows
from penstock.pipeline.state import ledger as ledgers
from penstock.spaces import Edge, Side
from penstock.testing.local_pipeline import MapInMemory

STOCKS = Relation("stocks", (Column("id", IntegerType()), Column("symbol", StringType())), (0,))
PRICES = Relation("prices", (Column("id", DecimalType(38, 2)), Column("p", IntegerType())), (0,))
EDGE = Edge((Side("stocks", (1,)), Side("prices", (1,))))
OTHER = Edge((Side("stocks", (0,)), Side("prices", (0,))))
BIG = 10**37  # beyond what MessagePack holds
LONG = "x" * 600  # beyond what a mirror takes as a key


class Bucket:
    """A bucket of Spark's state on a machine: it can be rolled back, and lose its mirror."""

    def __init__(self, directory: str) -> None:
        self.stored = MapInMemory()
        self._directory = Path(directory)
        self._mirrors = 0

    @contextmanager
    def batch(self) -> Iterator[BucketState]:
        mirror = Mirror(self._directory / f"mirror-{self._mirrors}")
        with BucketState.opened(self.stored, mirror, rewrite_ratio=0.5) as state:
            yield state

    def lose_mirror(self) -> None:
        self._mirrors += 1


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(str(tmp_path))


keys = st.sampled_from([1, 2, 3, -BIG, BIG, LONG])
rows = st.none() | st.tuples(keys, st.sampled_from(["a", "b", None]))
batches = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "fail", "roll back", "lose the mirror"]),
        st.lists(st.tuples(st.booleans(), keys, rows), max_size=6),
    ),
    max_size=8,
)


class FailedError(Exception):
    pass


def lead(ends: str, bucket: Bucket, work: Callable[[BucketState], None]) -> bool:
    """Do the work of one batch, which ends in one of several ways; whether it counts."""
    before = copy.deepcopy(bucket.stored)
    if ends == "fail":
        with suppress(FailedError), bucket.batch() as state:
            work(state)
            raise FailedError
        assert bucket.stored.entries == before.entries
        return False
    with bucket.batch() as state:
        work(state)
    if ends == "roll back":
        bucket.stored = before
    elif ends == "lose the mirror":
        bucket.lose_mirror()
    return ends != "roll back"


@given(batches)
def test_rows_behave_like_a_dictionary(batches: list[tuple[str, list]]) -> None:  # type: ignore[type-arg]
    memory = MemoryRows()
    with TemporaryDirectory() as directory:
        bucket = Bucket(directory)
        for ends, moves in batches:
            expected = copy.deepcopy(memory)

            def work(state: BucketState, moves=moves, expected=expected) -> None:  # type: ignore[no-untyped-def]
                store = StoredRows(state)
                for first, key, row in moves:
                    relation = STOCKS if first else PRICES
                    assert store.get(relation, (key,)) == expected.get(relation, (key,))
                    store.put(relation, (key,), row)
                    expected.put(relation, (key,), row)
                    assert store.get(relation, (key,)) == row
                for relation in (STOCKS, PRICES):
                    assert dict(store.rows(relation)) == dict(expected.rows(relation))
                store.flush()

            if lead(ends, bucket, work):
                memory = expected
        with bucket.batch() as state:
            for relation in (STOCKS, PRICES):
                assert dict(StoredRows(state).rows(relation)) == dict(memory.rows(relation))


@given(batches)
def test_groups_behave_like_a_dictionary(batches: list[tuple[str, list]]) -> None:  # type: ignore[type-arg]
    memory = MemoryGroups()
    with TemporaryDirectory() as directory:
        bucket = Bucket(directory)
        for ends, moves in batches:
            expected = copy.deepcopy(memory)

            def work(state: BucketState, moves=moves, expected=expected) -> None:  # type: ignore[no-untyped-def]
                store = StoredGroups(state)
                for first, key, row in moves:
                    edge, value = (EDGE, (1,)) if first else (OTHER, (key,))
                    for each in (store, expected):
                        group = each.get(edge, value)
                        if row is None:
                            group.sides[0].pop((key,), None)
                        else:
                            group.sides[0][key,] = row
                        each.put(edge, value, group)
                    assert store.get(edge, value) == expected.get(edge, value)
                for edge in (EDGE, OTHER):
                    assert dict(store.groups(edge)) == dict(expected.groups(edge))
                store.flush()

            if lead(ends, bucket, work):
                memory = expected
        with bucket.batch() as state:
            for edge in (EDGE, OTHER):
                assert dict(StoredGroups(state).groups(edge)) == dict(memory.groups(edge))


def put(bucket: Bucket, *changed: tuple[bytes, bytes | None]) -> None:
    with bucket.batch() as state:
        for key, value in changed:
            state.put(key, value)


def test_a_batch_takes_three_round_trips_whatever_it_changes(bucket: Bucket) -> None:
    put(bucket, *((bytes([i]), b"value") for i in range(100)))
    assert bucket.stored.calls == ["get", "update", "update"]


def test_what_comes_and_goes_in_one_batch_is_never_stored(bucket: Bucket) -> None:
    put(bucket, (b"key", None))
    assert bucket.stored.calls == ["get"]
    assert not bucket.stored.entries


def test_only_a_worker_without_a_copy_reads_the_blobs(bucket: Bucket) -> None:
    put(bucket, (b"a", b"1"))
    put(bucket, (b"b", b"2"))
    assert "iterator" not in bucket.stored.calls
    bucket.lose_mirror()
    with bucket.batch() as state:
        assert list(state.scan(b""))[-2:] == [(b"a", b"1"), (b"b", b"2")]
    assert bucket.stored.calls.count("iterator") == 1


def test_changes_are_dropped_once_they_outweigh_the_bucket(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "SMALL_BYTES", 1000)
    for i in range(100):
        put(bucket, (b"key", b"%100d" % i), (b"other", b"%100d" % -i))
    blobs = [key for key in bucket.stored.entries if key[0] == "blob"]
    assert 1 <= len(blobs) <= 10
    assert dict(Ledger(bucket.stored).entries()) == {
        b"key": b"%100d" % 99,
        b"other": b"%100d" % -99,
    }


def test_large_changes_are_written_in_parts(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "BLOB_BYTES", 1000)
    put(bucket, *((bytes([i]), bytes(100)) for i in range(50)))
    blobs = [value for key, value in bucket.stored.entries.items() if key[0] == "blob"]
    assert len(blobs) > 3
    assert max(map(len, blobs)) < 2000


def test_groups_in_hand_are_those_that_count() -> None:
    with TemporaryDirectory() as directory, Bucket(directory).batch() as state:
        store = StoredGroups(state)
        store.put(EDGE, (1,), Group(({(1,): (1, "a")}, {})))
        store.put(EDGE, (1,), Group())
        assert list(store.groups(EDGE)) == []
