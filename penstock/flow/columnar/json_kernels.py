"""Kernels that parse plain events: {"table": ..., "op": ..., "row": {...}}."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.flow.changes import Op
from penstock.flow.columnar.json_scan import (
    CLOSE,
    COLON,
    COMMA,
    NOT_PLAIN,
    OPEN,
    POWERS,
    QUOTE,
    characters,
    expect,
    find_name,
    read_date,
    read_number,
    read_timestamp,
    read_wide_number,
    text_end,
)
from penstock.flow.columnar.layout import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    WIDE,
    ZONED,
    ColumnLayout,
    Names,
    names_of,
)
from penstock.kernels.arrays import Bytes8, Codes8, Ints
from penstock.kernels.byte_strings import same_bytes
from penstock.kernels.compiled import inlined, njit

ABSENT, NULL, GIVEN = range(3)
"""State of a column in an event."""

OPS = tuple(Op)
INSERT, UPDATE, UPSERT, DELETE, REMOVE = range(len(OPS))

_TABLE, _OP, _ROW = (np.frombuffer(word, np.uint8) for word in (b"table", b"op", b"row"))
_NULL, _TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false"))
OP_NAMES = names_of([op.value for op in OPS])


class Texts(NamedTuple):
    """Concatenated events; event `i` ends at `ends[i]`."""

    data: Bytes8
    ends: Ints
    only_ascii: bool
    """Set if the data is not valid UTF-8: then events with non-ASCII text are not plain."""


class Cells(NamedTuple):
    """The values of events of one relation, by event and column."""

    values: Ints
    """Stored values; for texts, where they begin in the buffer."""
    doubles: npt.NDArray[np.float64]
    """A view of `values`, for DOUBLE columns."""
    lengths: npt.NDArray[np.int32]
    """Length of texts, in bytes."""
    states: npt.NDArray[np.uint8]
    """`ABSENT`, `NULL` or `GIVEN`."""
    high: Ints
    """High words of `WIDE` numbers, whose low words are in `values`; empty without such columns."""

    def take(self, which: npt.NDArray[np.generic]) -> Cells:
        values = self.values[which]
        high = self.high[which] if len(self.high) else self.high
        return Cells(values, values.view(np.float64), self.lengths[which], self.states[which], high)


def empty_cells(count: int, form: ColumnLayout) -> Cells:
    """Cells for `count` events, all ABSENT."""
    shape = (count, len(form.kinds))
    values = np.empty(shape, np.int64)
    high = np.empty(shape if (form.kinds == WIDE).any() else (0, 0), np.int64)
    states = np.full(shape, ABSENT, np.uint8)
    return Cells(values, values.view(np.float64), np.empty(shape, np.int32), states, high)


class ParsedEvents(NamedTuple):
    """Parsed events of one relation; texts refer to `data`."""

    data: Bytes8
    form: ColumnLayout
    offsets: Ints
    ops: Codes8
    """Positions of operations in `OPS`."""
    fields: Cells


@njit
def tables_of(texts: Texts, names: Names) -> npt.NDArray[np.int32]:
    """The table that each event names before its row; -1 for events that are not plain."""
    found = np.full(len(texts.ends), -1, np.int32)
    likely, start = 0, 0
    for i in range(len(found)):
        end = texts.ends[i]
        number = _table_of(texts, start, end, names, likely)
        found[i] = number
        likely = max(number, 0)
        start = end
    return found


@njit
def _table_of(texts: Texts, at: int, end: int, names: Names, likely: int) -> int:
    data = texts.data
    at = expect(data, at, end, OPEN)
    while at != NOT_PLAIN:
        name, name_end, at = _member(texts, at, end)
        if at == NOT_PLAIN or at >= end or data[at] != QUOTE:
            break
        stop = text_end(data, at + 1, end, texts.only_ascii)
        if stop == NOT_PLAIN:
            break
        if same_bytes(data, name, name_end, _TABLE, 0, len(_TABLE)):
            return find_name(data, at + 1, stop, names, likely)
        at = expect(data, stop + 1, end, COMMA)
    return -1


@inlined
def _member(texts: Texts, at: int, end: int) -> tuple[int, int, int]:
    """The begin and end of a member's name, and the begin of its value."""
    if at >= end or texts.data[at] != QUOTE:
        return 0, 0, NOT_PLAIN
    stop = text_end(texts.data, at + 1, end, texts.only_ascii)
    if stop == NOT_PLAIN:
        return 0, 0, NOT_PLAIN
    return at + 1, stop, expect(texts.data, stop + 1, end, COLON)


@njit
def read_events(texts: Texts, which: Ints, form: ColumnLayout, fields: Cells, ops: Codes8) -> None:
    """Parse the events with the numbers `which`, all of the table of the form. `fields` and `ops`
    have one row per entry of `which`. If an event is not plain, its operation is `NOT_PLAIN`, and
    its fields are undefined."""
    for i in range(len(which)):
        number = which[i]
        start = texts.ends[number - 1] if number else 0
        op = _read_event(texts, start, texts.ends[number], form, fields, i)
        ops[i] = op if op != NOT_PLAIN and _is_complete(form, fields.states[i], op) else NOT_PLAIN


