"""Being a good worker process of Spark."""

from __future__ import annotations

import gc

_settled: object = None


def settle(occasion: object) -> None:
    """Tell Python that everything loaded so far is here to stay; once for each new occasion.

    After every task Spark makes the worker look for garbage. Looking through all modules and
    thousands of subscriptions takes 0.1 s and more, in each of some ten tasks of a batch; what is
    frozen is passed over.
    """
    global _settled
    if occasion != _settled:
        _settled = occasion
        gc.collect()
        gc.freeze()
