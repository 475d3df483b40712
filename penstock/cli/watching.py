"""Watching a directory while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli.output import count

if TYPE_CHECKING:
    from penstock.ingest import IngestResult


def file_text(took: IngestResult) -> str:
    """The result for one file, in one line."""
    refused = f"; refused: {took.refused}" if took.refused else ""
    left = f"; left in place: {took.left}" if took.left else ""
    return f"{took.name}: {count(took.events, 'event')}{refused}{left}"


@contextmanager
def watched(
    home: Path, directory: Path | None, *, once: bool, stop: threading.Event
) -> Iterator[None]:
    """Ingest files from the directory, if given, while the block runs; with `once`, before it runs.

    If watching fails, `stop` is set, and the error is raised after the block.
    """
    if directory is None:
        yield
        return
    from penstock.ingest import watch
    from penstock.storage import Home

    opened, failures = Home.open(home), list[BaseException]()
    ended = threading.Event()

    def take(until: threading.Event) -> None:
        watch(opened, directory, once=once, on_file=_told, stop=until)

    def beside() -> None:
        try:
            take(ended)
        except BaseException as error:  # noqa: BLE001 - raised again where the block ends
            failures.append(error)
            stop.set()

    if once:
        take(stop)
        yield
        return
    thread = threading.Thread(target=beside, name="penstock-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def _told(took: IngestResult) -> None:
    typer.echo(file_text(took), err=True)
