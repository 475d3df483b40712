"""`penstock publish`"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption
from penstock.errors import ChangeError, PenstockError
from penstock.flow.changes import Op
from penstock.ingest import MAX_BACKLOG, InputFormat, input_formats, shown_name

if TYPE_CHECKING:
    from penstock.catalog import Relation
    from penstock.cli.publishing import FileDone
    from penstock.ingest import ByteSource, InputBatch
    from penstock.storage import Home

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock publish shop changes.jsonl
  penstock publish shop stocks.csv --table stocks --op upsert
  penstock publish shop stocks.csv --table stocks --check
  penstock publish shop large.jsonl --resume
  generate-changes | penstock publish shop -
  echo '{"table": "stocks", "row": {"id": 4}}' | penstock publish shop -
"""

STANDARD_INPUT = Path("-")


def _format_named(name: str) -> InputFormat:
    known = input_formats()
    if name not in known:
        names = ", ".join(map(repr, known))
        raise typer.BadParameter(f"{name!r} is not one of {names}.")
    return known[name]


def publish(
    home: HomeArgument,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of events; - is standard input."),
    ],
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table of the rows in CSV and Parquet files."),
    ] = None,
    op: Annotated[
        Op, typer.Option(help="What to do with the rows of CSV and Parquet files.")
    ] = Op.INSERT,
    format_: Annotated[
        InputFormat | None,
        typer.Option(
            "--format",
            metavar=f"[{'|'.join(input_formats())}]",
            parser=_format_named,
            help="By default derived from the file name.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Dry run: report which events would be accepted; append nothing."
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Record progress in the log; the same command continues from there."
        ),
    ] = False,
    skip: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Skip the first N events of the first file."),
    ] = 0,
    max_backlog: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Maximum unprocessed records in the log; 0: no limit."
        ),
    ] = MAX_BACKLOG,
    as_json: JsonOption = False,
) -> None:
    """Append events to the log.

    A file holds one event on each line (plain, Debezium or CloudEvents), or is CSV or Parquet with
    the rows of one table. Events are checked when they are processed; one that cannot be applied
    goes to the quarantine. --check reports such events beforehand. With --resume, a file is
    published exactly once, however often the command is repeated and wherever it was interrupted;
    a file is identified by its path, content and table. Without it, an error says what is in the
    log and how to publish the rest.
    """
    from penstock.storage import Home

    opened = Home.open(home)
    request = _Request(home, table, _relation(opened, table), op, format_, resume, max_backlog)
    _check_files(files, request, skip)
    out = Output(as_json=as_json)
    if check:
        _check(opened, request, files, skip, out)
    else:
        _publish(opened, request, files, skip, out)


@dataclass(frozen=True, slots=True)
class _Request:
    """How files are to be published."""

    home: Path
    table: str | None
    relation: Relation | None
    op: Op
    format_: InputFormat | None
    resume: bool
    max_backlog: int

    @property
    def format_name(self) -> str:
        return "" if self.format_ is None else self.format_.name

    @property
    def options(self) -> list[str]:
        """As given on the command line."""
        given = ["--table", self.table] if self.table is not None else []
        given += ["--op", self.op.value] if self.op is not Op.INSERT else []
        return given + (["--format", self.format_.name] if self.format_ is not None else [])


def _relation(home: Home, table: str | None) -> Relation | None:
    if table is None:
        return None
    from penstock.registry import Registry

    with Registry(home) as registry:
        catalog = registry.catalog()
    relation = catalog.get(table)
    if relation is None:
        known = ", ".join(catalog.names()[:10]) or "none"
        raise ChangeError(f"unknown table {table}", hint=f"known tables: {known}")
    return relation


