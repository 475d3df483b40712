"""The values of one column in many rows, in the forms that kernels compare and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.catalog import Key
from penstock.joins.array_codes import ArrayCodes
from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_spans import concat
from penstock.kernels.msgpack_read import value_begins
from penstock.matching.events import KeyColumn, NumberColumn
from penstock.packing import pack
from penstock.predicates.codes import NULL_CODE

LOWEST = np.iinfo(np.int64).min


class RankedValues(NamedTuple):
    """The order of values, and their packed form."""

    ranks: Ints
    """By row: numbers in the order of the values, equal for equal values; NULL is the lowest."""
    keys: Ints
    """By row: the number itself, or an index into `begin` for strings."""
    words: Bytes8
    begin: Ints
    """Packed strings, concatenated, and where each begins; empty if values are numbers."""


def codes_of(column: KeyColumn | None, codes: ArrayCodes, count: int) -> Ints:
    """The codes of `count` values; all NULL if there is no column."""
    if column is None:
        return np.full(count, NULL_CODE)
    if not isinstance(column, NumberColumn):
        of_words = codes.word_values(column.dictionary)
        return np.append(of_words, NULL_CODE)[column.indices]  # index -1, NULL, reads the last
    if codes.numbers is not None:
        found = codes.values(column.keys)
    else:
        distinct, place = np.unique(column.keys, return_inverse=True)
        found = np.array([codes.value(key) for key in distinct.tolist()], np.int64)[place]
    return found if column.nulls is None else np.where(column.nulls, NULL_CODE, found)


def rank_values(column: KeyColumn | None, count: int) -> RankedValues:
    """`count` values, ranked; all NULL if there is no column."""
    if column is None:
        return RankedValues(np.zeros(count, np.int64), np.zeros(count, np.int64), *concat([]))
    if not isinstance(column, NumberColumn):
        words = column.dictionary
        of_words = np.empty(len(words) + 1, np.int64)
        of_words[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        of_words[-1] = -1  # read by index -1, NULL
        indices = column.indices.astype(np.int64)
        return RankedValues(of_words[indices], indices, *_packed_words(words))
    ranks = keys = column.keys
    if column.nulls is not None:
        if (keys == LOWEST).any():
            ranks = np.unique(keys, return_inverse=True)[1]
        ranks = np.where(column.nulls, LOWEST, ranks)
    return RankedValues(ranks, keys, *concat([]))


def _packed_words(words: Sequence[Key]) -> tuple[Bytes8, Ints]:
    """Packed strings, concatenated, and where each begins, with the end of the last."""
    data = np.frombuffer(bytearray(pack(words)), np.uint8)
    return data, np.concatenate([value_begins(data, 0), [len(data)]])
