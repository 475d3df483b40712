"""The comparable form of doubles; see `penstock.catalog.number_types.DoubleType.key`."""

from __future__ import annotations

from penstock.catalog.number_types import INFINITY_KEY, NAN_KEY
from penstock.kernels.compiled import njit

_MAGNITUDE = (1 << 63) - 1


@njit
def double_key(bits: int) -> int:
    """The key of the double with these bits, as a signed integer."""
    magnitude = bits & _MAGNITUDE
    if magnitude > INFINITY_KEY:
        return NAN_KEY
    return magnitude if bits >= 0 else -magnitude
