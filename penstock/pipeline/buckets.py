"""The buckets in which the stateful stages keep rows and groups.

State is kept by bucket, so that a batch touches few state keys. How many there are is a property of
the home (`penstock init --buckets`): a checkpoint can only go on with the number it began with.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from zlib import crc32

from penstock.storage.interfaces import DEFAULT_BUCKETS

_SPARK_SEED = 42  # of Spark's `hash` function


class Buckets:
    """The labels by which Spark tells buckets apart, and which keys are in which.

    Spark partitions rows by a hash of the label. Labels are the smallest whose hashes differ modulo
    their number, so 2, 4, 8, ... partitions get the same number of buckets each. Of labels 0 to 7,
    one of two partitions would get five.
    """

    def __init__(self, number: int = DEFAULT_BUCKETS) -> None:
        self.labels = _labels(number)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[int]:
        return iter(self.labels)

    @property
    def first(self) -> int:
        """The one that passes on what a batch has only once."""
        return self.labels[0]

    def of(self, key: bytes) -> int:
        """Where a packed key lives: the same in every process and on every machine."""
        return self.labels[crc32(key) % len(self.labels)]

    def in_turn(self, number: int) -> int:
        """For what could go to any bucket: to each by turns."""
        return self.labels[number % len(self.labels)]

    def phase(self, bucket: int) -> float:
        """A share of 1, another one for each bucket: to do things at different times."""
        return self.labels.index(bucket) / len(self.labels)


@cache
def _labels(number: int) -> tuple[int, ...]:
    found: dict[int, int] = {}
    for label in count():
        found.setdefault(spark_hash(label) % number, label)
        if len(found) == number:
            return tuple(sorted(found.values()))
    raise AssertionError("unreachable")


def spark_hash(value: int) -> int:
    """What Spark's `hash` gives for an integer: Murmur3 of four bytes, as a signed number."""
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
