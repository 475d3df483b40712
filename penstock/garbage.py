"""Spares Python's garbage collector work that would find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage() -> Iterator[None]:
    """For creating many small objects at once. They are kept, or soon freed together: searching
    them for cycles meanwhile would take longer than the work."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def kept_for_long() -> Iterator[None]:
    """For creating millions of objects that are used for minutes. No later search for cycles looks
    at them: with a few gigabytes of them each would take seconds."""
    with without_garbage():
        yield
        gc.freeze()
