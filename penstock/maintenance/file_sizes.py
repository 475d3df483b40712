"""Sizes of files that other processes may remove meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def files_below(directory: Path) -> list[Path]:
    """All files below a directory, in order. Files that vanish meanwhile are left out: Spark
    removes old ones at any time."""
    found = [Path(where, name) for where, _, names in os.walk(directory) for name in names]
    return sorted(path for path in found if path.is_file())


def total_bytes(paths: Iterable[Path]) -> int:
    """The bytes of those files that still exist."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
