"""The acknowledged end of a log, stored beside it: 8 bytes of offset, 4 of checksum.

Written after every append, without a sync. After a crash of the machine it may be lower than what
was acknowledged, never higher.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from penstock.storage.disk import read_beginning

_FIELDS = struct.Struct("<QI")


def write_acknowledged(path: Path, end: int) -> None:
    """Write into an existing file: the one that appending locks.

    The records are on disk already, so errors (a full disk, for example) are ignored.
    """
    raw = struct.pack("<Q", end)
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, raw + struct.pack("<I", crc32(raw)), 0)
        finally:
            os.close(descriptor)


def read_acknowledged(path: Path) -> int | None:
    """The offset; None if it was never written, or is damaged."""
    try:
        raw = read_beginning(path, _FIELDS.size)
        end, checksum = _FIELDS.unpack(raw)
    except (OSError, struct.error):
        return None
    return int(end) if checksum == crc32(raw[:-4]) else None