@inlined
def _read_event(texts: Texts, at: int, end: int, form: ColumnLayout, fields: Cells, i: int) -> int:
    """Parse one event into row `i` of `fields`; returns its operation, or `NOT_PLAIN`."""
    data, op = texts.data, INSERT
    has_table, has_op, has_row = False, False, False
    at = expect(data, at, end, OPEN)
    while at != NOT_PLAIN:
        name, stop, at = _member(texts, at, end)
        if at == NOT_PLAIN or at >= end:
            break
        if same_bytes(data, name, stop, _ROW, 0, len(_ROW)):
            if has_row:
                break
            has_row = True
            at = _read_row(texts, at, end, form, fields, i)
        else:
            last = text_end(data, at + 1, end, texts.only_ascii) if data[at] == QUOTE else NOT_PLAIN
            if last == NOT_PLAIN:
                break
            if not has_table and same_bytes(data, name, stop, _TABLE, 0, len(_TABLE)):
                has_table = True
            elif not has_op and same_bytes(data, name, stop, _OP, 0, len(_OP)):
                has_op, op = True, find_name(data, at + 1, last, OP_NAMES, op)
            else:
                break
            at = last + 1
        if at == NOT_PLAIN or op < 0:
            break
        behind = expect(data, at, end, CLOSE)
        if behind != NOT_PLAIN:
            return op if behind == end and has_row else NOT_PLAIN
        at = expect(data, at, end, COMMA)
    return NOT_PLAIN


@inlined
def _read_row(texts: Texts, at: int, end: int, form: ColumnLayout, fields: Cells, i: int) -> int:
    """Parse the object of a row; returns where it ends, or `NOT_PLAIN`."""
    data, width = texts.data, len(form.kinds)
    fields.states[i] = ABSENT
    at = expect(data, at, end, OPEN)
    if at != NOT_PLAIN and at < end and data[at] == CLOSE:
        return at + 1
    likely = 0
    while at != NOT_PLAIN:
        name, stop, at = _member(texts, at, end)
        if at == NOT_PLAIN or at >= end:
            break
        column = find_name(data, name, stop, form.names, likely)
        if column < 0 or fields.states[i, column] != ABSENT:
            break
        at = _read_value(texts, at, end, form, fields, i, column)
        if at == NOT_PLAIN:
            break
        behind = expect(data, at, end, CLOSE)
        if behind != NOT_PLAIN:
            return behind
        at = expect(data, at, end, COMMA)
        likely = column + 1 if column + 1 < width else 0
    return NOT_PLAIN


@inlined
def _read_value(
    texts: Texts, at: int, end: int, form: ColumnLayout, fields: Cells, i: int, column: int
) -> int:
    """Parse the value of a column; returns where it ends, or `NOT_PLAIN`."""
    data, kind = texts.data, form.kinds[column]
    fields.states[i, column] = GIVEN
    if data[at] == _NULL[0]:
        fields.states[i, column] = NULL
        return _behind_word(data, at, end, _NULL) if form.nullable[column] else NOT_PLAIN
    if data[at] == QUOTE:
        stop = text_end(data, at + 1, end, texts.only_ascii)
        if stop == NOT_PLAIN:
            return NOT_PLAIN
        return stop + 1 if _read_text(data, at + 1, stop, form, fields, i, column) else NOT_PLAIN
    if kind == BOOLEAN:
        word = _TRUE if data[at] == _TRUE[0] else _FALSE
        fields.values[i, column] = data[at] == _TRUE[0]
        return _behind_word(data, at, end, word)
    if kind in (INTEGER, DECIMAL, DOUBLE):
        stop, whole, after = read_number(data, at, end)
        if stop != NOT_PLAIN and _store_number(whole, after, form, fields, i, column):
            return stop
    if kind == WIDE:
        stop, high, low = read_wide_number(data, at, end, form.most[column], form.scale[column])
        fields.high[i, column], fields.values[i, column] = high, low
        return stop
    return NOT_PLAIN


@njit
def _behind_word(data: Bytes8, at: int, end: int, word: Bytes8) -> int:
    stop = at + len(word)
    if stop > end or not same_bytes(data, at, stop, word, 0, len(word)):
        return NOT_PLAIN
    return stop


@inlined
def _read_text(
    data: Bytes8, at: int, stop: int, form: ColumnLayout, fields: Cells, i: int, column: int
) -> bool:
    """Store the text [at, stop) as the value of a column; False if the column cannot hold it."""
    kind = form.kinds[column]
    if kind == TEXT:
        fields.values[i, column], fields.lengths[i, column] = at, stop - at
        most = int(form.most[column])
        return stop - at <= most or characters(data, at, stop) <= most
    is_fit, stored = False, 0
    if kind == DATE and stop - at == 10:
        is_fit, stored = read_date(data, at)
    elif kind in (TIMESTAMP, ZONED):
        is_fit, stored = read_timestamp(data, at, stop)
    fields.values[i, column] = stored
    return is_fit


@inlined
def _store_number(
    whole: int, after: int, form: ColumnLayout, fields: Cells, i: int, column: int
) -> bool:
    """Store a number as the value of a column; False if the column cannot hold it."""
    kind = form.kinds[column]
    if kind == DOUBLE:
        # Both operands are exact (or the value is refused), so the quotient is correctly rounded.
        fields.doubles[i, column] = whole / POWERS[after]
        return abs(whole) < 1 << 53
    if after > form.scale[column]:
        return False
    factor = int(POWERS[form.scale[column] - after])
    fields.values[i, column] = whole * factor
    return abs(whole) <= int(form.most[column]) // factor


@inlined
def _is_complete(form: ColumnLayout, states: npt.NDArray[np.uint8], op: int) -> bool:
    """Whether a row has all the columns that its operation needs."""
    is_whole = op in (INSERT, UPSERT)
    if form.is_stream and op != INSERT:
        return False
    for column in range(len(states)):
        is_needed = form.is_key[column] or (is_whole and not form.nullable[column])
        if is_needed and states[column] != GIVEN:
            return False
    return True