def _check_files(files: list[Path], request: _Request, skip: int) -> None:
    """Check all files before the first event is appended."""
    if request.resume and skip:
        raise typer.BadParameter("--resume finds the position itself: do not give --skip")
    needs_table = request.format_ is not None and request.format_.holds_rows
    for path in files:
        if path == STANDARD_INPUT:
            if needs_table:
                raise typer.BadParameter(f"{request.format_name} is not read from standard input")
            if request.resume:
                raise typer.BadParameter("--resume cannot read standard input again: use --skip")
        elif not os.path.isfile(path):
            raise typer.BadParameter(f"{shown_name(str(path))} is not a file")
    if needs_table and request.relation is None:
        raise typer.BadParameter(f"--format {request.format_name} needs --table")


def _publish(home: Home, request: _Request, files: list[Path], skip: int, out: Output) -> None:
    from penstock.cli.publishing import FileDone, tell_partial
    from penstock.cli.remarks import is_processed

    done = [FileDone(path, before=skip if i == 0 else 0) for i, path in enumerate(files)]
    try:
        for one in done:
            _publish_file(home, request, one)
    except PenstockError as error:
        tell_partial(error, done, _rest(request, done), home.log.end)
        raise
    except KeyboardInterrupt:
        out.note(f"in the log: {', '.join(one.text for one in done)}")
        out.note(f"to publish the rest: {_rest(request, done)}")
        raise
    processed = is_processed(home)
    events, before = (sum(counts) for counts in zip(*map(_counts, done), strict=True))
    facts: dict[str, object] = {"events": events, "log_end": home.log.end}
    known = {"events_before": before} if request.resume else {}
    out.result({**facts, "being_processed": processed, **known})
    was = "was" if before == 1 else "were"
    there = f"; {count(before, 'event')} {was} already in the log" if known and before else ""
    out.say(f"published {count(events, 'event')}{there}")
    if not processed:
        start = f"penstock run {request.home} --once"
        out.note(f"no process is running on this home; start one: {start}")


def _counts(one: FileDone) -> tuple[int, int]:
    return one.published.events, one.before


def _rest(request: _Request, done: list[FileDone]) -> str:
    from penstock.cli.publishing import rest_command

    if request.resume:
        return "repeat the command; it continues where it stopped"
    return rest_command(request.home, request.options, done)


def _publish_file(home: Home, request: _Request, one: FileDone) -> None:
    from penstock.cli.progress import bar
    from penstock.ingest import leave_out
    from penstock.ingest import publish as append

    def shown(done: InputBatch) -> None:
        advance(done.done_bytes, done.total_bytes or 0)

    with bar(f"publishing {one.path}", "bytes") as advance:
        most = request.max_backlog
        if request.resume:
            _resume(home, request, one, shown)
        else:
            batches = _batches(one.path, request)
            if one.before:
                batches = leave_out(batches, one.before, str(one.path))
            append(home, batches, one.published, progress=shown, max_backlog=most)
    one.complete = True


def _resume(
    home: Home, request: _Request, one: FileDone, shown: Callable[[InputBatch], None]
) -> None:
    from penstock.ingest import open_resumable
    from penstock.ingest import publish as append

    given = (request.relation, request.op, request.format_)
    with open_resumable(home, one.path, *given) as file:
        one.before = file.before
        append(
            home,
            file.rest(*given),
            one.published,
            append=file.append,
            progress=shown,
            max_backlog=request.max_backlog,
        )
        file.finish()


def _check(home: Home, request: _Request, files: list[Path], skip: int, out: Output) -> None:
    from penstock.cli.publishing import show_check
    from penstock.ingest import check_file, leave_out
    from penstock.registry import Registry

    with Registry(home) as registry:
        catalog = registry.catalog()
    checks = []
    for i, path in enumerate(files):
        batches = _batches(path, request)
        if skip and i == 0:
            batches = leave_out(batches, skip, str(path))
        checks.append(check_file(shown_name(str(path)), batches, catalog, home.log.end))
    show_check(out, checks)
    if not all(check.is_good for check in checks):
        raise typer.Exit(ChangeError.exit_code)


def _batches(path: Path, request: _Request) -> Iterator[InputBatch]:
    from penstock.ingest import read_file, read_lines

    if path == STANDARD_INPUT:
        return read_lines(cast("ByteSource", sys.stdin.buffer), "standard input")
    return read_file(path, request.relation, request.op, request.format_)
