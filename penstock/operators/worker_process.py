"""Operators in processes of their own, with timeouts and memory limits enforced.

One process per operator: a crash, a leak or a slow set-up affects no other operator. It is started
on first use, with a fresh interpreter (a fork would copy the threads and locks of a process with a
JVM), serves batch after batch, and ends with its parent, however that ends.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Any

from penstock.errors import OperatorError
from penstock.operators.failures import FailureKind
from penstock.operators.frames import (
    EXIT_OUT_OF_MEMORY,
    FAILED,
    LENGTH_BYTES,
    READY,
    RESULTS,
    START,
    frame,
    frame_length,
    frame_of_rows,
)
from penstock.operators.interface import Operator, StoredRow
from penstock.operators.limits import (
    Evaluated,
    Evaluation,
    NotEvaluated,
    Pace,
    evaluate_in_parts,
)
from penstock.operators.result_codec import read_outcome
from penstock.operators.validation import describe_exception
from penstock.packing import pack, unpack

MAX_PROCESSES = 32
"""Per evaluator; the least recently used one is ended when another operator is needed. An idle one
costs the memory of an interpreter and of the operator's set-up."""
MAX_PART_BYTES = 8 << 20
"""Maximum size of the arguments sent together, if of several rows."""
_TOO_LARGE = NotEvaluated(FailureKind.MEMORY, "more than MAX_PART_BYTES at once")
_CHUNK_BYTES = 1 << 20
_PROGRAM = "from penstock.operators.worker_main import main; main()"


