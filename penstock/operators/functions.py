"""Operators made of plain functions, by a decorator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from penstock.arguments import listed, shown
from penstock.catalog import Outside
from penstock.errors import OperatorError
from penstock.operators.interface import (
    DEFAULT_MEMORY_LIMIT_BYTES,
    DEFAULT_SET_UP_TIMEOUT_SECONDS,
    DEFAULT_TIMEOUT_SECONDS,
    Argument,
    ArgumentRow,
    Operator,
    Output,
)
from penstock.operators.validation import MAX_ARGUMENTS, MAX_OUTPUTS


class FunctionOperator(Operator):
    """An operator made of a function; calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        by_batch: bool = False,
        set_up: Callable[[], object] | None = None,
        check_constants: Callable[[Mapping[str, Outside]], object] | None = None,
    ) -> None:
        self.function = function
        self.by_batch = by_batch
        self.set_up_function = set_up
        self.check_function = check_constants
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: object) -> object:
        return self.function(*arguments)

    def set_up(self) -> None:
        if self.set_up_function is not None:
            self.set_up_function()

    def check_constants(self, constants: Mapping[str, Outside]) -> None:
        if self.check_function is not None:
            self.check_function(constants)

    def evaluate(self, rows: Sequence[ArgumentRow]) -> Sequence[object]:
        if self.by_batch:
            return self.function(rows)  # type: ignore[return-value]  # whoever asks checks it
        return [self._evaluate_row(row) for row in rows]

    def _evaluate_row(self, row: ArgumentRow) -> object:
        try:
            return self.function(*row)
        except MemoryError:
            raise  # the remaining memory is not enough for the other rows either
        except Exception as error:  # noqa: BLE001 - it fails this row and no other
            return error

    def __reduce__(self) -> tuple[object, ...]:
        """By name, if the name of the function resolves to this operator in every process. (The
        function could not be pickled then: Python would look it up under that name, too.)"""
        module, name = self.function.__module__, self.function.__qualname__
        if module != "__main__" and _attribute(sys.modules.get(module), name) is self:
            return import_attribute, (module, name)
        return _restored, (self.__dict__,)


def operator(
    name: str,
    arguments: Iterable[Argument],
    *,
    outputs: Iterable[Output] = (),
    by_batch: bool = False,
    set_up: Callable[[], object] | None = None,
    check_constants: Callable[[Mapping[str, Outside]], object] | None = None,
    version: str = "1",
    cost_seconds: float | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    set_up_timeout_seconds: float = DEFAULT_SET_UP_TIMEOUT_SECONDS,
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
    takes_null: bool = False,
) -> Callable[[Callable[..., object]], FunctionOperator]:
    """Makes an operator of a function of one row's arguments, or (`by_batch`) of a list of rows.

    >>> from penstock.operators.value_types import VARCHAR
    >>> @operator("isShouted", [Argument("said", VARCHAR)])
    ... def is_shouted(said: str) -> bool:
    ...     return said.isupper()
    >>> is_shouted.evaluate([("HELP",), ("help",)])
    [True, False]
    """

    # Whether they are valid parameters is checked with the rest of the operator.
    taken: tuple[Any, ...] = tuple(
        listed(arguments, "arguments", OperatorError, most=MAX_ARGUMENTS)
    )
    bound: tuple[Any, ...] = tuple(listed(outputs, "outputs", OperatorError, most=MAX_OUTPUTS))

    def decorate(function: Callable[..., object]) -> FunctionOperator:
        if not callable(function):
            raise OperatorError(f"an operator is made of a function, not {shown(function)}")
        made = FunctionOperator(
            function, by_batch=by_batch, set_up=set_up, check_constants=check_constants
        )
        made.name, made.version = name, version
        made.arguments, made.outputs = taken, bound
        made.cost_seconds, made.timeout_seconds = cost_seconds, timeout_seconds
        made.set_up_timeout_seconds = set_up_timeout_seconds
        made.memory_limit_bytes, made.takes_null = memory_limit_bytes, takes_null
        return made

    return decorate


def import_attribute(module: str, name: str) -> object:
    """The attribute of a module with a dotted name; ImportError or AttributeError if missing."""
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _attribute(found: object, name: str) -> object:
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _restored(state: dict[str, object]) -> FunctionOperator:
    made = FunctionOperator.__new__(FunctionOperator)
    made.__dict__.update(state)
    return made
