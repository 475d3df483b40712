"""The only interface to numba: how kernels are compiled, with types that mypy understands.

Importing numba takes half a second and compiling a kernel seconds. So if the kernels of this
machine are not compiled yet, the decorators below return `Kernel`s: those made by `njit_when_large`
run as plain Python while their arrays are small, and numba is imported by the first kernel that
cannot. If kernels are compiled, or with PENSTOCK_GEAR=fast, kernels are numba's own dispatchers,
without a wrapper.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from penstock.kernels.fast_gear import may_load_kernels

F = TypeVar("F", bound=Callable[..., Any])

LARGE = 1 << 16
"""Total array size of a call from which a kernel is compiled for it: Python takes some 0.1 s for
this many numbers, at 1 to 2 us each, and compiling a kernel takes a second or more."""
PATIENCE_SECONDS = 10.0
"""Total time that a kernel may run as Python before it is compiled: about the compile time of the
largest ones, so waiting costs at most twice what the better choice would have."""

ASK_AGAIN_SECONDS = 1.0
"""Interval at which a kernel that runs as Python checks whether compiled code exists by now. The
check reads the file system, which at each call took longer than most calls do."""

IS_WAITING = not may_load_kernels()
"""Whether the kernels of this process are `Kernel`s; for all of them, as they call each other."""


def njit(function: F) -> F:
    """Compile a kernel: cached on disk, and without the GIL, so that threads run it in parallel.

    Callers check the arrays; kernels do not check indices, except in a process with
    NUMBA_BOUNDSCHECK=1 (`make bounds`).
    """
    return _kernel(function)


def njit_when_large(function: F) -> F:
    """`njit` for a kernel that the plain gear needs, too. Its source must behave the same in
    Python: no intrinsics, and numbers from arrays never leave the range of the array's type."""
    return _kernel(function, runs_as_python=True)


def inlined(function: F) -> F:
    """A part of a kernel that takes many arrays: it is inlined into its callers, because passing
    arrays between functions takes longer than a little work on them."""
    return _kernel(function, inline="always")


def _kernel(function: F, *, runs_as_python: bool = False, **options: Any) -> F:
    if IS_WAITING:
        return cast(F, Kernel(function, runs_as_python, options))
    from penstock.kernels.numba_backend import compile_kernel

    return compile_kernel(function, **options)


class Kernel:
    """A kernel that is not compiled yet."""

    def __init__(
        self, function: Callable[..., Any], runs_as_python: bool, options: dict[str, Any]
    ) -> None:
        self.py_func = function
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self._runs_as_python = runs_as_python
        self._options = options
        self._patience = PATIENCE_SECONDS
        self._is_compiled = not runs_as_python
        self._ask_at = -math.inf

    def __call__(self, *arguments: Any) -> Any:
        if self._is_compiled:
            return self.compiled(*arguments)
        began = time.perf_counter()
        if self._is_worth_compiling(arguments, began):
            self._is_compiled = True
            return self.compiled(*arguments)
        found = self.python(*arguments)
        self._patience -= time.perf_counter() - began
        return found

    def _is_worth_compiling(self, arguments: tuple[Any, ...], now: float) -> bool:
        if self._patience <= 0 or _size(arguments) > LARGE:
            return True
        if now < self._ask_at:
            return False
        self._ask_at = now + ASK_AGAIN_SECONDS
        return may_load_kernels()

    @cached_property
    def python(self) -> Callable[..., Any]:
        """The kernel as Python, which calls other kernels as Python."""
        return _with_scope(self.py_func, "python") if self._runs_as_python else self

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The kernel compiled by numba, which calls other compiled kernels."""
        from penstock.kernels.numba_backend import compile_kernel

        return compile_kernel(_with_scope(self.py_func, "compiled"), **self._options)


class _Instruction:
    """A numba intrinsic that is not loaded yet: kernels that use it must be compiled."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def python(self) -> Any:
        return self

    @property
    def compiled(self) -> Any:
        from penstock.kernels import numba_backend

        return getattr(numba_backend, self._name)

    @property
    def py_func(self) -> Any:
        """The function that the kernel cache hashes."""
        return self.compiled._defn


def _intrinsic(name: str) -> Any:
    waiting = _Instruction(name)
    return waiting if IS_WAITING else waiting.compiled


trailing_zeros: Callable[[Any], Any] = _intrinsic("trailing_zeros")
popcount: Callable[[Any], Any] = _intrinsic("popcount")
put_eight: Callable[[Any, Any, Any, Any, Any], None] = _intrinsic("put_eight")
prefetch: Callable[[Any, Any], None] = _intrinsic("prefetch")

_scopes: dict[tuple[str, str], dict[str, Any]] = {}


def _with_scope(function: Callable[..., Any], form: str) -> Callable[..., Any]:
    """A copy of a function that calls one form, `python` or `compiled`, of other kernels."""
    assert isinstance(function, FunctionType)
    scope = _scope(function.__module__, form)
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    copy.__annotations__ = function.__annotations__
    return copy


def _scope(module: str, form: str) -> dict[str, Any]:
    if (module, form) not in _scopes:
        # Registered before it is filled: kernels of a module may call each other.
        names = _scopes[module, form] = dict(vars(sys.modules[module]))
        for name, value in names.items():
            if isinstance(value, Kernel | _Instruction):
                names[name] = getattr(value, form)
    return _scopes[module, form]


def _size(arguments: Iterable[Any]) -> int:
    """The total size of the arrays among the arguments, including those in tuples."""
    size = 0
    for one in arguments:
        if isinstance(one, np.ndarray):
            size += one.size
        elif isinstance(one, tuple):
            size += _size(one)
    return size
