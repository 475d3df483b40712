"""Recent publications, and which of them concern an interest, as a bit set.

Finding mergers queries this for thousands of boxes in a row. So the sampled rows are sorted once by
each column: the rows whose value lies in an interval are then the difference of two prefixes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence

from penstock.catalog import Row
from penstock.messages import Message
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import EVERYTHING, Cut, Interval, below
from penstock.predicates.masks import bits
from penstock.routing.interests import Interest, SpaceShape, concerns

SAMPLE_MESSAGES = 500
"""Publications kept: the relative error of a share of 1 % is then about one half."""


class PublicationSample:
    """Publications of one space. Results are cached until the next publication."""

    def __init__(self, shape: SpaceShape) -> None:
        self._shape = shape
        self._seen: deque[Message] = deque(maxlen=SAMPLE_MESSAGES)
        self._rows: _SampledRows | None = None
        self._before: _SampledRows | None = None
        self._known: dict[Interest, int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def observe(self, message: Message) -> None:
        self._seen.append(message)
        self._rows = self._before = None
        self._known.clear()

    def concerned(self, interest: Interest) -> int:
        """A bit for each publication that concerns the interest."""
        found = self._known.get(interest)
        if found is None:
            found = self._known[interest] = self._find(interest)
        return found

    def concerned_by_any(self, interests: Iterable[Interest]) -> int:
        found = 0
        for one in interests:
            found |= self.concerned(one)
        return found

    def _find(self, interest: Interest) -> int:
        may_concern = self._in_box(interest.base)
        if self._shape.is_selection and interest.numbers == EVERYTHING:
            return may_concern
        base, seen, found = self._shape.base, self._seen, 0
        for number in bits(may_concern):
            if concerns(seen[number], interest, base):
                found |= 1 << number
        return found

    def _in_box(self, box: Box) -> int:
        """The publications whose row, before or after the change, lies in a box."""
        if self._rows is None or self._before is None:
            base = self._shape.base
            self._rows = _SampledRows(self._shape, [_row_after(one) for one in self._seen])
            before = [one.row_before(base) if _says_before(one) else None for one in self._seen]
            self._before = _SampledRows(self._shape, before)
        return self._rows.in_box(box) | self._before.in_box(box)


def _row_after(message: Message) -> Row | None:
    return message.row if message.upsert or message.recipients else None


def _says_before(message: Message) -> bool:
    return bool(message.remove) and (message.old is not None or message.row is not None)


class _SampledRows:
    def __init__(self, shape: SpaceShape, rows: Sequence[Row | None]) -> None:
        self._base = shape.base
        self._rows = rows
        self._all = sum(1 << number for number, row in enumerate(rows) if row is not None)
        self._columns: dict[int, tuple[list[Cut], list[int]]] = {}

    def in_box(self, box: Box) -> int:
        found = self._all
        for column, interval in box:
            if not found:
                break
            found &= self._within(column, interval)
        return found

    def _within(self, column: int, interval: Interval) -> int:
        cuts, prefixes = self._columns.get(column) or self._sorted_by(column)
        first, last = bisect_left(cuts, interval.low), bisect_left(cuts, interval.high)
        return prefixes[last] & ~prefixes[first] if first < last else 0

    def _sorted_by(self, column: int) -> tuple[list[Cut], list[int]]:
        """The cuts just below the values of a column, sorted, and for each the rows before it."""
        kind = self._base.columns[column].type
        values = sorted(
            (below(None if row[column] is None else kind.key(row[column])), number)
            for number, row in enumerate(self._rows)
            if row is not None and column < len(row)
        )
        prefixes = [0]
        for _, number in values:
            prefixes.append(prefixes[-1] | 1 << number)
        self._columns[column] = ([cut for cut, _ in values], prefixes)
        return self._columns[column]
