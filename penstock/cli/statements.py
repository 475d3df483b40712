"""Splitting a script into statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from penstock.errors import PenstockError

# A string, a quoted name, a comment; or the end of a statement.
_PIECE = re.compile(r"'[^']*'?|\"[^\"]*\"?|--[^\n]*|/\*.*?(?:\*/|\Z)|;", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    sql: str
    line: int
    """Line number in the text, counted from 1."""


def split_statements(text: str) -> list[Statement]:
    """Split a text at semicolons, except in strings, quoted names and comments.

    A text without a semicolon has one statement per line.
    """
    said = _PIECE.sub(_without_comment, text)
    ends = [match.start() for match in _PIECE.finditer(text) if match[0] == ";"]
    if not ends:
        ends = [match.start() for match in re.finditer("\n", text)]
    statements, start = [], 0
    for end in [*ends, len(text)]:
        if said[start:end].strip():
            piece = text[start:end]
            blank = len(piece) - len(piece.lstrip())
            line = text.count("\n", 0, start + blank) + 1
            statements.append(Statement(piece.strip(), line))
        start = end + 1
    return statements


def _without_comment(piece: re.Match[str]) -> str:
    """Replace a comment by as many blanks; other pieces stay."""
    return " " * len(piece[0]) if piece[0].startswith(("--", "/*")) else piece[0]


def given_statements(sql: str | None, file: Path | None) -> list[Statement]:
    """The statements given to a command: one argument, or those of --file."""
    if sql is not None and file is not None:
        raise typer.BadParameter("give one statement or --file, not both")
    if sql is None and file is None:
        raise typer.BadParameter("give one statement after HOME, or --file")
    if file is None:
        assert sql is not None
        return [Statement(sql, 1)]
    try:
        statements = split_statements(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8: byte {error.start}") from None
    if not statements:
        raise typer.BadParameter(f"{file} contains no statement")
    return statements


@contextmanager
def in_place(statement: Statement, file: Path | None) -> Iterator[None]:
    """Add the line in the file to errors about a statement."""
    try:
        yield
    except PenstockError as error:
        if file is not None:
            where = f"in the statement at line {statement.line} of {file}"
            error.detail = f"{where}; {error.detail}" if error.detail else where
        raise
