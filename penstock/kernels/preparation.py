"""Ahead-of-time compilation of kernels, in a separate process.

Compiling all kernels of the fast gear takes a minute or two, once per machine and release, and
blocks no one: `kernels_ready` tests whether a set of kernels is compiled; while it is not, the
plain gear is used and `prepare_kernels` compiles them in the background. Neither imports numba.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from penstock.kernels.cache_directory import kernel_directory, remove_all_but_newest

KEPT_MARKS = 8
"""Mark files kept per set: other releases that this user runs have their own."""
LOWEST_PRIORITY = 19
GEAR_VARIABLE = "PENSTOCK_GEAR"
_PACKAGE_DIRECTORY = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class KernelSet:
    """Kernels that are used together."""

    name: str
    rooms: tuple[str, ...]
    """The rooms of this package that the kernels are compiled from."""
    warm_up: str
    """`module:function` that calls every kernel of the set with all argument types that occur."""


def gear_setting() -> str:
    """The value of PENSTOCK_GEAR; empty if it is not set.

    `plain`: always the plain gear. `fast`: the fast one; kernels that are not compiled yet are
    compiled on first use. Empty: the fast one once its kernels are compiled.
    """
    return os.environ.get(GEAR_VARIABLE, "")


def kernels_ready(kernels: KernelSet) -> bool:
    """Whether a set of kernels was compiled on this machine, from the current source.

    Costs one file system lookup; the first call in a process also reads the source, some
    milliseconds. Without a writable cache directory kernels are never ready.
    """
    mark = _mark_of(kernels)
    return mark is not None and mark.exists()


def prepare_kernels(kernels: KernelSet) -> subprocess.Popen[bytes]:
    """Start compiling a set of kernels, at lowest priority; the process ends when they are ready.

    It outlives this process. Only one such process of a user compiles the same set at a time: a
    second one exits immediately.
    """
    return start_beside(__name__, kernels.name, kernels.warm_up, *kernels.rooms)


def start_beside(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a module of this package in a detached process without output."""
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(_PACKAGE_DIRECTORY.parent), *([inherited] if inherited else [])])
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=_PACKAGE_DIRECTORY.parent,  # a lasting one: Java does not start in a deleted directory
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@cache
def start_preparation(kernels: KernelSet) -> subprocess.Popen[bytes] | None:
    """Start compiling a set of kernels, once per process; None if another process compiles it, or
    there is no writable cache directory."""
    return None if is_being_compiled(kernels) else prepare_kernels(kernels)


def is_being_compiled(kernels: KernelSet) -> bool:
    """Whether a process compiles the set; also True without a writable cache directory."""
    with _locked(kernels) as is_mine:
        return not is_mine


def compile_kernels(kernels: KernelSet) -> bool:
    """Compile a set of kernels in this process and mark it as ready; False if another process
    compiles it, or there is no writable cache directory."""
    with _locked(kernels) as is_mine:
        mark = _mark_of(kernels)
        if not is_mine or mark is None:
            return False
        module, _, function = kernels.warm_up.partition(":")
        getattr(import_module(module), function)()
        mark.touch()
        remove_all_but_newest(mark.parent.glob(f"{kernels.name}-*.ready"), KEPT_MARKS)
    return True


@contextmanager
def _locked(kernels: KernelSet) -> Iterator[bool]:
    """Whether this process holds the lock for compiling a set."""
    directory = kernel_directory()
    if directory is None:
        yield False
        return
    with open(directory / f"{kernels.name}.lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _mark_of(kernels: KernelSet) -> Path | None:
    """The file that marks a set as compiled."""
    directory = kernel_directory()
    if directory is None:
        return None
    return directory / f"{kernels.name}-{_source_digest(kernels.rooms)}.ready"


@cache
def _source_digest(rooms: tuple[str, ...]) -> str:
    """A digest of all source of these rooms: coarser than the digests of the cache, which finds
    most kernels unchanged after a change, but computed without importing them."""
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((_PACKAGE_DIRECTORY / room).rglob("*.py")):
            digest.update(f"{path.relative_to(_PACKAGE_DIRECTORY)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main(arguments: list[str]) -> None:
    """The process that `prepare_kernels` starts."""
    os.nice(LOWEST_PRIORITY)
    os.environ[GEAR_VARIABLE] = "fast"  # kernels are compiled when they are called
    name, warm_up, *rooms = arguments
    compile_kernels(KernelSet(name, tuple(rooms), warm_up))


if __name__ == "__main__":
    main(sys.argv[1:])
