"""Garbage-collector settings for Spark's Python workers."""

from __future__ import annotations

import gc

_settled: object = None


def settle(occasion: object) -> None:
    """Freeze everything loaded so far, once for each new occasion.

    Spark runs a full collection after every task. Traversing all modules and thousands of
    subscriptions takes 0.1 s and more, in each of some ten tasks of a batch; frozen objects are
    skipped.
    """
    global _settled
    if occasion != _settled:
        _settled = occasion
        gc.collect()
        gc.freeze()
