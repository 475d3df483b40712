"""Where compiled kernels are kept: one directory per user, Python, numba and CPU; and where other
things are that are made once for a user and a machine.

Nothing here loads numba, so asking whether kernels are compiled is cheap.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DIRECTORY_VARIABLE = "PENSTOCK_KERNEL_CACHE"
"""Names the directory to use instead of the user's cache directory."""
BOUNDS_VARIABLE = "NUMBA_BOUNDSCHECK"
"""numba's own switch for index checks in kernels; they make other machine code."""


def checks_bounds() -> bool:
    """Whether kernels are compiled with index checks."""
    return os.environ.get(BOUNDS_VARIABLE, "0") not in ("", "0")


def kernel_directory() -> Path | None:
    """The directory for this user and machine, made if it is missing; None if none is writable."""
    return private_directory("kernels", os.environ.get(DIRECTORY_VARIABLE), environment_name())


def private_directory(kind: str, chosen: str | None, below: str = "") -> Path | None:
    """A directory to keep things of one kind in, for this user alone and made if it is missing;
    None if none is writable."""
    return _directory(kind, chosen, os.environ.get("XDG_CACHE_HOME"), below)


@cache
def _directory(kind: str, chosen: str | None, cache_home: str | None, below: str) -> Path | None:
    for base in _candidates(kind, chosen, cache_home):
        if _is_usable(base / below):
            return base / below
    return None


def _candidates(kind: str, chosen: str | None, cache_home: str | None) -> Iterator[Path]:
    """The first that can be written is used: executors may run without a home directory."""
    if chosen:
        yield Path(chosen)
    if cache_home:
        yield Path(cache_home) / "penstock" / kind
    elif os.path.expanduser("~") != "~":
        yield Path("~/.cache/penstock").expanduser() / kind
    yield Path(__file__).parent / "__pycache__" / kind
    user = os.getuid() if hasattr(os, "getuid") else "all"
    yield Path(tempfile.gettempdir()) / f"penstock-{kind}-{user}"


def _is_usable(directory: Path) -> bool:
    """Machine code is run from here: the directory must belong to this user, and to nobody else
    (temporary directories are shared, and any user may have made one of this name)."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=directory).close()
        return all(_is_private(one) for one in (directory, directory.parent))
    except OSError:
        return False


def _is_private(directory: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    status = directory.stat()
    is_shared = bool(status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return status.st_uid in (os.getuid(), 0) and not is_shared


@cache
def environment_name() -> str:
    """What compiled kernels depend on besides their source; numba itself checks the CPU again."""
    python = f"{sys.implementation.name}{sys.version_info[0]}{sys.version_info[1]}"
    cpu = hashlib.sha256(_cpu_description().encode()).hexdigest()[:8]
    name = f"{python}-numba{_numba_version()}-{platform.machine()}-{cpu}"
    return f"{name}-bounds" if checks_bounds() else name


def _numba_version() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:
        return "none"


def _cpu_description() -> str:
    """Model and instruction sets of the first processor, where Linux says."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    first = text.split("\n\n", 1)[0].splitlines()
    return "\n".join(line for line in first if line.startswith(("model name", "flags", "Features")))


def remove_all_but_newest(files: Iterator[Path], count: int) -> None:
    """Bound a family of files; what another process removed first is gone just the same."""
    by_age: list[tuple[float, Path]] = []
    for file in files:
        try:
            by_age.append((file.stat().st_mtime, file))
        except OSError:
            continue
    for _, file in sorted(by_age, reverse=True)[count:]:
        file.unlink(missing_ok=True)
