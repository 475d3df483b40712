"""The buckets in which keyed stages keep their state on Spark: their partitions.

State is kept by bucket, so that a batch touches few state keys. How many there are is a property of
the home (`penstock init --buckets`): a checkpoint cannot be continued with another number.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.flow.exchange import Spread

CHUNK_SCHEMA = "bucket int, kind int, count int, chunk binary"
"""The rows of a shuffle (`penstock.pipeline.chunks`)."""

_SPARK_SEED = 42  # the seed of Spark's `hash` function


@cache
def spread_of(number: int) -> Spread:
    """The partitioner for this number of buckets."""
    from penstock.flow.exchange import Spread  # lazy: many processes need only the schema

    return Spread(bucket_labels(number))


@cache
def bucket_labels(number: int) -> tuple[int, ...]:
    """The grouping keys of the buckets.

    Spark partitions rows by a hash of the label. The labels are the smallest integers whose hashes
    differ modulo their number, so 2, 4, 8, ... partitions get the same number of buckets each. With
    labels 0 to 7, one of two partitions would get five.
    """
    found: dict[int, int] = {}
    for label in count():
        found.setdefault(spark_hash(label) % number, label)
        if len(found) == number:
            return tuple(sorted(found.values()))
    raise AssertionError("unreachable")


def spark_hash(value: int) -> int:
    """Spark's `hash` of an integer: Murmur3 of four bytes, as a signed number."""
    hashed = _mix(_SPARK_SEED, value & 0xFFFFFFFF) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> shift) * factor & 0xFFFFFFFF
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def _mix(seed: int, block: int) -> int:
    block = _rotate(block * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    return (_rotate(seed ^ block, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
