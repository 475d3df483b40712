"""Kernels find in MessagePack what a decoder finds; and number, order and compare values as Python
does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.catalog import Column, DoubleType, IntegerType, Relation, Row
from penstock.flow.changes import is_same_row
from penstock.flow.packed import change_table as kernels
from penstock.joins.array_codes import ArrayCodes
from penstock.joins.packed.coding import codes_of, rank_values
from penstock.kernels.arrays import Bytes8
from penstock.kernels.byte_spans import Spans, concat, gather, number_values, to_bytes_list
from penstock.kernels.msgpack_read import column_at, integer_at, text_start, value_end
from penstock.matching.events import DictionaryColumn, NumberColumn
from penstock.packing import pack
from penstock.predicates.intervals import below

EDGES = [e for n in (5, 7, 8, 15, 16, 31, 32, 63, 64, 65) for e in (2**n - 1, 2**n, -(2**n))]
texts = st.sampled_from([0, 1, 31, 32, 255, 256, 65535, 65536]).map(lambda n: "x" * n) | st.text()
stored = st.none() | st.booleans() | st.sampled_from(EDGES) | st.integers() | st.floats() | texts


def buffer(data: bytes) -> Bytes8:
    return np.frombuffer(bytearray(data), np.uint8)


@example([[1, [2, "a"]], [], [0] * 16, [0] * 70_000, 7])
@given(st.lists(stored | st.lists(stored, max_size=3), max_size=20))
def test_values_are_found_where_they_are(values: list[object]) -> None:
    data = buffer(b"\xc1" + pack(values))
    assert value_end(data, 1) == len(data)
    for column, value in enumerate(values):
        at = column_at(data, 1, column)
        end = value_end(data, at)
        assert data[at:end].tobytes() == pack(value)
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            assert integer_at(data, at) == value
        if isinstance(value, str):
            assert data[text_start(data, at) : end].tobytes() == value.encode()


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2)), max_size=60))
def test_values_have_the_number_of_the_first_that_is_equal(values: list[tuple[bytes, int]]) -> None:
    data, begin = concat(value for value, _ in values)
    kinds = np.array([kind for _, kind in values], np.int64)
    numbers, first = number_values(data, Spans(begin[:-1], begin[1:]), kinds)
    known: dict[tuple[bytes, int], int] = {}
    assert numbers.tolist() == [known.setdefault(value, len(known)) for value in values]
    assert first.tolist() == [values.index(value) for value in known]


@given(st.lists(st.binary(max_size=5), min_size=1), st.data())
def test_some_values_in_another_order(values: list[bytes], drawn: st.DataObject) -> None:
    which = drawn.draw(st.lists(st.integers(0, len(values) - 1)))
    data, begin = concat(values)
    spans = Spans(begin[:-1], begin[1:]).take(np.array(which, np.int64))
    assert to_bytes_list(*gather(data, spans)) == [values[i] for i in which]


ZERO, NAN = 0.0, math.nan
DOUBLES = Relation("d", (Column("id", IntegerType()), Column("x", DoubleType())), (0,))


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ((1, 2.5), (1, 2.5), True),
        ((1, 2.5), (1, 2.0), False),
        ((1, 2.5), (2, 2.5), False),
        ((1, ZERO), (1, -ZERO), True),
        ((1, ZERO), (1, 5e-324), False),
        ((1, NAN), (1, float("nan")), True),
        ((1, NAN), (1, -float("nan")), True),
        ((1, NAN), (1, math.inf), False),
        ((1, math.inf), (1, -math.inf), False),
        ((1, None), (1, None), True),
        ((1, None), (1, ZERO), False),
    ],
)
def test_which_rows_are_the_same(old: Row, new: Row, is_same: bool) -> None:
    packed = pack(old)
    assert is_same_row(DOUBLES, old, new) == is_same
    assert kernels.is_same_row(buffer(packed + pack(new)), 0, len(packed)) == is_same
    assert not is_same_row(DOUBLES, None, new)


numbers = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1]) | st.integers(-9, 9)
words = st.text("ab\ud7ff\ue000\U0001f600", max_size=2)


@given(
    st.lists(st.none() | numbers) | st.lists(st.none() | words),
    st.lists(numbers, max_size=4) | st.lists(words, max_size=4),
)
def test_ranks_and_codes_are_in_the_order_of_values(
    values: list[int | None] | list[str | None], constants: list[int] | list[str]
) -> None:
    known = [value for value in values if value is not None]
    if known and constants and type(known[0]) is not type(constants[0]):
        constants = []
    column: NumberColumn | DictionaryColumn
    if any(isinstance(value, str) for value in [*known, *constants]):
        distinct = tuple(dict.fromkeys(known))
        places = [-1 if value is None else distinct.index(value) for value in values]
        column = DictionaryColumn(np.array(places, np.int32), distinct)
    else:
        nulls = np.array([value is None for value in values], np.bool_)
        column = NumberColumn(np.array([v or 0 for v in values], np.int64), nulls)
    codes, found = ArrayCodes(constants), rank_values(column, len(values))
    assert codes_of(column, codes, len(values)).tolist() == [codes.value(v) for v in values]
    for mine, rank in zip(values, found.ranks.tolist(), strict=True):
        for other, other_rank in zip(values, found.ranks.tolist(), strict=True):
            assert (below(mine) < below(other)) == (rank < other_rank)
            assert (mine == other) == (rank == other_rank)
