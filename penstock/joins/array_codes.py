"""Order codes over a flat array of constants.

In a binary search among a million Python objects every comparison misses the cache; in an array of
numbers most do not. Falls back to a list if the constants are not 64-bit integers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from operator import eq
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key
from penstock.joins.kernels.gaps import code_of
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import Interval

Numbers = npt.NDArray[np.int64]
Values: TypeAlias = Numbers | list[Key | None]
"""Many values of one column: an array if all are numbers, otherwise a list."""


def as_numbers(keys: Sequence[Key | None]) -> Numbers | None:
    """Keys as an array; None if there are none, or if some are not 64-bit integers.

    Strings are never numbers: numpy would parse '10115', ' 5 ' and '1_000'.
    """
    if set(map(type, keys)) != {int}:
        return None
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        return None


class ArrayCodes(Codes):
    __slots__ = ("numbers",)

    def __init__(self, constants: Iterable[Key] | Numbers) -> None:
        """An array must be sorted and without duplicates."""
        if isinstance(constants, np.ndarray):
            self.numbers: Numbers | None = constants if len(constants) else None
            self.constants: Sequence[Key] = constants if len(constants) else []  # type: ignore[assignment]
            return
        super().__init__(constants)
        self.numbers = as_numbers(self.constants)
        if self.numbers is not None:
            self.constants = self.numbers  # type: ignore[assignment]

    @classmethod
    def of_intervals(cls, intervals: Iterable[Interval]) -> ArrayCodes:
        return cls(c[1] for i in intervals for c in (i.low, i.high) if len(c) == 3)

    def constant(self, place: int) -> Key:
        return self.constants[place] if self.numbers is None else int(self.numbers[place])

    def value(self, key: Key | None) -> int:
        if self.numbers is not None and isinstance(key, int):
            try:
                return code_of(self.numbers, key)
            except OverflowError:
                pass  # beyond 64 bits, so it equals no constant
        return super().value(key)

    def values(self, keys: Numbers) -> Numbers:
        """The codes of many numbers; requires `numbers`."""
        assert self.numbers is not None
        place = np.searchsorted(self.numbers, keys)
        following = self.numbers[np.minimum(place, len(self.numbers) - 1)]
        codes: Numbers = 2 * place + (following == keys)
        return codes

    def word_values(self, words: Sequence[Key]) -> Numbers:
        """The codes of many strings."""
        place = list(map(partial(bisect_left, self.constants), words))
        following = map([*self.constants, None].__getitem__, place)
        is_constant = np.fromiter(map(eq, following, words), np.bool_, len(words))
        return 2 * np.array(place, np.int64) + is_constant

    def all_values(self, keys: Values) -> Numbers:
        """The codes of many values of any kind."""
        numbers = keys if isinstance(keys, np.ndarray) else as_numbers(keys)
        if self.numbers is not None and numbers is not None:
            return self.values(numbers)
        return np.array([self.value(key) for key in keys], np.int64)

    def union(self, other: ArrayCodes) -> ArrayCodes:
        """Codes over the constants of both."""
        if not len(other.constants) or not len(self.constants):
            return self if len(self.constants) else other
        if self.numbers is not None and other.numbers is not None:
            # Mostly a large and a small array: merging takes a tenth of the time of a set union.
            place = np.searchsorted(self.numbers, other.numbers)
            known = self.numbers[np.minimum(place, len(self.numbers) - 1)] == other.numbers
            more, place = other.numbers[~known], place[~known]
            return ArrayCodes(np.insert(self.numbers, place, more)) if len(more) else self
        return ArrayCodes([*self._keys(), *other._keys()])

    def places_in(self, wider: ArrayCodes) -> Numbers:
        """The position of each of these constants in `wider`, which contains them."""
        if not len(self.constants):
            return np.empty(0, np.int64)
        return wider.all_values(list(self._keys()) if self.numbers is None else self.numbers) // 2

    def _keys(self) -> Sequence[Key]:
        return self.constants if self.numbers is None else self.numbers.tolist()
