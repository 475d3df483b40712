"""Which columns the events of a batch are sorted by.

Each such column costs a sort and one lane table per 512 events, whether or not anything matches; in
return the boxes rooted there are walked only by the events that satisfy their root. Columns that
root few boxes do not pay: those boxes are better rooted at their second most selective predicate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.matching.table import BoxTable, stretches

Ints64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SAMPLED_BOXES = 4000
_CELL_NANOSECONDS = 1.5
"""Cost of entering one event into the table of one column."""
_ROW_NANOSECONDS = 4.0 / 512
"""Cost of accumulating one row of the table, per event."""
_BOX_NANOSECONDS = 40.0 / 512
"""Cost of walking one box, per event that satisfies its root; lanes are seldom full."""


def access_columns(table: BoxTable, shares: Floats, rows: int) -> Ints64:
    """The columns that root clusters: starts with all, drops the least useful one by one.

    `shares[p]` is the share of events that predicate `p` of the table accepts.
    """
    columns = np.flatnonzero(np.bincount(table.columns, minlength=1))
    box_count = len(table.owners)
    if not len(columns):
        return columns
    step = max(1, box_count // _SAMPLED_BOXES)
    accepted = _accepted(table, shares, np.arange(0, box_count, step))
    per_box = _BOX_NANOSECONDS * step
    sorting = _CELL_NANOSECONDS * len(columns) + _ROW_NANOSECONDS * rows
    while len(columns) > 1:
        among = accepted[:, columns]
        best = among.argmin(axis=1)
        least = np.partition(among, 1, axis=1)
        loss = np.bincount(best, least[:, 1] - least[:, 0], minlength=len(columns)) * per_box
        worst = int(loss.argmin())
        if loss[worst] >= sorting:
            break
        columns = np.delete(columns, worst)
    return columns


def _accepted(table: BoxTable, shares: Floats, boxes: Ints64) -> Floats:
    """The share of events that each of the given boxes accepts, by column."""
    accepted = np.ones((len(boxes), len(table.boundaries)))
    sizes = np.diff(table.offsets)[boxes]
    places = stretches(table.offsets[boxes], sizes)
    accepted[np.repeat(np.arange(len(boxes)), sizes), table.columns[places]] = shares[places]
    return accepted
