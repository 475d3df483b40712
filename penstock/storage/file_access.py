"""Who may use the files of a home: whoever may use the directory they are in.

A home is for its owner alone, or for a group as well. The umask of a process does not know which:
so directories and files get what the directory above them has. Of homes that were made before that
was so, new files get what the umask leaves, as they always did.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

OWNER_ALONE = 0o700
OWNER_AND_GROUP = 0o2770  # with the bit that hands the group on to what is made inside

_FILE = 0o666  # files of ours are never programs


def umask_of(home: Path) -> int:
    """The umask for a process that works on a home and knows nothing of this."""
    return 0o777 & ~stat.S_IMODE(home.stat().st_mode)


def make_directory(path: Path) -> None:
    """Make a directory, unless it is there, for whom the one above it is."""
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
    """A descriptor of a file that is made if it is not there, for whom its directory is."""
    above = stat.S_IMODE(path.parent.stat().st_mode)
    is_for_group = bool(above & stat.S_IWGRP) and not path.exists()
    descriptor = os.open(path, flags | os.O_CREAT, above & _FILE)
    if is_for_group:
        os.fchmod(descriptor, above & _FILE)  # the umask may have taken it away
    return descriptor


def open_new(path: Path) -> IO[bytes]:
    """A file to write, empty."""
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_TRUNC), "wb")


def open_appending(path: Path) -> IO[bytes]:
    """A file to write at its end."""
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND), "ab")