class ProcessLostError(Exception):
    """A worker process that was lost; it has been ended."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class WorkerProcess:
    """A child process, and frames to and from it with a deadline."""

    def __init__(self) -> None:
        paths = [str(path) or os.getcwd() for path in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # to kill it with all its descendants
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exchange(self, request: bytes, seconds: float) -> Any:
        """Send a frame and return the reply; ProcessLostError if there is none in time."""
        deadline = time.monotonic() + seconds
        try:
            self._send(request, deadline)
            length = frame_length(self._receive(LENGTH_BYTES, deadline))
            return unpack(self._receive(length, deadline))
        except TimeoutError:
            self.end()
            raise ProcessLostError(
                FailureKind.TIMEOUT, f"no result after {seconds:g} seconds"
            ) from None
        except OSError:
            raise self._death() from None
        except ValueError as error:
            self.end()
            raise ProcessLostError(FailureKind.GARBAGE, f"its process sent {error}") from None

    def _send(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            _wait(self._in, select.POLLOUT, deadline)
            rest = rest[os.write(self._in, rest[:_CHUNK_BYTES]) :]

    def _receive(self, length: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while length:
            _wait(self._out, select.POLLIN, deadline)
            part = os.read(self._out, min(length, _CHUNK_BYTES))
            if not part:
                raise BrokenPipeError
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _death(self) -> ProcessLostError:
        """Why the process ended by itself: it closed its pipe, so killing it changes nothing."""
        self.end()
        status = self._process.returncode
        if status == EXIT_OUT_OF_MEMORY:
            return ProcessLostError(FailureKind.MEMORY, "MemoryError")
        how = f"killed by {_signal_name(-status)}" if status < 0 else f"exited with status {status}"
        return ProcessLostError(FailureKind.DIED, how)

    def end(self) -> None:
        """Kill the process and all processes it has started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._close_pipes()
        self._process.wait()

    def abandon(self) -> None:
        """For a copy of this object after a fork: the process belongs to the one that started
        it."""
        self._close_pipes()
        self._process.returncode = 0

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _wait(descriptor: int, event: int, deadline: float) -> None:
    waiting = select.poll()
    waiting.register(descriptor, event)
    left = deadline - time.monotonic()
    if left <= 0 or not waiting.poll(left * 1_000):
        raise TimeoutError


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(slots=True)
class _Served:
    """An operator and the process that runs it, if there is one."""

    operator: Operator
    pickled: bytes
    pace: Pace
    process: WorkerProcess | None = None

    def attempt(self, rows: Sequence[StoredRow]) -> Evaluated | NotEvaluated:
        packed = list(map(pack, rows))
        if len(rows) > 1 and sum(map(len, packed)) > MAX_PART_BYTES:
            return _TOO_LARGE
        was_fresh = self.process is None
        if was_fresh:
            failed = self._start()
            if failed is not None:
                return failed
        assert self.process is not None
        try:
            reply = self.process.exchange(frame_of_rows(packed), self.operator.timeout_seconds)
            return self._read(reply, len(rows), was_fresh)
        except ProcessLostError as lost:
            self.process = None
            return NotEvaluated(lost.kind, lost.reason, lost_process=True, was_fresh=was_fresh)

    def _start(self) -> NotEvaluated | None:
        try:
            self.process = WorkerProcess()
        except OSError as error:  # neither a row nor the operator is at fault
            raise OperatorError(
                f"no process can be started for operator {self.operator.name}", detail=str(error)
            ) from error
        limit, seconds = self.operator.memory_limit_bytes, self.operator.set_up_timeout_seconds
        try:
            reply = self.process.exchange(frame((START, self.pickled, limit, seconds)), seconds)
        except ProcessLostError as lost:
            self.process = None
            return NotEvaluated(lost.kind, f"set-up: {lost.reason}", in_set_up=True)
        if reply == [READY]:
            return None
        self.end()
        kind, reason = _failed(reply)
        return NotEvaluated(kind, reason, in_set_up=True)

    def _read(self, reply: Any, rows: int, was_fresh: bool) -> Evaluated | NotEvaluated:
        if isinstance(reply, list) and len(reply) == 3 and reply[0] == RESULTS:
            # An operator can write to all files of its process, including this pipe.
            with suppress(TypeError, ValueError, AttributeError):
                outcomes = [read_outcome(self.operator, plain) for plain in reply[1]]
                seconds = float(reply[2])
                if len(outcomes) == rows and 0 <= seconds < inf:
                    return Evaluated(outcomes, seconds)
        kind, reason = _failed(reply)
        if kind is FailureKind.MEMORY:
            self.end()  # the cause of the full memory may still be there
        return NotEvaluated(kind, reason, kind is FailureKind.MEMORY, was_fresh)

    def end(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None


def _failed(reply: Any) -> tuple[FailureKind, str]:
    """Kind and reason of an unexpected reply."""
    if isinstance(reply, list) and len(reply) == 3 and reply[0] == FAILED:
        with suppress(ValueError):
            return FailureKind(reply[1]), str(reply[2])
    return FailureKind.GARBAGE, "its process sent something else than results"


def check_sendable(operator: Operator, pickler: Callable[[Operator], bytes]) -> bytes:
    """The pickled operator; OperatorError if it cannot be pickled."""
    try:
        return pickler(operator)
    except Exception as error:
        raise OperatorError(
            f"operator {operator.name} cannot be sent to another process",
            detail=describe_exception(error),
            hint="define it at the top level of a module that can be imported",
        ) from error


class ProcessEvaluator:
    """Evaluates operators in child processes, which end when it is closed or this process ends."""

    def __init__(
        self,
        *,
        pickler: Callable[[Operator], bytes] = pickle.dumps,
        max_processes: int = MAX_PROCESSES,
    ) -> None:
        """`pickler`: how operators are serialised. The default works for those whose module can be
        imported; the output of another one must be readable by `pickle.loads`."""
        self._pickler = pickler
        self._max_processes = max_processes
        self._served: OrderedDict[str, _Served] = OrderedDict()
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation:
        with self._lock:
            served = self._serve(operator)
            return evaluate_in_parts(operator, rows, served.attempt, served.pace)

    def _serve(self, operator: Operator) -> _Served:
        self._forget_after_fork()
        known = self._served.get(operator.name)
        if known is not None and known.operator is not operator:
            known.end()  # another version
            known = None
        if known is None:
            pace = Pace(operator.timeout_seconds, operator.cost_seconds)
            known = self._served[operator.name] = _Served(
                operator, check_sendable(operator, self._pickler), pace
            )
        self._served.move_to_end(operator.name)
        running = [one for one in self._served.values() if one.process is not None]
        if known.process is None and len(running) >= self._max_processes:
            running[0].end()
        return known

    def _forget_after_fork(self) -> None:
        if self._owner == os.getpid():
            return
        for served in self._served.values():
            if served.process is not None:
                served.process.abandon()
        self._served.clear()
        self._owner = os.getpid()

    def close(self) -> None:
        with self._lock:
            self._forget_after_fork()
            for served in self._served.values():
                served.end()

    def __enter__(self) -> ProcessEvaluator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
