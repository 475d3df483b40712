"""What every place that keeps the files of a home promises."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.errors import LockedError
from penstock.storage.file_store import FileStore, LocalFiles
from tests.storage.memory_files import MemoryFiles

REFUSAL = LockedError("somebody else has it")


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest) -> FileStore:
    return LocalFiles() if request.param == "local" else MemoryFiles()


def test_a_published_file_is_there_as_a_whole(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert store.names(tmp_path) == []
    store.publish(path, b"one", memoryview(b"two"))
    assert store.names(tmp_path) == ["a"]
    assert store.read(path) == b"onetwo"
    assert store.size(path) == 6
    store.publish(path, b"")
    assert (store.read(path), store.size(path)) == (b"", 0)


def test_reading_parts(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "a"
    store.publish(path, bytes(range(10)))
    assert store.read(path, 3, 4) == bytes(range(3, 7))
    assert store.read(path, 8, 100) == bytes([8, 9])
    assert store.read(path, 20, 5) == b""
    assert store.read(path, 7) == bytes([7, 8, 9])
    assert store.read(path, 0, 0) == b""


def test_what_is_not_there(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for ask in (store.read, store.size):
        with pytest.raises(FileNotFoundError):
            ask(path)
    with pytest.raises(FileNotFoundError):
        store.append(path, b"x", 0)
    with pytest.raises(FileNotFoundError):
        store.move(path, tmp_path / "b")
    store.remove(path)  # it need not be there
    assert store.names(tmp_path) == []


def test_appending(store: FileStore, tmp_path: Path) -> None:
    path = tmp_path / "a"
    store.publish(path, b"head")
    store.append(path, b"one", 4)
    store.append(path, b"two", 7)
    assert store.read(path) == b"headonetwo"


def test_moving_and_removing(store: FileStore, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    store.publish(a, b"1")
    store.publish(b, b"2")
    store.move(a, b)
    assert store.names(tmp_path) == ["b"]
    assert store.read(b) == b"1"
    store.remove(b)
    assert store.names(tmp_path) == []


def test_directories_are_apart(store: FileStore, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        store.publish(tmp_path / name / "a", name.encode())
    assert store.names(tmp_path / "x") == ["a"]
    assert store.read(tmp_path / "y" / "a") == b"y"


def test_changes_can_be_told(store: FileStore, tmp_path: Path) -> None:
    store.publish(tmp_path / "a", b"1")
    before = store.changed_ns(tmp_path)
    assert store.changed_ns(tmp_path) == before
    for _ in range(1_000_000):  # until the clock ticks
        store.publish(tmp_path / "b", b"1")
        store.remove(tmp_path / "b")
        if store.changed_ns(tmp_path) != before:
            break
    assert store.changed_ns(tmp_path) > before


def test_one_holder_of_a_lock(store: FileStore, tmp_path: Path) -> None:
    path, seen = tmp_path / "lock", list[str]()

    def ask() -> None:
        try:
            with store.lock(path, 0.0, REFUSAL):
                seen.append("had it")
        except LockedError:
            seen.append("refused")

    with store.lock(path, 0.0, REFUSAL):
        other = threading.Thread(target=ask)
        other.start()
        other.join()
    ask()
    assert seen == ["refused", "had it"]


def test_a_failed_append_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, path = LocalFiles(), tmp_path / "a"
    store.publish(path, b"head")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="No space"):
            store.append(path, b"one", 4)
    assert store.read(path) == b"head"


def test_what_a_crash_leaves_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalFiles()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(SystemExit))
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # nobody is there to tidy up
        with pytest.raises(SystemExit):
            store.publish(tmp_path / "a", b"1")
    assert "a" not in store.names(tmp_path)
    assert store.sweep(tmp_path) == 1
    assert store.names(tmp_path) == []
