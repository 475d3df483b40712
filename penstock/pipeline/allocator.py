"""Allocator settings that keep freed memory for the next batch, which needs as much.

By default glibc returns large blocks to the system as soon as they are freed and requests new ones,
which the kernel has to find and zero. For batches with 65 MB of messages that took up to a seventh
of the time on a virtual machine, where the host has to find the pages too. Arrow's own allocator
returns memory just as eagerly, so Arrow is set to use the C library's.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

KEPT_BYTES = 512 << 20
"""Free memory kept at the top of the heap; anything above it is returned to the system."""

ENVIRONMENT = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES),
    "MALLOC_ARENA_MAX": "2",  # every arena keeps free memory of its own
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""For child processes: Java and the workers. C libraries other than glibc ignore these
variables."""

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's numbers for these options


def keep_memory() -> None:
    """The same settings for this process. Arrow is excepted: it has chosen its allocator
    already."""
    with suppress(OSError, AttributeError):  # no glibc
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
