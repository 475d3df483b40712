"""What commands print: text and tables for people, one JSON object for machines.

With `--json`, standard output holds that object and nothing else; remarks go to standard error.
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
"""Columns of a table that goes to a file or another program, where no terminal has a width."""


class Output:
    """Where one command writes."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        """The answer, for people."""
        if not self.as_json:
            typer.echo(text)

    def note(self, text: str) -> None:
        """A remark beside the answer: never mixed into what a program might read."""
        typer.echo(text, err=True)

    def result(self, members: Mapping[str, object]) -> None:
        """The answer, for machines."""
        if self.as_json:
            typer.echo(json_line(members))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Iterable[object]],
        numbers: Collection[str] = (),
    ) -> None:
        """The answer as a table, for people; the columns called `numbers` stand to the right."""
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
    """Text that Rich prints as it is, brackets included."""
    if "[" not in text and not text.endswith("\\"):
        return text  # nothing to escape: every command asks, and loading Rich takes 30 ms
    from rich.markup import escape

    return escape(text)


def shown(value: object) -> str:
    """A value of a row as people read it."""
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
    """A number of bytes as people read it."""
    if number < 10_000:
        return f"{number:,} B"
    return f"{number / 1e3:,.0f} kB" if number < 10_000_000 else f"{number / 1e6:,.1f} MB"
