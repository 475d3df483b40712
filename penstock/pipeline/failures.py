"""Error messages for failed queries: the cause in a few lines, not a page of Java."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from penstock.errors import PipelineError
from penstock.storage import NO_ROOM, make_directory, open_appending

_PYTHON_TRACE = "Traceback (most recent call last):"
_JAVA_CAUSE = "\nCaused by: "
_ERROR_LINE = re.compile(
    r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (?P<text>.*)"
)
_TRACE_END = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*)|:?\s*)$")
_BEYOND = re.compile(
    r"\s*(at |Caused by|\.\.\. \d+ more|Driver stack|=== Streaming Query|SQLSTATE)"
)
_MAX_LINES = 8
# Errors of Hadoop and Spark about truncated, changed or missing files of a checkpoint.
_DAMAGED_CHECKPOINT = re.compile(
    r"ChecksumException|CANNOT_LOAD_STATE_STORE|STATE_STORE_\w*(CORRUPT|CHECKSUM|CHECKPOINT)\w*"
    r"|(EOFException|FileNotFoundException|IllegalStateException)[^\n]*/checkpoint/"
)
# Spark's error for a worker that died without an error message, on every attempt.
_DEAD_WORKER = re.compile(r"Python worker exited unexpectedly|Python worker .*crashed")
# Errors of the operating system and SQLite about a full disk.
_FULL_DISK = re.compile(
    r"No space left on device|Disk quota exceeded|disk is full|disk I/O error", re.IGNORECASE
)


def pipeline_error(failure: BaseException, log_file: Path) -> PipelineError:
    """The failure of a query as a PipelineError; the full text is appended to the log file."""
    text = _full_text(failure)
    _keep(text, log_file)
    primary, told = distil(text)
    lines = told.splitlines()
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    hints = [hint for hint in hints if hint != NO_ROOM]  # a longer hint follows below
    details = [line.removeprefix("detail: ") for line in lines if not line.startswith("hint: ")]
    return PipelineError(
        f"the pipeline stopped: {primary}",
        detail="\n".join(details),
        hint="; ".join([*hints, _hint(text, log_file)]),
    )


def _hint(text: str, log_file: Path) -> str:
    hint = f"all of it is in {log_file}"
    home = log_file.parent.parent
    if _FULL_DISK.search(text):
        return (
            f"the disk seems to be full: make room for {home}, and where Spark keeps temporary "
            f"files, then run it again: it goes on where it stopped; {hint}"
        )
    if not _DAMAGED_CHECKPOINT.search(text):
        if _DEAD_WORKER.search(text):
            hint = f"look how much memory was free, then run it again; {hint}"
        return hint
    return (
        f"the checkpoint seems to be damaged: penstock verify {home} says where; if it is, remove "
        f"what is in {home / 'checkpoint'}: the next run rebuilds it from the log; {hint}"
    )


def distil(text: str) -> tuple[str, str]:
    """The cause of a failure in one line, and further details."""
    # The last Python trace is the innermost: the worker that failed first. So is Java's last cause:
    # it names the file, where earlier ones only say that something failed.
    _, found, trace = text.rpartition(_PYTHON_TRACE)
    _, _, cause = text.rpartition(_JAVA_CAUSE)
    lines = trace.splitlines() if found else cause.strip().splitlines()
    for i, line in enumerate(lines):
        error = line if found else line.strip().removeprefix(": ")
        # A Python trace ends with the first line that is not indented, whatever the error class.
        matched = (_TRACE_END if found else _ERROR_LINE).match(error)
        if matched:
            kind, said = matched["kind"].rpartition(".")[2], (matched["text"] or "").strip()
            ours = matched["kind"].startswith("penstock.")
            primary = said if said and ours else f"{kind}: {said}" if said else kind
            return primary, "\n".join(_details(lines[i + 1 :]))
    telling = [line.strip() for line in (text if found else cause).splitlines() if line.strip()]
    return (telling[0] if telling else "Spark gave no reason"), ""


def _details(lines: list[str]) -> list[str]:
    """The rest of an error: its own further lines, up to Java's trace or Spark's description of the
    query."""
    details: list[str] = []
    for line in lines[:_MAX_LINES]:
        if not line.strip() or _BEYOND.match(line):
            break
        details.append(line.strip())
    return details


def _full_text(failure: BaseException) -> str:
    parts = [type(failure).__name__]
    with suppress(Exception):  # asks Java, which may be gone
        parts[0] = str(failure)
        java = getattr(failure, "_stackTrace", None) or getattr(failure, "getStackTrace", None)
        trace = java() if callable(java) else java
        if isinstance(trace, str):
            parts.append(trace)
    return "\n".join(parts)


def _keep(text: str, log_file: Path) -> None:
    # Reporting matters more than logging, and the disk may be full.
    with suppress(OSError):
        make_directory(log_file.parent)
        with open_appending(log_file) as log:
            log.write(f"{text}\n".encode(errors="replace"))
