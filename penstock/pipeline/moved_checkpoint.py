"""Checkpoints that were moved since Spark wrote them.

Spark stores the locations of its state schemas as absolute paths. After a home was renamed,
restored from a backup or copied, Spark would look in the old place and find nothing or, worse,
something. So these paths are corrected before a run.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from zlib import crc32

from penstock.errors import HomeError
from penstock.storage import os_errors, write_aside

_MAGIC = b"crc\x00"
_HEADER_BYTES = len(_MAGIC) + 4
_PATHS = "stateSchemaFilePaths"
_LOCAL = "file:"


def correct_paths(checkpoint: Path) -> int:
    """Make a checkpoint refer to its own files; returns how many notes were wrong. For the holder
    of the processing lock; HomeError if a note cannot be read."""
    corrected = 0
    for note in sorted(checkpoint.glob("state/*/_metadata/v2/[0-9]*")):
        with os_errors("read the checkpoint", note):
            content = note.read_text(encoding="utf-8")
        right = _corrected(note, content, checkpoint)
        if right != content:
            with os_errors("correct the checkpoint", note):
                replace_file(note, right.encode())
            corrected += 1
    return corrected


def _corrected(note: Path, content: str, checkpoint: Path) -> str:
    """A note is a line with a version and a line of JSON."""
    version, newline, body = content.partition("\n")
    try:
        members = json.loads(body)
        for store in members["stateStoreInfo"]:
            paths = [_own_path(path, checkpoint) for path in store.get(_PATHS, ())]
            if paths == store.get(_PATHS, []):
                continue
            store[_PATHS] = paths
            body = ""
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise HomeError(
            f"the checkpoint cannot be read: {note.name} does not describe its state",
            detail=f"file {note}: {error}",
            hint=f"remove what is in {checkpoint}: the next run rebuilds it from the log",
        ) from error
    return f"{version}{newline}{body or json.dumps(members, separators=(',', ':'))}"


def _own_path(path: str, checkpoint: Path) -> str:
    """The same file below this checkpoint. Paths on other file systems are unchanged."""
    if not path.startswith(_LOCAL):
        return path
    _, state, rest = path.rpartition("/state/")
    return f"{_LOCAL}{checkpoint.absolute()}{state}{rest}" if state else path


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file of Spark's, and the checksum file that Hadoop keeps for it. If a crash lost
    the checksum file, none is written, and Hadoop does not check."""
    beside = path.with_name(f".{path.name}.crc")
    try:
        before = beside.read_bytes()
    except FileNotFoundError:
        write_aside(path, content)
        return
    beside.unlink()
    write_aside(path, content)
    write_aside(beside, hadoop_checksums(content, before))


def hadoop_checksums(content: bytes, like: bytes) -> bytes:
    """The checksum file for some content, with the same piece size as an existing one.

    Hadoop writes `.NAME.crc` beside every file of a local file system: `crc` and a zero byte, the
    number of bytes that one checksum covers, then the CRC-32 of each such piece.
    """
    if len(like) < _HEADER_BYTES:
        return b""
    (piece_bytes,) = struct.unpack_from(">I", like, len(_MAGIC))
    if not 0 < piece_bytes <= max(len(content), 1 << 20):
        return b""
    pieces = (content[i : i + piece_bytes] for i in range(0, len(content), piece_bytes))
    sums = b"".join(struct.pack(">I", crc32(piece)) for piece in pieces)
    return _MAGIC + struct.pack(">I", piece_bytes) + sums
