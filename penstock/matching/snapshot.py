"""Segments as files: flat arrays that are memory-mapped, and a manifest that lists them.

A segment is written once under a unique name and never changed; the manifest is replaced
atomically, so a reader finds the old snapshot or the new one. Files that the new manifest does not
list are left for `sweep`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

from penstock.catalog import Relation
from penstock.errors import CorruptionError, HomeError
from penstock.matching.flatfile import read_arrays, write_arrays
from penstock.matching.segment import BoxSegment
from penstock.matching.segment_arrays import pack_segment, unpack_segment

FORMAT = 2
MANIFEST = "manifest.json"


def save_segments(directory: Path, segments: Iterable[BoxSegment]) -> None:
    """Write a snapshot: every segment anew, then the manifest."""
    directory.mkdir(parents=True, exist_ok=True)
    entries = []
    for segment in segments:
        name = f"segment-{uuid.uuid4().hex}.bin"
        arrays, texts = pack_segment(segment)
        write_arrays(directory / name, arrays, texts)
        entries.append([name, _checksum_of(directory / name)])
    checksum = crc32(json.dumps(entries).encode())
    text = json.dumps({"format": FORMAT, "segments": entries, "checksum": checksum})
    fresh = directory / f"{MANIFEST}.new"
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(directory / MANIFEST)


def load_segments(directory: Path, relation: Relation) -> tuple[BoxSegment, ...]:
    """Map the segments that the manifest lists."""
    return tuple(
        unpack_segment(relation, *read_arrays(directory / name)) for name, _ in _named(directory)
    )


def sweep(directory: Path) -> int:
    """Delete the segments that the manifest no longer lists; returns how many."""
    named = {name for name, _ in _named(directory)}
    stale = [path for path in directory.glob("segment-*.bin") if path.name not in named]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def damaged_segments(directory: Path) -> list[str]:
    """The segments whose checksum does not match. Reads all bytes, which mapping avoids;
    CorruptionError if the manifest itself is damaged."""
    return [
        name for name, checksum in _named(directory) if _checksum_of(directory / name) != checksum
    ]


def _checksum_of(path: Path) -> int | None:
    try:
        return crc32(path.read_bytes())
    except FileNotFoundError:
        return None


def _named(directory: Path) -> Sequence[tuple[str, int]]:
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise HomeError(
                f"{path.name} has format {manifest['format']}, this release reads {FORMAT}"
            )
        entries = manifest["segments"]
        if crc32(json.dumps(entries).encode()) != manifest["checksum"]:
            raise CorruptionError(f"{path} is damaged", detail="its checksum is wrong")
        return [(str(name), int(checksum)) for name, checksum in entries]
    except FileNotFoundError:
        raise HomeError(f"there is no snapshot in {directory}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{path} is not a manifest", detail=str(error)) from None
