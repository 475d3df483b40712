"""Files in a directory: which are complete, in which order, and whose rows they hold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog import Catalog, Relation
from penstock.log.disk import os_errors
from penstock.log.files import CSV_SUFFIXES, LINE_SUFFIXES, PARQUET_SUFFIXES

SUFFIXES = LINE_SUFFIXES | CSV_SUFFIXES | PARQUET_SUFFIXES

TAKEN_DIRECTORY = "taken"
REFUSED_DIRECTORY = "refused"
_OURS = frozenset({TAKEN_DIRECTORY, REFUSED_DIRECTORY})

_UNFINISHED = (".", "_")
"""Names that begin like this are by custom those of files that are still written."""
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Dropped:
    """A file as it was found. Files are taken in this order: by time, then by name."""

    modified_ns: int
    name: str
    """Relative to the directory."""
    size: int
    inode: int


def dropped_files(directory: Path) -> list[Dropped]:
    """The files that are there for us, in the directory and one level below it, in order."""
    found = []
    with os_errors("look into the directory", directory):
        for path in _candidates(directory):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # gone meanwhile
            name = path.relative_to(directory).as_posix()
            found.append(Dropped(status.st_mtime_ns, name, status.st_size, status.st_ino))
    return sorted(found)


def _candidates(directory: Path) -> Iterable[Path]:
    for entry in os.scandir(directory):
        if entry.name.startswith(_UNFINISHED):
            continue
        if entry.is_dir() and entry.name not in _OURS:
            for inner in os.scandir(entry.path):
                if inner.is_file() and _is_ours(inner.name):
                    yield Path(inner.path)
        elif entry.is_file() and _is_ours(entry.name):
            yield Path(entry.path)


def _is_ours(name: str) -> bool:
    return not name.startswith(_UNFINISHED) and Path(name).suffix.lower() in SUFFIXES


def digest_of(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with os_errors("read the file", path), path.open("rb") as file:
        while block := file.read(_HASHED_BYTES):
            digest.update(block)
    return digest.hexdigest()


def table_of(name: str, catalog: Catalog) -> Relation | None:
    """Whose rows a CSV or Parquet file holds, told by its name.

    `stocks/anything.csv`, `stocks.csv`, and `stocks-2024-05-01.csv` or `stocks.7.csv` or
    `stocks_7.csv` belong to the table stocks; where several tables fit, to the one with the longest
    name.
    """
    folder, _, file = name.rpartition("/")
    if folder:
        return catalog.get(folder)
    stem = Path(file).stem.lower()
    fitting = [relation for relation in catalog if _fits(stem, relation.name.lower())]
    return max(fitting, key=lambda relation: len(relation.name), default=None)


def _fits(stem: str, table: str) -> bool:
    return stem == table or (stem.startswith(table) and stem[len(table)] in ".-_")
