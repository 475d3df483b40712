"""Input files, and the batches in which their events are read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from penstock.errors import EventError, InputError


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Some events, and the position in the input after them. A pipe has no known length."""

    events: list[bytes]
    done_bytes: int
    total_bytes: int | None
    numbers: Sequence[int] = ()
    """The position of each event: the number of its line or row, from 1."""
    unit: str = "line"


@dataclass(frozen=True, slots=True)
class InputFile:
    """An open file: reading it again reads the same file, even if it was renamed or replaced."""

    path: Path
    name: str
    """For messages."""
    file: BufferedReader
    size: int

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Converts errors while the file is read: InputError if the operating system cannot read
        it, EventError if its content is invalid."""
        try:
            yield
        except OSError as error:
            if error.errno is not None:
                raise unreadable(self.path, error) from error
            # Arrow's error for a truncated or damaged file.
            raise EventError(f"{self.name} cannot be read", detail=str(error)) from error
        except Exception as error:
            # Arrow is not imported for files that do not need it, so its errors cannot be named
            # here.
            if not any(kind.__module__.startswith("pyarrow") for kind in type(error).__mro__):
                raise
            raise EventError(f"{self.name} cannot be read", detail=str(error)) from error


@contextmanager
def open_input(
    path: Path, within: Callable[[], AbstractContextManager[int]] | None = None
) -> Iterator[InputFile]:
    """Open a file for reading; InputError if that is not possible, or if it is not a regular file.

    `within` opens the directory of the file, if it is not trusted: a link in place of the file is
    then refused.
    """
    name = shown_name(path.name)
    # Without O_NONBLOCK, opening a pipe without a writer would block.
    flags = os.O_RDONLY | os.O_NONBLOCK
    try:
        if within is None:
            descriptor = os.open(path, flags)
        else:
            with within() as directory:
                descriptor = os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=directory)
    except OSError as error:
        raise unreadable(path, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InputError(f"cannot read the file: {name} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield InputFile(path, name, file, status.st_size)


def unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot read the file: {error.strerror or error}",
        detail=shown_name(str(path)),
        is_gone=isinstance(error, FileNotFoundError),
    )


def shown_name(name: str) -> str:
    """The name of a file for printing, on one line and in UTF-8: names are bytes."""
    if name.isprintable():
        return name
    raw = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw)
