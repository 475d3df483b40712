"""How far a log was acknowledged, beside the log: 8 bytes of offset, 4 of checksum.

Written after every append, without waiting for the disk. After a crash of the machine it may say
less than was acknowledged, never more.
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
    """Into a file that is there: the one that appending locks.

    The records are on disk, so nobody is told if this fails, for want of room perhaps.
    """
    raw = struct.pack("<Q", end)
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, raw + struct.pack("<I", crc32(raw)), 0)
        finally:
            os.close(descriptor)


def read_acknowledged(path: Path) -> int | None:
    """The offset; None if nobody wrote it, or if it is damaged."""
    try:
        raw = read_beginning(path, _FIELDS.size)
        end, checksum = _FIELDS.unpack(raw)
    except (OSError, struct.error):
        return None
    return int(end) if checksum == crc32(raw[:-4]) else None
