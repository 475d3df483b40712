"""Directories writable by untrusted users: opened step by step, never through a symbolic link.

A path says where a file was at one moment. Later a directory on the path may have become a link to
another one; a descriptor stays with what was opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from penstock.ingest.input_files import InputFile, open_input

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


@contextmanager
def open_directory(root: Path, inner: str = "", *, make: bool = False) -> Iterator[int]:
    """The descriptor of a directory below `root`, which itself may be a link.

    OSError if there is a link on the path below it, or no directory.
    """
    with ExitStack() as stack:
        descriptor = os.open(root, _DIRECTORY)
        stack.callback(os.close, descriptor)
        for part in PurePosixPath(inner).parts:
            if make:
                _make(part, descriptor)
            descriptor = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            stack.callback(os.close, descriptor)
        yield descriptor


def _make(name: str, within: int) -> None:
    try:
        os.mkdir(name, dir_fd=within)
    except FileExistsError:
        return
    os.fsync(within)


@contextmanager
def open_dropped(root: Path, name: str) -> Iterator[InputFile]:
    """A regular file below a directory; else InputError, also if it cannot be read."""
    with open_input(root / name, within=lambda: open_directory(root, _folder(name))) as source:
        yield source


def move_file(root: Path, name: str, target: str, inode: int) -> bool:
    """Move a file below the directory to another one below it, under a free name; False if another
    file has taken its place, which is not moved."""
    folder, last = _folder(name), PurePosixPath(name).name
    with (
        open_directory(root, folder) as here,
        open_directory(root, f"{target}/{folder}", make=True) as there,
    ):
        if os.stat(last, dir_fd=here, follow_symlinks=False).st_ino != inode:
            return False
        os.rename(last, _free_name(last, there), src_dir_fd=here, dst_dir_fd=there)
        os.fsync(there)
    return True


def _folder(name: str) -> str:
    folder = str(PurePosixPath(name).parent)
    return "" if folder == "." else folder


def _free_name(name: str, within: int) -> str:
    """The name, or one with a number appended, within the maximum length."""
    taken = set(os.listdir(within))
    path, most = PurePosixPath(name), os.fpathconf(within, "PC_NAME_MAX")
    free, number = name, 1
    while free in taken:
        end = f".{number}{path.suffix}"
        stem = os.fsencode(path.stem)[: most - len(os.fsencode(end))]
        free = os.fsdecode(stem) + end
        number += 1
    return free
