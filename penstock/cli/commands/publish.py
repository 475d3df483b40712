"""`penstock publish`"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption
from penstock.engine.changes import Op
from penstock.errors import ChangeError
from penstock.log.files import MAX_BACKLOG

if TYPE_CHECKING:
    from penstock.catalog import Relation
    from penstock.log import Home
    from penstock.log.files import ByteSource, InputBatch

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock publish shop changes.jsonl
  penstock publish shop stocks.csv --table stocks --op upsert
  generate-changes | penstock publish shop -
  echo '{"table": "stocks", "row": {"id": 4}}' | penstock publish shop -
"""

STANDARD_INPUT = Path("-")


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def publish(
    home: HomeArgument,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of events; - is standard input."),
    ],
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose rows CSV and Parquet files hold."),
    ] = None,
    op: Annotated[
        Op, typer.Option(help="What to do with the rows of CSV and Parquet files.")
    ] = Op.INSERT,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="By default what the name of a file ends in."),
    ] = None,
    max_backlog: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Refuse if more records than this are unprocessed; 0: never."
        ),
    ] = MAX_BACKLOG,
    as_json: JsonOption = False,
) -> None:
    """Append events to the log.

    A file holds one event on each line (plain, Debezium or CloudEvents), or is CSV or Parquet with
    the rows of one table. An event that cannot be applied is found out when it is processed, and
    is then in quarantine.
    """
    from penstock.cli.following import is_processed
    from penstock.cli.progress import bar
    from penstock.log import Home
    from penstock.log.files import publish as append

    opened = Home.open(home)
    relation = _relation(opened, table)
    _check_files(files, format_)
    events = 0
    for path in files:
        batches = _batches(path, relation, op, format_)
        with bar(f"publishing {path}", "bytes") as advance:
            events += append(
                opened,
                batches,
                lambda done: advance(done.done_bytes, done.total_bytes or 0),
                max_backlog,
            )
    processed = is_processed(opened)
    out = Output(as_json=as_json)
    out.result({"events": events, "log_end": opened.log.end, "being_processed": processed})
    out.say(f"published {count(events, 'event')}")
    if not processed:
        out.note(f"nobody processes this home now: penstock run {home} --once")


def _relation(home: Home, table: str | None) -> Relation | None:
    if table is None:
        return None
    from penstock.registry import Registry

    catalog = Registry(home).catalog()
    relation = catalog.get(table)
    if relation is None:
        known = ", ".join(catalog.names()[:10]) or "none"
        raise ChangeError(f"unknown table {table}", hint=f"known tables: {known}")
    return relation


def _check_files(files: list[Path], format_: Format | None) -> None:
    """Look at all files before the first event is appended."""
    for path in files:
        if path == STANDARD_INPUT:
            if format_ not in (None, Format.JSONL):
                raise typer.BadParameter(f"{format_} is not read from standard input")
        elif not path.is_file():
            raise typer.BadParameter(f"{path} is not a file")


def _batches(
    path: Path, relation: Relation | None, op: Op, format_: Format | None
) -> Iterator[InputBatch]:
    from penstock.log import files

    if path == STANDARD_INPUT:
        return files.read_lines(cast("ByteSource", sys.stdin.buffer), "standard input")
    if format_ is None:
        return files.read_file(path, relation, op)
    if format_ is Format.JSONL:
        return files.read_line_file(path)
    if relation is None:
        raise typer.BadParameter(f"--format {format_} needs --table")
    from penstock.log import tabular

    reader = tabular.read_csv if format_ is Format.CSV else tabular.read_parquet
    return reader(path, relation, op)
