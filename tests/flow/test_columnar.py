"""Events read column by column mean what they mean one by one, whatever is sent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from zlib import crc32

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.catalog import Catalog
from penstock.errors import ChangeError
from penstock.flow.changes import Checked, Delta
from penstock.flow.columnar import ColumnReader, PlainColumns, reader
from penstock.flow.events import read_change
from penstock.flow.packed.rows import EventDeltas
from penstock.kernels.packed_values import Packed
from penstock.matching import EventBatch
from penstock.packing import pack
from tests.flow import plain_lines as lines

AT_ONCE = ColumnReader(lines.CATALOG)
FIRST = 30
"""The offset of the first event."""


def read(raw: Sequence[bytes]) -> tuple[list[PlainColumns], list[int]]:
    return AT_ONCE.read(range(FIRST, FIRST + len(raw)), raw)


def read_one(raw: bytes, offset: int) -> Checked:
    return read_change(raw, lines.CATALOG, offset)


def each(packed: Packed) -> list[bytes]:
    ends = [0, *packed.ends.tolist()]
    return [packed.data[a:b].tobytes() for a, b in pairwise(ends)]


def change_of(checked: Checked, offset: int) -> bytes:
    """What the pipeline sends to the bucket of a row."""
    relation, op, key, row, given = checked
    return pack((offset, relation.name, op, key, row, given))


def check_events(raw: list[bytes]) -> int:
    """Whatever is read at once is right; how many that are."""
    found, others = read(raw)
    seen = set(others)
    for columns in found:
        every = np.arange(len(columns), dtype=np.int64)
        read_one_by_one = [read_one(raw[o - FIRST], o) for o in columns.offsets.tolist()]
        check_columns(columns, read_one_by_one)
        hashes = [crc32(pack([c.relation.name, c.key])) for c in read_one_by_one]
        if columns.relation.key:
            assert columns.key_hashes().tolist() == hashes
            changes = [
                change_of(c, o)
                for c, o in zip(read_one_by_one, columns.offsets.tolist(), strict=True)
            ]
            assert each(columns.packed_changes(every)) == changes
            assert each(columns.packed_changes(every[::-1].copy())) == changes[::-1]
        assert not seen & {o - FIRST for o in columns.offsets.tolist()}
        seen |= {o - FIRST for o in columns.offsets.tolist()}
    assert seen == set(range(len(raw)))
    return len(raw) - len(others)


def check_columns(columns: PlainColumns, expected: list[Checked]) -> None:
    offsets = columns.offsets.tolist()
    assert all(checked.relation == columns.relation for checked in expected)
    events = [(offset, c.row) for offset, c in zip(offsets, expected, strict=True)]
    assert each(columns.packed_events()) == [pack(event) for event in events]
    every = range(len(columns.relation.columns))
    batch = EventBatch.of_stored(columns.relation, [row for _, row in events])
    mine = columns.batch(every)
    assert [mine.keys(i) for i in range(len(mine))] == [batch.keys(i) for i in range(len(batch))]
    if not columns.relation.key:
        deltas, chosen = EventDeltas(columns), np.arange(0, len(columns), 2, dtype=np.int64)
        rows = [Delta(offset, columns.relation, (offset,), None, row) for offset, row in events]
        assert deltas.objects() == rows
        assert deltas.packed(chosen).objects() == rows[::2]


def encoded(event: object) -> bytes:
    try:
        return msgspec.json.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return b"?"


@given(st.lists(lines.events.map(encoded), max_size=8))
def test_any_objects(raw: list[bytes]) -> None:
    check_events(raw)


@given(st.lists(st.sampled_from(lines.ODD_LINES) | lines.any_bytes, max_size=6))
def test_any_bytes(raw: list[bytes]) -> None:
    check_events(raw)


@given(st.lists(lines.damaged_lines, max_size=6))
def test_damaged_lines(raw: list[bytes]) -> None:
    check_events(raw)


@pytest.mark.parametrize("raw", lines.ODD_LINES, ids=range(len(lines.ODD_LINES)))
def test_odd_lines(raw: bytes) -> None:
    check_events([raw])


@given(
    st.lists(lines.plain_rows, min_size=1, max_size=20),
    st.sampled_from(["Things", "quotes"]),
    st.sampled_from(["", " ", "\n\t "]),
)
def test_usual_events_are_read_at_once(
    rows: list[dict[str, object]], table: str, space: str
) -> None:
    raw = [
        lines.written({"table": table, "op": "insert", "row": row}, space).encode() for row in rows
    ]
    assert check_events(raw) == len(raw)


@given(
    st.lists(st.integers(-5, 5).map(lambda n: n / 4), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(lines.wide_decimals, min_size=1),
)
def test_keys_of_every_type_are_read_at_once(
    doubles: list[float], flags: list[bool], wide: list[Decimal]
) -> None:
    rows: dict[str, list[dict[str, object]]] = {
        "by double": [{"id": 1, "d": one} for one in doubles],
        "by flag": [{"b": one} for one in flags],
        "by wide": [{"id": 2, "wide": one} for one in wide],
    }
    events = [
        {"table": table, "op": op, "row": row}
        for table, some in rows.items()
        for row in some
        for op in ("insert", "delete")
    ]
    assert check_events([lines.written(one, "").encode() for one in events]) == len(events)


@given(st.lists(lines.number_texts, max_size=9))
@example(
    ["1.10", "-0", "0", "00", "1.", ".5", "1e5", "-", "123456789012345678", "0.30000000000000004"]
)
def test_numbers_as_they_are_written(numbers: list[str]) -> None:
    for column in ("Big", "d", "n", "wide"):
        raw = [f'{{"table":"quotes","row":{{"id":1,"{column}":{n}}}}}'.encode() for n in numbers]
        check_events(raw)


@given(st.lists(lines.time_texts, max_size=9))
@example(["2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "9999-12-31"])
@example(["2024-05-06T24:00:00", "2024-05-06 07:08:09", "2024-05-06T07:08:09Z", "2024-05-06T"])
def test_times_as_they_are_written(texts: list[str]) -> None:
    for column in ("day", "at", "zoned"):
        raw = [f'{{"table":"quotes","row":{{"id":1,"{column}":"{t}"}}}}'.encode() for t in texts]
        check_events(raw)


def test_letters_that_are_no_unicode_do_not_keep_others_from_being_read() -> None:
    plain = b'{"table":"quotes","row":{"id":1,"s":"x"}}'
    umlaut = '{"table":"quotes","row":{"id":1,"s":"ü"}}'.encode()
    broken = umlaut.replace("ü".encode(), b"\xc3")
    assert check_events([plain, umlaut]) == 2
    found, others = read([plain, umlaut, broken])
    assert [len(columns) for columns in found] == [1]
    assert others == [1, 2]
    with pytest.raises(ChangeError, match="UTF-8"):
        read_one(broken, FIRST)


def test_an_event_before_its_table() -> None:
    raw = b'{"table":"later","row":{"id":1}}'
    assert AT_ONCE.read([50, 51], [raw, raw])[1] == [0]


def test_events_of_a_wide_table_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "VALUES_AT_ONCE", 2 * len(lines.COLUMNS))
    raw = [f'{{"table":"quotes","row":{{"id":{i}}}}}'.encode() for i in range(5)]
    assert [len(columns) for columns in read(raw)[0]] == [2, 2, 1]
    assert check_events([*raw, b"?", *raw]) == 10


def test_no_events_and_no_tables() -> None:
    assert read([]) == ([], [])
    assert ColumnReader(Catalog()).read([0], [b'{"table": "x", "row": {}}']) == ([], [0])


def test_pieces_are_limited_in_rows_and_bytes() -> None:
    packed = Packed(np.zeros(100, np.uint8), np.array([10, 20, 60, 70, 100], np.int64))
    assert list(packed.pieces(2, 1000)) == [(0, 2), (2, 4), (4, 5)]
    assert list(packed.pieces(9, 30)) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(packed.pieces(9, 45, 1, 4)) == [(1, 2), (2, 3), (3, 4)]
    assert len(packed.array(2, 4)) == 51
