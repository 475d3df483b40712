"""Batches of events: from rows, arrays and Arrow, always the same keys."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
)
from penstock.errors import ChangeError
from penstock.matching import EventBatch
from penstock.matching.key_arrays import double_keys

ALL = Relation(
    "all_types",
    (
        Column("i", IntegerType()),
        Column("f", DoubleType()),
        Column("d", DecimalType(9, 2)),
        Column("long", DecimalType(38, 0)),
        Column("s", StringType()),
        Column("b", BooleanType()),
        Column("day", DateType()),
        Column("at", TimestampType(zoned=True)),
    ),
    (),
)


def test_arrow_and_rows_give_the_same_keys() -> None:
    values: dict[str, list[object]] = {
        "i": [1, None, -5],
        "f": [-0.0, math.nan, None],
        "d": [Decimal("1.50"), None, Decimal("-2.25")],
        "long": [Decimal(10**30), Decimal(-3), None],
        "s": ["x", None, "x"],
        "b": [True, None, False],
        "day": [date(2024, 2, 29), None, date(1969, 12, 31)],
        "at": [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1969, 1, 1, tzinfo=UTC)],
    }
    rows = [ALL.store_row({n: v[i] for n, v in values.items()}) for i in range(3)]
    by_rows = EventBatch.of_rows(ALL, rows)
    by_arrow = EventBatch.of_arrow(ALL, pa.RecordBatch.from_pydict(values))
    of_stored = EventBatch.of_stored(ALL, rows)
    assert [of_stored.keys(i) for i in range(3)] == [by_rows.keys(i) for i in range(3)]
    for i in range(3):
        assert by_rows.keys(i) == by_arrow.keys(i)
    assert by_rows.row(2) == rows[2]
    assert by_rows.slice(1, 9).keys(0) == by_rows.keys(1)
    assert by_rows.take(np.array([2, 0])).keys(0) == by_rows.keys(2)


def test_dictionary_arrow_and_missing_columns() -> None:
    words = pa.array(["x", "y", None, "x"]).dictionary_encode()
    batch = EventBatch.of_arrow(ALL, pa.RecordBatch.from_arrays([words], ["S"]))
    assert [batch.keys(i)[4] for i in range(4)] == ["x", "y", None, "x"]
    assert batch.keys(0)[0] is None
    assert batch.keys(0)[3] is None


def test_stored_rows_of_which_some_columns_matter() -> None:
    relation = Relation("things", (Column("n", IntegerType()), Column("s", StringType())), ())
    rows = [(1, "a"), (None, "b"), (3, None)]
    whole, narrow = EventBatch.of_stored(relation, rows), EventBatch.of_stored(relation, rows, {1})
    assert [whole.row(i) for i in range(3)] == rows
    assert [narrow.row(i) for i in range(3)] == [(None, s) for _, s in rows]


def test_arrays() -> None:
    batch = EventBatch.of_arrays(
        ALL,
        {"i": np.array([1, 2], np.int16), "f": np.array([0.5, np.nan]), "s": np.array(["x", "y"])},
    )
    assert batch.keys(1) == (2, DoubleType().key(math.nan), None, None, "y", None, None, None)


@pytest.mark.parametrize(
    "arrays",
    [
        {"nothing": np.array([1])},
        {"i": np.array([1.5])},
        {"b": np.array([1])},
        {"f": np.array([1])},
        {"s": np.array([1])},
        {"i": np.array([1]), "f": np.array([1.0, 2.0])},
        {"i": np.array(["1"], object)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, np.ndarray]) -> None:
    with pytest.raises(ChangeError):
        EventBatch.of_arrays(ALL, arrays)


@pytest.mark.parametrize(
    "values",
    [{"i": ["x"]}, {"s": [1]}, {"b": [1]}, {"day": ["2024-01-01"]}, {"d": [1.5]}, {"other": [1]}],
)
def test_arrow_that_does_not_fit_is_refused(values: dict[str, list[object]]) -> None:
    with pytest.raises(ChangeError):
        EventBatch.of_arrow(ALL, pa.RecordBatch.from_pydict(values))


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ChangeError, match="8 values"):
        EventBatch.of_rows(ALL, [(1,)])
    with pytest.raises(ChangeError, match="is not a stored"):
        EventBatch.of_rows(ALL, [("1", None, None, None, None, None, None, None)])


@given(st.lists(st.floats()))
def test_double_keys_at_once_are_those_one_by_one(values: list[float]) -> None:
    keys = double_keys(np.array(values, np.float64))
    assert keys.tolist() == [DoubleType().key(value) for value in values]
