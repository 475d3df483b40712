"""Lists a watched directory: its files in order, and the tables of their rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from penstock.catalog import Catalog, Relation
from penstock.ingest.directories import open_directory
from penstock.ingest.formats import known_suffixes
from penstock.storage import home_around, os_errors

TAKEN_DIRECTORY = "taken"
REFUSED_DIRECTORY = "refused"
_OURS = frozenset({TAKEN_DIRECTORY, REFUSED_DIRECTORY})

_UNFINISHED = (".", "_")
"""By convention, names with these prefixes are files that are still being written."""
_HASHED_BYTES = 1 << 20

LINK = "a symbolic link is not followed"
NO_FILE = "it is not a regular file"
HOME = "it is a penstock home"


@dataclass(frozen=True, slots=True, order=True)
class DroppedFile:
    """A file as it was found. Files are ingested in this order: by time, then by name."""

    modified_ns: int
    name: str
    """Relative to the directory. Invalid UTF-8 is represented by lone surrogates."""
    size: int
    inode: int


@dataclass(slots=True)
class DirectoryListing:
    """The files in a directory and one level below it."""

    files: list[DroppedFile] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """Names with an input format that are skipped, and why."""


def list_files(directory: Path) -> list[DroppedFile]:
    """The files to ingest, in order."""
    return list_directory(directory).files


def list_directory(directory: Path) -> DirectoryListing:
    found = DirectoryListing()
    with os_errors("look into the directory", directory):
        for entry in _entries(directory, ""):
            if entry.name in _OURS:
                continue
            if entry.is_dir(follow_symlinks=False):
                if home_around(directory / entry.name) is not None:
                    found.left[entry.name] = HOME
                else:
                    _look_below(directory, entry.name, found)
            elif entry.is_symlink() and entry.is_dir():
                found.left[entry.name] = LINK
            else:
                _add(entry, entry.name, found)
    found.files.sort()
    return found


def _look_below(directory: Path, folder: str, found: DirectoryListing) -> None:
    try:
        for entry in _entries(directory, folder):
            _add(entry, f"{folder}/{entry.name}", found)
    except FileNotFoundError:
        return  # gone meanwhile
    except OSError as error:
        found.left[folder] = f"it cannot be looked into: {error.strerror}"


def _entries(directory: Path, folder: str) -> Iterator[os.DirEntry[str]]:
    with open_directory(directory, folder) as descriptor, os.scandir(descriptor) as entries:
        for entry in entries:
            if not entry.name.startswith(_UNFINISHED):
                yield entry


def _add(entry: os.DirEntry[str], name: str, found: DirectoryListing) -> None:
    if Path(entry.name).suffix.lower() not in known_suffixes():
        return
    if entry.is_symlink():
        found.left[name] = LINK
    elif not entry.is_file(follow_symlinks=False):
        found.left[name] = NO_FILE
    else:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone meanwhile
        found.files.append(DroppedFile(status.st_mtime_ns, name, status.st_size, status.st_ino))


def digest_of(file: BinaryIO) -> str:
    """A digest of a file. Reads it all, and seeks back to its beginning."""
    digest = hashlib.blake2b(digest_size=16)
    while block := file.read(_HASHED_BYTES):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def table_of(name: str, catalog: Catalog) -> Relation | None:
    """The table of a CSV or Parquet file, according to its name.

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
