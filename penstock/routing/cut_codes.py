"""Cuts as integers, relative to the keys that interests mention.

With the keys k0 < k1 < ..., key ki has place 2i + 1 and everything between k(i-1) and ki has place
2i. The code of a cut at a key is twice its place, plus one if it lies above. So codes are ordered
like cuts whenever one of the two is a cut that an interest mentions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key
from penstock.predicates.intervals import Cut

Codes32 = npt.NDArray[np.int32]

LOWEST, HIGHEST = np.int32(-4), np.int32((1 << 31) - 1)
"""Codes of BOTTOM and TOP, the ends of unbounded ranges."""
_ABOVE_NULL = -2
_NUMBERS_WITHIN = 1 << 62


class CutCodes:
    """The codes of one dimension."""

    __slots__ = ("_keys", "_numbers")

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys: Sequence[Key] = sorted(set(keys))
        self._numbers = _as_numbers(self._keys)

    @classmethod
    def of_cuts(cls, cuts: Iterable[Cut]) -> CutCodes:
        return cls(cut[1] for cut in cuts if len(cut) == 3)

    def code(self, cut: Cut) -> int:
        if len(cut) == 1:
            return _of_bare_cut(cut[0])
        place = bisect_left(self._keys, cut[1])
        is_key = place < len(self._keys) and self._keys[place] == cut[1]
        return 2 * (2 * place + is_key) + cut[2]

    def all_codes(self, cuts: Sequence[Cut]) -> Codes32:
        """The codes of many cuts."""
        numbers = self._numbers
        if numbers is None or len(cuts) < _FEW:
            return np.array([self.code(cut) for cut in cuts], np.int32)
        try:
            keys = np.array([cut[1] if len(cut) == 3 else 0 for cut in cuts], np.int64)
        except OverflowError:
            return np.array([self.code(cut) for cut in cuts], np.int32)
        sides = np.array([cut[2] if len(cut) == 3 else cut[0] + _BARE for cut in cuts], np.int64)
        places = np.searchsorted(numbers, keys)
        is_key = numbers[np.minimum(places, len(numbers) - 1)] == keys
        codes: npt.NDArray[np.int64] = 2 * (2 * places + is_key) + sides
        for bare in np.flatnonzero(sides > 1).tolist():
            codes[bare] = _of_bare_cut(int(sides[bare]) - _BARE)
        return codes.astype(np.int32)


_FEW = 8
"""Up to this many cuts, setting up arrays costs more than searching one by one."""
_BARE = 10


def _of_bare_cut(kind: int) -> int:
    if kind == 0:
        return int(LOWEST)
    return _ABOVE_NULL if kind == 1 else int(HIGHEST)


def _as_numbers(keys: Sequence[Key]) -> npt.NDArray[np.int64] | None:
    if not keys or set(map(type, keys)) != {int}:
        return None
    first, last = keys[0], keys[-1]
    assert isinstance(first, int)
    assert isinstance(last, int)
    if first < -_NUMBERS_WITHIN or last > _NUMBERS_WITHIN:
        return None
    return np.array(keys, np.int64)
