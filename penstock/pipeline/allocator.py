"""Memory that a batch frees is kept for the next one, which needs as much.

Left alone, the C library gives large blocks back to the system as soon as they are free, and gets
others from it, which the system has to find and to clear. For batches with 65 MB of messages that
took up to a seventh of all time, on a virtual machine, whose host has to find them too. Arrow's own
allocator gives memory back just as eagerly, so Arrow uses the C library's.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

KEPT_BYTES = 512 << 20
"""So much free memory at the end of the heap is kept; what exceeds it is given back."""

ENVIRONMENT = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES),
    "MALLOC_ARENA_MAX": "2",  # each keeps memory of its own
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For processes to be started: Java and the workers. Other C libraries than glibc pass over it."""

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's numbers for them


def keep_memory() -> None:
    """The same for this process, except for Arrow, of which it is too late to say."""
    with suppress(OSError, AttributeError):  # no glibc
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
