"""Progress on standard error, where a terminal shows it: silent in files and pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from penstock.cli.output import count, literal, text_console

if TYPE_CHECKING:
    from penstock.pipeline.run import Progress

Advance = Callable[[int, int], None]
"""Takes how much is done, and how much there is in all (0 if nobody knows)."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life while something of unknown length is done."""
    if not sys.stderr.isatty():  # loading Rich takes longer than most of what is waited for
        yield
        return
    with text_console(to_stderr=True).status(literal(what)):
        yield


@contextmanager
def bar(what: str, unit: str = "") -> Iterator[Advance]:
    """A bar that fills up; it swings to and fro while nobody knows how much there is to do."""
    from rich import progress

    console = text_console(to_stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[done]}"),
        progress.TimeElapsedColumn(),
    )
    silent = not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=silent) as shown:
        task = shown.add_task(literal(what), total=None, done="")

        def advance(done: int, total: int) -> None:
            so_far = f"{done:,}{f' of {total:,}' if total else ''} {unit}"
            shown.update(task, completed=done, total=total or None, done=so_far)

        yield advance


@contextmanager
def batches_shown() -> Iterator[Callable[[Progress], None]]:
    """What a run of the pipeline does: a line that changes, or, in a file, one line per batch."""
    console = text_console(to_stderr=True)
    if not console.is_terminal:
        yield lambda done: typer.echo(_batch_text(done), err=True)
        return
    with console.status("starting Spark") as status:
        yield lambda done: status.update(literal(_batch_text(done)))


def _batch_text(done: Progress) -> str:
    bad = f", {count(done.bad, 'event')} into quarantine" if done.bad else ""
    bad += f", {count(done.skipped, 'event')} skipped" if done.skipped else ""
    return (
        f"batch {done.batch}: {done.done:,} of {count(done.total, 'record')} processed, "
        f"{count(done.messages, 'message')}{bad}, {done.seconds:.1f} s"
    )
