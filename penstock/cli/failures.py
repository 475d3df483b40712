"""Error texts and exit codes of commands."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

import typer

from penstock.errors import (
    BacklogError,
    ChannelError,
    CorruptionError,
    ExtraError,
    NetworkError,
    OperatorError,
    PenstockError,
    PlanError,
    SqlError,
)
from penstock.json_text import json_line

INTERRUPTED = 130
"""128 + SIGINT: what a shell reports for a program ended by Ctrl-C."""
READER_GONE = 141
"""128 + SIGPIPE: what a shell reports for a program whose output pipe was closed."""
UNEXPECTED = 1
DAMAGED = CorruptionError.exit_code
DIFFERENT = 10
"""Used by `penstock verify`, which reports differences without raising an error."""

EXIT_CODES = {
    0: "done",
    UNEXPECTED: "something unexpected went wrong",
    2: "the command line is wrong",
    3: "a statement was refused",
    4: "a change or an event does not fit the tables",
    5: "there is no such subscription",
    6: "the home is missing or cannot be used",
    7: "a file of the home is damaged",
    8: "another process is running on the home",
    9: "Spark could not start, or the pipeline failed",
    DIFFERENT: "a content is not what its query returns",
    BacklogError.exit_code: "too many unprocessed records; try again later",
    ChannelError.exit_code: "notifications could not be delivered; they are sent again",
    ExtraError.exit_code: "an optional dependency (an extra) is not installed",
    PlanError.exit_code: "views cannot be planned within their limits",
    NetworkError.exit_code: "a broker, a link or an overlay is missing, unreachable or invalid",
    OperatorError.exit_code: "an operator is missing, badly defined or used wrongly",
    INTERRUPTED: "ended by Ctrl-C",
    READER_GONE: "the reader of the output closed the pipe",
}

_BEYOND_PYTHONS_TIME = "_PyTime_t"
"""Part of Python's error for a clock beyond its range. Any call may raise it, even an import."""

JSON_KEY = "penstock.json"
"""Key in the context of a command: whether it was called with --json."""
DEBUG_KEY = "penstock.debug"


def exit_code_of(error: BaseException) -> int:
    if isinstance(error, PenstockError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    return UNEXPECTED


def explain_failure(error: BaseException, *, as_json: bool, debug: bool) -> None:
    """Print the error to standard error; with --json, also to standard output."""
    if isinstance(error, BrokenPipeError):
        silence_standard_output()
        return
    if debug:
        traceback.print_exception(error)
    typer.echo(failure_text(error), err=True)
    if as_json:
        typer.echo(json_line({"error": _members(error)}))


def failure_text(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SqlError):
        return "\n".join(_reasons(error, error.excerpt()))
    if isinstance(error, PenstockError):
        return "\n".join(_reasons(error, ""))
    if isinstance(error, OSError) and error.strerror:
        from penstock.storage import NO_ROOM, is_full

        of = f" ({error.filename})" if error.filename else ""
        hint = f"\n  hint: {NO_ROOM}" if is_full(error) else ""
        return f"error: {error.strerror}{of}{hint}"
    if isinstance(error, OverflowError) and _BEYOND_PYTHONS_TIME in str(error):
        return (
            "error: the system clock is beyond the range that Python supports\n"
            f"  detail: {error}; the range ends in the year 2262\n"
            "  hint: correct the clock, then try again"
        )
    return (
        f"error: {type(error).__name__}: {error}\n"
        "  This is a bug in Penstock. Please report it, with what the same command prints after\n"
        "  `penstock --debug`."
    )


def _reasons(error: PenstockError, excerpt: str) -> list[str]:
    lines = [f"error: {error.primary}"]
    if excerpt:
        lines.append(excerpt)
    for name, text in (("detail", error.detail), ("hint", error.hint)):
        if text:
            lines.append(f"  {name}: " + text.replace("\n", "\n    "))
    return lines


def _members(error: BaseException) -> dict[str, object]:
    members: dict[str, object] = {"exit_code": exit_code_of(error), "kind": type(error).__name__}
    if isinstance(error, PenstockError):
        members |= {"primary": error.primary, "detail": error.detail, "hint": error.hint}
        members |= error.facts
    else:
        members |= {"primary": str(error) or type(error).__name__, "detail": "", "hint": ""}
    if isinstance(error, SqlError):
        members |= {"sql": error.sql, "position": error.position, "length": error.length}
    return members


def silence_standard_output() -> None:
    """Keep the interpreter from reporting a closed pipe when it exits."""
    with contextlib.suppress(OSError, ValueError):  # not a real file, so not a pipe either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code_help() -> str:
    lines = [f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["[bold]Exit codes[/bold]", *lines])
