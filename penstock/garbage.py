"""Pauses Python's garbage collector."""

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
