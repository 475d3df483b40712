"""Progress on standard error, if that is a terminal."""

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
"""Called with the amount done and the total (0 if unknown)."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner for work of unknown length."""
    if not sys.stderr.isatty():  # loading Rich takes longer than most of this work
        yield
        return
    with text_console(to_stderr=True).status(literal(what)):
        yield


@contextmanager
def bar(what: str, unit: str = "") -> Iterator[Advance]:
    """A progress bar; indeterminate while the total is unknown."""
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
    """Progress of a pipeline: a status line on a terminal, otherwise one line per batch."""
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
