"""What an operator is: a function of a row that is too expensive to evaluate twice.

An operator has a name, typed arguments and, optionally, outputs: variables that it binds. It gets a
batch of rows and returns, for each row, whether the row satisfies it:

* without outputs: True, False, or None (unknown, SQL's NULL);
* with outputs: all bindings that satisfy it, a sequence of tuples with one value per output. No
  binding at all means False, None means unknown;
* either way an exception, which is returned instead of raised, fails that row alone.

The contract: the result depends on nothing but the arguments and the `version`, and there are no
side effects. Results are cached, shared between subscriptions, stored with rows and carried in
messages; a change of results needs a new version. Resources are limited
(`penstock.operators.limits`), results are validated (`penstock.operators.validation`).

Arguments and outputs are *outside* values here (`penstock.catalog.types`), such as `Decimal` or
`date`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from penstock.catalog import Outside, Stored, ValueType

ArgumentRow: TypeAlias = tuple[Outside, ...]
"""One value per argument of an operator."""
StoredRow: TypeAlias = tuple[Stored, ...]
Bindings: TypeAlias = tuple[StoredRow, ...]
"""The bindings of an operator with outputs: distinct stored values, one tuple per binding."""
Result: TypeAlias = bool | Bindings | None
"""The result for a row, validated and in stored form. None is unknown."""

DEFAULT_TIMEOUT_SECONDS = 10.0
"""Per row. Recognisers take tenths of a second; a minute per row would stall a pipeline."""
DEFAULT_SET_UP_TIMEOUT_SECONDS = 120.0
"""Enough to load a model of some gigabytes from a slow disk."""
DEFAULT_MEMORY_LIMIT_BYTES = 1 << 30
"""For the process that runs the operator, including its libraries and its model."""


_NUMBER_RANKS: dict[type, int] = {int: 0, Decimal: 1, float: 2}
"""Numbers of a lower rank are accepted where a higher one is expected."""


def is_number(value_type: ValueType) -> bool:
    return value_type.json_as in _NUMBER_RANKS


@dataclass(frozen=True, slots=True)
class Argument:
    """An input of an operator: of a column, or a constant."""

    name: str
    type: ValueType
    constant: bool = False
    """Whether it must be a constant, for operators that prepare something for each value."""

    def accepts(self, given: ValueType) -> bool:
        """Whether values of another type can be used without loss or, for a number used as a
        double, with the same loss as in SQL."""
        if self.type.joins_with(given):
            return True
        return _NUMBER_RANKS.get(given.json_as, 9) < _NUMBER_RANKS.get(self.type.json_as, 0)

    def convert(self, value: Stored, given: ValueType) -> Stored:
        """Converts a stored value of an accepted type. ChangeError if this value does not fit, such
        as a text too long for a VARCHAR(5)."""
        if value is None or given == self.type:
            return value
        return self.type.store(given.show(value))


@dataclass(frozen=True, slots=True)
class Output:
    """A variable that an operator binds. In a call, outputs follow all arguments."""

    name: str
    type: ValueType


class Operator:
    """The base class of all operators; subclasses set these attributes and implement `evaluate`.

    An instance is used by one process, one batch at a time; it is pickled into the processes that
    run it before `set_up`.
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...] = ()
    version: str = "1"
    """Changes whenever any result may change: with the code, a model, or a table it looks up."""
    cost_seconds: float | None = None
    """Approximate cost per row; None: learned."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    set_up_timeout_seconds: float = DEFAULT_SET_UP_TIMEOUT_SECONDS
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    takes_null: bool = False
    """Whether rows with NULL arguments are evaluated. By default they are not, and their result is
    unknown, as with SQL's functions."""

    def check_constants(self, constants: Mapping[str, Outside]) -> None:
        """Raises OperatorError for constants that no row can be evaluated with, such as a region
        that does not exist. Called when subscribing, with the constant arguments by name."""

    def set_up(self) -> None:
        """Called once in every evaluating process before the first batch, to load a model, for
        example."""

    def evaluate(self, rows: Sequence[ArgumentRow]) -> Sequence[object]:
        """One result for each row, in their order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<operator {signature(self)}, version {self.version}>"


def signature(operator: Operator) -> str:
    """The signature of an operator with types: `mobPattern(image VARCHAR, :people BIGINT)`."""
    taken = [
        f"{one.name} {one.type}{' constant' if one.constant else ''}" for one in operator.arguments
    ]
    bound = [f":{one.name} {one.type}" for one in operator.outputs]
    return f"{operator.name}({', '.join([*taken, *bound])})"
