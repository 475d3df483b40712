"""What to tell of a failed query: the cause in a few lines, not a page of Java."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.errors import PipelineError

_PYTHON_TRACE = "Traceback (most recent call last):"
_ERROR_LINE = re.compile(
    r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (?P<text>.*)"
)
_MAX_LINES = 8
# What Hadoop and Spark say of files of a checkpoint that are cut off, changed or missing.
_DAMAGED_CHECKPOINT = re.compile(
    r"ChecksumException|CANNOT_LOAD_STATE_STORE|STATE_STORE_\w*(CORRUPT|CHECKSUM|CHECKPOINT)\w*"
    r"|(EOFException|FileNotFoundException|IllegalStateException)[^\n]*/checkpoint/"
)


def pipeline_error(failure: BaseException, log_file: Path) -> PipelineError:
    """The failure of a query as an error of ours; all of it goes to the end of the log file."""
    text = _full_text(failure)
    _keep(text, log_file)
    primary, detail = distil(text)
    return PipelineError(
        f"the pipeline stopped: {primary}", detail=detail, hint=_hint(text, log_file)
    )


def _hint(text: str, log_file: Path) -> str:
    hint = f"all of it is in {log_file}"
    if not _DAMAGED_CHECKPOINT.search(text):
        return hint
    home = log_file.parent.parent
    return (
        f"the checkpoint seems to be damaged: penstock verify {home} says where; if it is, remove "
        f"what is in {home / 'checkpoint'}: the next run rebuilds it from the log; {hint}"
    )


def distil(text: str) -> tuple[str, str]:
    """The cause of a failure in one line, and what else is told about it."""
    # The last trace of Python is the innermost: the worker that failed first.
    _, found, trace = text.rpartition(_PYTHON_TRACE)
    lines = trace.splitlines() if found else text.strip().splitlines()
    for i, line in enumerate(lines):
        matched = _ERROR_LINE.match(line if found else line.strip().removeprefix(": "))
        if matched:
            kind = matched["kind"].rpartition(".")[2]
            primary = matched["text"] or kind
            ours = matched["kind"].startswith("penstock.")
            return primary if ours else f"{kind}: {primary}", "\n".join(_details(lines[i + 1 :]))
    return (lines[0] if lines else "Spark gave no reason"), ""


def _details(lines: list[str]) -> list[str]:
    """The rest of a Python error: its own further lines, up to where Java's trace begins."""
    details: list[str] = []
    for line in lines[:_MAX_LINES]:
        if not line.strip() or re.match(r"\s*(at |Caused by|\.\.\. \d+ more|Driver stack)", line):
            break
        details.append(line.strip())
    return details


def _full_text(failure: BaseException) -> str:
    parts = [str(failure)]
    java = getattr(failure, "_stackTrace", None) or getattr(failure, "getStackTrace", None)
    trace = java() if callable(java) else java
    if isinstance(trace, str):
        parts.append(trace)
    return "\n".join(parts)


def _keep(text: str, log_file: Path) -> None:
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("a", encoding="utf-8") as log:
        log.write(f"{text}\n")
