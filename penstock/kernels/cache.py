"""The cache of compiled kernels, which replaces numba's own.

numba's cache detects a change in a kernel's own file, but not in a kernel or constant of another
file that was compiled into it; and it raises on files that an earlier layout of modules wrote. Here
every specialisation is one file, named by a digest of all source that it was compiled from. A file
that cannot be read back is ignored and written again: the cache never fails.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba.core import compiler, serialize

from penstock.kernels.cache_directory import kernel_directory, remove_all_but_newest

KEPT_FILES = 128
"""Files kept per kernel, the newest ones: the most general kernels have some fifty specialisations,
at some 100 kB each."""
_HASH_BYTES = 32
# numba's own serialisation of compiled code, which has no type hints.
_rebuild: Any = compiler.CompileResult._rebuild
_dumps: Any = serialize.dumps


class KernelCache:
    """The compiled specialisations of one kernel, as files; numba's cache interface.

    Files are written to a temporary name and renamed, so processes may share them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._prefix = f"{function.__module__}.{function.__qualname__}-"
        self._digest: str | None = None
        _source_hash(function.__module__)  # now, because the file may change while this runs

    @property
    def cache_path(self) -> str | None:
        directory = kernel_directory()
        return None if directory is None else str(directory)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature; None if it must be compiled."""
        target_context.refresh()
        path = self._path(signature, target_context.codegen())
        if path is None:
            return None
        try:
            data = path.read_bytes()
            if hashlib.sha256(data[_HASH_BYTES:]).digest() != data[:_HASH_BYTES]:
                return None
            return _rebuild(target_context, *pickle.loads(data[_HASH_BYTES:]))
        except Exception:  # noqa: BLE001 - pickles of another layout may raise anything
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a compiled kernel, if there is a writable directory."""
        path = self._path(signature, compiled.codegen)
        if path is None or not _is_cachable(compiled):
            return
        aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
        try:
            data: bytes = _dumps(compiled._reduce())
            aside.write_bytes(hashlib.sha256(data).digest() + data)
            aside.replace(path)
            remove_all_but_newest(path.parent.glob(f"{self._prefix}*.kernel"), KEPT_FILES)
        except OSError:
            aside.unlink(missing_ok=True)

    def enable(self) -> None:
        """Always on; part of numba's interface, like the next two."""

    def disable(self) -> None: ...

    def flush(self) -> None: ...

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        directory = kernel_directory()
        if directory is None:
            return None
        if self._digest is None:
            self._digest = digest_of(self._function)
        key = f"{signature} {codegen.magic_tuple()}"
        specialisation = hashlib.sha256(key.encode()).hexdigest()[:16]
        return directory / f"{self._prefix}{self._digest}-{specialisation}.kernel"


def _is_cachable(compiled: Any) -> bool:
    """False if the machine code contains addresses of this process, or parts are not compiled."""
    return not compiled.library.has_dynamic_globals and not compiled.lifted


def digest_of(function: Callable[..., Any]) -> str:
    """A digest of everything that a kernel is compiled from: the files of all kernels and types
    that it reaches, and the values of the constants they use.

    Call only after the module is loaded: a kernel may call kernels defined below it.
    """
    packages = {_package_of(digest_of), _package_of(function)}
    parts: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        parts.add(_source_hash(one.__module__))
        scope = {**vars(sys.modules[one.__module__]), **_closure_of(one)}
        for name in _names_in(one) & scope.keys():
            value = _definition(scope[name])
            if isinstance(value, FunctionType | type):
                if _package_of(value) in packages:
                    waiting.append(value)
            elif isinstance(value, np.ndarray):
                parts.add(f"{name} {value.dtype} {value.shape} {value.tobytes()!r}")
            elif isinstance(value, int | float | str | bytes | tuple | np.generic | None):
                parts.add(f"{name} {value!r}")
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def _package_of(one: Callable[..., Any]) -> str:
    return one.__module__.partition(".")[0]


@cache
def _source_hash(name: str) -> str:
    """The hash of a module's source, which may be in an archive."""
    module = sys.modules[name]
    try:
        source: bytes = module.__loader__.get_data(module.__file__)  # type: ignore[union-attr]
    except (AttributeError, OSError):
        return ""
    return hashlib.sha256(source).hexdigest()


def _definition(value: Any) -> Any:
    """The Python function of a kernel or an intrinsic; anything else unchanged."""
    return getattr(value, "py_func", getattr(value, "_defn", value))


def _names_in(one: FunctionType | type) -> set[str]:
    """All globals that the code of a kernel, or the annotations of a kernel or type, may use."""
    names: set[str] = set()
    if isinstance(one, FunctionType):
        for code in _codes_in(one.__code__):
            names.update(code.co_names, code.co_freevars)
    for annotation in one.__annotations__.values():
        names.update(re.findall(r"\w+", str(annotation)))
    return names


def _closure_of(one: FunctionType | type) -> dict[str, Any]:
    """The variables of the function around a kernel, which are compiled in as constants."""
    if not isinstance(one, FunctionType) or one.__closure__ is None:
        return {}
    cells = zip(one.__code__.co_freevars, one.__closure__, strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)
