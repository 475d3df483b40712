"""CRC-32 as zlib computes it, in kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.arrays import Bytes8
from penstock.kernels.compiled import njit


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


_CRC = _crc_table()
CRC_START = np.uint32(0xFFFFFFFF)


@njit
def update_crc(crc: np.uint32, data: Bytes8, at: int, end: int) -> np.uint32:
    """Update a CRC-32 that began with `CRC_START`; its complement is zlib's result."""
    for i in range(at, end):
        crc = _CRC[(crc ^ data[i]) & 0xFF] ^ (crc >> np.uint32(8))
    return crc
