"""A run of the pipeline that goes on while a test does other things."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.pipeline.run import Progress, RunSummary, run

PATIENCE_SECONDS = 600  # only to end a test that hangs


class Running:
    """A run of the pipeline in a thread, until the block ends."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.batches: list[Progress] = []
        self.summary: RunSummary | None = None
        self._path = path
        self._options = options
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.summary = run(
            self._path, on_progress=self.batches.append, stop=self._stop, **self._options
        )

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self._thread.is_alive()
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.1)
