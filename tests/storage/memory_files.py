"""Files in a dictionary, as an object store would keep them: the second `FileStore`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import LockedError


class MemoryFiles:
    def __init__(self) -> None:
        self._files: dict[Path, bytes] = {}
        self._changed_ns: dict[Path, int] = {}
        self._locks: dict[Path, threading.Lock] = {}
        self._guard = threading.Lock()

    def names(self, directory: Path) -> list[str]:
        return [path.name for path in list(self._files) if path.parent == directory]

    def changed_ns(self, directory: Path) -> int:
        return self._changed_ns.get(directory, 0)

    def size(self, path: Path) -> int:
        return len(self.read(path))

    def read(self, path: Path, position: int = 0, size: int | None = None) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(2, "No such file", str(path))
        content = self._files[path]
        return content[position : len(content) if size is None else position + size]

    def publish(self, path: Path, *content: bytes | memoryview) -> None:
        self._files[path] = b"".join(content)
        self._note_change(path)

    def append(self, path: Path, content: bytes, position: int) -> None:
        self._files[path] = self.read(path)[:position] + content

    def move(self, path: Path, target: Path) -> None:
        self._files[target] = self.read(path)
        self.remove(path)
        self._note_change(target)

    def remove(self, path: Path) -> None:
        self._files.pop(path, None)
        self._note_change(path)

    def sweep(self, directory: Path) -> int:
        return 0

    @contextmanager
    def lock(self, path: Path, timeout_seconds: float, refusal: LockedError) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(path, threading.Lock())
        if not lock.acquire(timeout=timeout_seconds):
            raise refusal
        try:
            yield
        finally:
            lock.release()

    def _note_change(self, path: Path) -> None:
        self._changed_ns[path.parent] = time.time_ns()
