"""Output of commands: text and tables, or one JSON object.

With `--json`, standard output has that object and nothing else; notes go to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import typer

from penstock.json_text import json_line

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 160
"""Width in characters of tables printed to a file or a pipe."""


class Output:
    """The output of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        """Print text; nothing with --json."""
        if not self.as_json:
            typer.echo(text)

    def note(self, text: str) -> None:
        """Print a note to standard error, apart from what a program may read."""
        typer.echo(text, err=True)

    def result(self, members: Mapping[str, object]) -> None:
        """Print a JSON object; nothing without --json."""
        if self.as_json:
            typer.echo(json_line(members))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Iterable[object]],
        numbers: Collection[str] = (),
    ) -> None:
        """Print a table; nothing with --json. The columns in `numbers` are right-aligned."""
        if self.as_json:
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name in columns:
            side: Literal["left", "right"] = "right" if name in numbers else "left"
            table.add_column(literal(name), overflow="fold", justify=side)
        for row in rows:
            table.add_row(*(literal(shown(value)) for value in row))
        text_console().print(table)


def text_console(*, to_stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False)


def literal(text: str) -> str:
    """Escape text, so that Rich prints its brackets unchanged."""
    if "[" not in text and not text.endswith("\\"):
        return text  # nothing to escape: saves loading Rich, 30 ms of every command
    from rich.markup import escape

    return escape(text)


def shown(value: object) -> str:
    """A value of a row as text."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def count(number: int, noun: str, nouns: str = "") -> str:
    """A number and its noun: 1 record, 2,000 records."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def size(number: int) -> str:
    """A number of bytes with a unit: 812 B, 45 kB, 1,250.0 MB."""
    if number < 10_000:
        return f"{number:,} B"
    return f"{number / 1e3:,.0f} kB" if number < 10_000_000 else f"{number / 1e6:,.1f} MB"
