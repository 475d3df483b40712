"""Work that Ctrl-C and SIGTERM stop cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

LOOK_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Ended(Generic[Result]):
    result: Result
    by_interrupt: bool
    """Whether Ctrl-C stopped it early."""


async def run_until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Run a server until Ctrl-C or SIGTERM cancels it."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def run_interruptible(work: Callable[[threading.Event], Result]) -> Ended[Result]:
    """Run work that returns soon after the event passed to it is set.

    Ctrl-C and SIGTERM set the event; a second signal interrupts immediately. The work runs in
    another thread, because Spark started in the main thread would handle the signals itself and
    abort the current batch.
    """
    stop = threading.Event()
    received: list[int] = []
    results: list[Result] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            errors.append(error)

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        stop.set()

    thread = threading.Thread(target=target, name="penstock-run", daemon=True)
    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_EVERY_SECONDS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]
    return Ended(results[0], by_interrupt=signal.SIGINT in received)
