"""Many packed values in one buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.kernels.arrays import Bytes8, Ints
from penstock.packing import array_header


@dataclass(frozen=True, slots=True)
class Packed:
    """Packed values, concatenated, and where each ends."""

    data: Bytes8
    ends: Ints

    def __len__(self) -> int:
        return len(self.ends)

    def array(self, first: int, last: int) -> bytes:
        """The values [first, last) as one packed array."""
        start = self.ends[first - 1] if first else 0
        stop = self.ends[last - 1] if last else 0
        return array_header(last - first) + self.data[start:stop].tobytes()

    def pieces(
        self, most: int, most_bytes: int, first: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """The values [first, end) in pieces of bounded size; only a single value may exceed it."""
        end = len(self) if end is None else end
        while first < end:
            start = self.ends[first - 1] if first else 0
            fitting = int(np.searchsorted(self.ends, start + most_bytes, side="right"))
            last = min(max(fitting, first + 1), first + most, end)
            yield first, last
            first = last

    def to_arrow(self) -> pa.Array:
        offsets = np.concatenate([np.zeros(1, np.int64), self.ends])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)
