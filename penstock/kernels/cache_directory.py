"""The directory of compiled kernels: one per user, Python, numba and CPU; and directories for other
data that is computed once per user and machine.

Nothing here imports numba, so testing whether kernels are compiled is cheap.
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
"""Environment variable: the directory to use instead of the user's cache directory."""
BOUNDS_VARIABLE = "NUMBA_BOUNDSCHECK"
"""numba's switch for index checks in kernels, which changes the machine code."""


def checks_bounds() -> bool:
    """Whether kernels are compiled with index checks."""
    return os.environ.get(BOUNDS_VARIABLE, "0") not in ("", "0")


def kernel_directory() -> Path | None:
    """The directory for this user and machine, created if missing; None if none is writable."""
    return private_directory("kernels", os.environ.get(DIRECTORY_VARIABLE), environment_name())


def private_directory(kind: str, chosen: str | None, below: str = "") -> Path | None:
    """A directory for data of one kind, private to this user and created if missing; None if none
    is writable."""
    return _directory(kind, chosen, os.environ.get("XDG_CACHE_HOME"), below)


@cache
def _directory(kind: str, chosen: str | None, cache_home: str | None, below: str) -> Path | None:
    for base in _candidates(kind, chosen, cache_home):
        if _is_usable(base / below):
            return base / below
    return None


def _candidates(kind: str, chosen: str | None, cache_home: str | None) -> Iterator[Path]:
    """Candidates, of which the first writable one is used: executors may have no home directory."""
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
    """Whether the directory is private. Machine code is loaded from it, so it must belong to this
    user only (temporary directories are shared, and any user may have created this name)."""
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
    """What compiled kernels depend on besides their source; numba checks the CPU again itself."""
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
    """Model and instruction sets of the first processor, as Linux reports them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    first = text.split("\n\n", 1)[0].splitlines()
    return "\n".join(line for line in first if line.startswith(("model name", "flags", "Features")))


def remove_all_but_newest(files: Iterator[Path], count: int) -> None:
    """Keep the newest `count` files; files that another process removes meanwhile are ignored."""
    by_age: list[tuple[float, Path]] = []
    for file in files:
        try:
            by_age.append((file.stat().st_mtime, file))
        except OSError:
            continue
    for _, file in sorted(by_age, reverse=True)[count:]:
        file.unlink(missing_ok=True)
