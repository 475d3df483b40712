"""Segments as files: flat arrays that are mapped into memory, and a manifest that names them.

The only module of this package that touches files. A segment is written once under a name of its
own and never changed; the manifest is replaced in one step, so a reader finds the old snapshot or
the new one. Files that the new manifest does not name are left for `sweep`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.catalog import Relation
from penstock.errors import CorruptionError, HomeError
from penstock.matching.flat import pack_segment, unpack_segment
from penstock.matching.flatfile import read_arrays, write_arrays
from penstock.matching.segment import Segment

FORMAT = 1
_MANIFEST = "manifest.json"


def save_segments(directory: Path, segments: Iterable[Segment]) -> None:
    """Write a snapshot: every segment anew, then the manifest."""
    directory.mkdir(parents=True, exist_ok=True)
    names = []
    for segment in segments:
        name = f"segment-{uuid.uuid4().hex}.bin"
        arrays, texts = pack_segment(segment)
        write_arrays(directory / name, arrays, texts)
        names.append(name)
    text = json.dumps({"format": FORMAT, "segments": names})
    fresh = directory / f"{_MANIFEST}.new"
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(directory / _MANIFEST)


def load_segments(directory: Path, relation: Relation) -> tuple[Segment, ...]:
    """Map the segments that the manifest names."""
    return tuple(
        unpack_segment(relation, *read_arrays(directory / name)) for name in _named(directory)
    )


def sweep(directory: Path) -> int:
    """Delete the segments that the manifest no longer names; returns how many."""
    named = set(_named(directory))
    stale = [path for path in directory.glob("segment-*.bin") if path.name not in named]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def _named(directory: Path) -> Sequence[str]:
    path = directory / _MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise HomeError(
                f"{path.name} has format {manifest['format']}, this release reads {FORMAT}"
            )
        return [str(name) for name in manifest["segments"]]
    except FileNotFoundError:
        raise HomeError(f"there is no snapshot in {directory}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{path} is not a manifest", detail=str(error)) from None
