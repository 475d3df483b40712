"""The process that runs one operator: its limits, its set-up, then batch after batch.

It exchanges frames over the pipes it was started with. The operator does not see them: its output
goes to stderr, and its input is empty.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import sys
import threading
from typing import Any, BinaryIO

from penstock.operators.evaluation import attempt_rows, set_up_operator
from penstock.operators.failures import FailureKind
from penstock.operators.frames import (
    EXIT_OUT_OF_MEMORY,
    FAILED,
    LENGTH_BYTES,
    READY,
    RESULTS,
    frame,
    frame_length,
)
from penstock.operators.interface import Operator
from penstock.operators.limits import Evaluated, NotEvaluated
from penstock.operators.result_codec import plain_outcome
from penstock.operators.validation import describe_exception
from penstock.packing import unpack

GRACE_SECONDS = 5.0
"""Added to the timeout that the parent enforces: the alarm is for a worker whose parent is gone."""


def main() -> None:
    """Ends when the parent closes its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    requests, replies = _private_pipes()
    threading.Thread(target=_end_with_parent, args=(requests.fileno(),), daemon=True).start()
    try:
        _serve(requests, replies)
    except MemoryError:
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:
        pass
    os._exit(0)  # threads and exit handlers of libraries have nothing to finish


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, replies


def _end_with_parent(descriptor: int) -> None:
    """Wait until nobody can write requests any more. (A parent-death signal would be sent when the
    thread that started us ends; the parent may have many threads.)"""
    waiting = select.poll()
    waiting.register(descriptor, 0)
    waiting.poll()
    os._exit(0)


def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    start = _read(requests)
    if start is None:
        return
    _, pickled, memory_limit_bytes, set_up_seconds = start
    _limit_memory(memory_limit_bytes)
    signal.setitimer(signal.ITIMER_REAL, set_up_seconds + GRACE_SECONDS)
    loaded = _load(pickled)
    failed = loaded if isinstance(loaded, NotEvaluated) else set_up_operator(loaded)
    _send(replies, (READY,) if failed is None else (FAILED, failed.kind.value, failed.reason))
    if isinstance(loaded, NotEvaluated) or failed is not None:
        return
    while True:
        signal.setitimer(signal.ITIMER_REAL, 0)
        request = _read(requests)
        if request is None:
            return
        signal.setitimer(signal.ITIMER_REAL, loaded.timeout_seconds + GRACE_SECONDS)
        _send(replies, _reply(loaded, request[1]))


def _reply(operator: Operator, rows: list[list[Any]]) -> tuple[object, ...]:
    attempted = attempt_rows(operator, [tuple(row) for row in rows])
    if isinstance(attempted, Evaluated):
        return RESULTS, list(map(plain_outcome, attempted.outcomes)), attempted.seconds
    return FAILED, attempted.kind.value, attempted.reason


def _load(pickled: bytes) -> Operator | NotEvaluated:
    try:
        loaded = pickle.loads(pickled)
    except Exception as error:  # noqa: BLE001 - whatever the import of a module raises
        reason = f"import: {describe_exception(error)}"
        return NotEvaluated(FailureKind.RAISED, reason, in_set_up=True)
    assert isinstance(loaded, Operator)
    return loaded


def _limit_memory(limit_bytes: int) -> None:
    """Limits private data; Linux counts no file mappings and no reserved space."""
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (limit_bytes, limit_bytes))


def _read(requests: BinaryIO) -> Any:
    """The next request; None at the end of input."""
    header = requests.read(LENGTH_BYTES)
    if len(header) < LENGTH_BYTES:
        return None
    length = frame_length(header)
    data = requests.read(length)
    return unpack(data) if len(data) == length else None


def _send(replies: BinaryIO, message: tuple[object, ...]) -> None:
    replies.write(frame(message))
    replies.flush()


if __name__ == "__main__":
    main()
