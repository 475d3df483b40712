"""File permissions of a home: files inherit them from their directory.

A home is accessible to its owner only, or to a group as well. The umask of a process does not know
which, so directories and files get the permissions of their parent directory. In homes of earlier
releases, new files still get what the umask leaves.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

OWNER_ALONE = 0o700
OWNER_AND_GROUP = 0o2770  # with setgid, so that new files inherit the group

_FILE = 0o666  # never executable


def umask_of(home: Path) -> int:
    """The umask for child processes that do not use this module."""
    return 0o777 & ~stat.S_IMODE(home.stat().st_mode)


def make_directory(path: Path) -> None:
    """Create a directory, unless it exists, with the access rights of its parent."""
    above = stat.S_IMODE(path.parent.stat().st_mode)
    try:
        path.mkdir(mode=above & 0o777)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    if above & stat.S_IWGRP:
        path.chmod(above & 0o2777)


def open_file(path: Path, flags: int) -> int:
    """A descriptor of a file, which is created if needed with the access rights of its
    directory."""
    above = stat.S_IMODE(path.parent.stat().st_mode)
    is_for_group = bool(above & stat.S_IWGRP) and not path.exists()
    descriptor = os.open(path, flags | os.O_CREAT, above & _FILE)
    if is_for_group:
        os.fchmod(descriptor, above & _FILE)  # the umask may have removed it
    return descriptor


def open_new(path: Path) -> IO[bytes]:
    """An empty file for writing."""
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_TRUNC), "wb")


def open_appending(path: Path) -> IO[bytes]:
    """A file for appending."""
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND), "ab")
