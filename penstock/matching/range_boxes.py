"""Boxes over number columns as flat arrays, for bulk insertion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.predicates.boxes import Box
from penstock.predicates.intervals import Interval, below

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RangeBoxes:
    """Boxes of closed key ranges, NULL excluded, one column at most once in a box.

    Box `i` belongs to `subscriptions[i]` and has the ranges `offsets[i] : offsets[i + 1]` of
    `columns`, `lows` and `highs`. The boxes of one subscription are contiguous.
    """

    subscriptions: Ints64
    offsets: Ints64
    columns: Ints32
    lows: Ints64
    highs: Ints64

    def __len__(self) -> int:
        return len(self.subscriptions)

    def box(self, i: int) -> Box:
        places = range(int(self.offsets[i]), int(self.offsets[i + 1]))
        return tuple(
            sorted(
                (
                    int(self.columns[j]),
                    Interval(below(int(self.lows[j])), below(int(self.highs[j]) + 1)),
                )
                for j in places
            )
        )

    def unions(self) -> Iterator[tuple[int, list[Box]]]:
        """Each subscription with its boxes."""
        held: tuple[int, list[Box]] | None = None
        for i, subscription in enumerate(self.subscriptions.tolist()):
            if held is None or held[0] != subscription:
                if held is not None:
                    yield held
                held = (subscription, [])
            held[1].append(self.box(i))
        if held is not None:
            yield held
