"""Input file formats. A format is one module of this package, with a `FORMAT`.

All of them are loaded to find the one for a file name, so a module imports heavy libraries (Arrow)
only when it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol

from penstock.catalog import Relation
from penstock.errors import EventError
from penstock.flow.changes import Op
from penstock.ingest.input_files import InputBatch, InputFile, open_input, shown_name

__all__ = [
    "InputFormat",
    "format_of",
    "input_formats",
    "known_suffixes",
    "read_file",
    "read_open_file",
]


class InputFormat(Protocol):
    """A file format for events.

    Reading takes bounded memory, whatever the file. Errors of single events are found later, in
    processing; EventError means that the file, or the rest of it, cannot be read.
    """

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def suffixes(self) -> frozenset[str]:
        """File name suffixes, in lower case."""

    @property
    def holds_rows(self) -> bool:
        """Whether a file holds rows of one relation, which must be given, instead of events."""

    def read(self, source: InputFile, relation: Relation | None, op: Op) -> Iterator[InputBatch]:
        """The events of a file, in order, in pieces; for formats with `holds_rows`, `relation` is
        given and `op` says what to do with the rows."""


@cache
def input_formats() -> Mapping[str, InputFormat]:
    """All formats by name."""
    found: list[InputFormat] = [
        import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__)
    ]
    return {one.name: one for one in found}


@cache
def known_suffixes() -> frozenset[str]:
    return frozenset(suffix for one in input_formats().values() for suffix in one.suffixes)


def format_of(path: Path) -> InputFormat:
    """The format for the suffix of a file name."""
    suffix = path.suffix.lower()
    for one in input_formats().values():
        if suffix in one.suffixes:
            return one
    raise EventError(
        f"{shown_name(path.name)} has no name that says what it holds",
        hint=f"known: {', '.join(sorted(known_suffixes()))}",
    )


def read_file(
    path: Path,
    relation: Relation | None = None,
    op: Op = Op.INSERT,
    format_: InputFormat | None = None,
) -> Iterator[InputBatch]:
    """The events of a file. Formats that hold rows need their relation. The format is determined by
    the suffix of the file name, unless it is given."""
    format_ = format_ or format_of(path)
    _check_relation(path, format_, relation)

    def read() -> Iterator[InputBatch]:
        with open_input(path) as source:
            yield from format_.read(source, relation, op)

    return read()


def read_open_file(
    source: InputFile,
    relation: Relation | None = None,
    op: Op = Op.INSERT,
    format_: InputFormat | None = None,
) -> Iterator[InputBatch]:
    """The same for an open file."""
    format_ = format_ or format_of(source.path)
    _check_relation(source.path, format_, relation)
    return format_.read(source, relation, op)


def _check_relation(path: Path, format_: InputFormat, relation: Relation | None) -> None:
    if format_.holds_rows and relation is None:
        raise EventError(
            f"{shown_name(path.name)} does not say which table its rows belong to",
            hint="name the table",
        )
