"""What an operator is: a function of a row that is too expensive to evaluate twice.

An operator has a name, typed arguments and, optionally, outputs: variables that it binds. It is
handed a batch of rows and says, row by row, whether they satisfy it:

* without outputs: True, False, or None (unknown, SQL's NULL);
* with outputs: all bindings that satisfy it, a sequence of tuples with one value per output. No
  binding at all means False, None means unknown;
* either way an exception, which is returned instead of raised, fails that row alone.

The contract: the result depends on nothing but the arguments and the `version`, and there are no
side effects. Results are cached, shared between subscriptions, kept with rows and carried in
messages; whoever changes what an operator answers changes its version. What it may cost is limited
(`penstock.operators.limits`), what comes back is checked (`penstock.operators.validation`).

Arguments and outputs are *outside* values here (`penstock.catalog.types`), as `Decimal` or `date`.
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
"""What satisfies an operator with outputs: distinct stored values, one tuple per binding."""
Result: TypeAlias = bool | Bindings | None
"""What an operator says of a row, checked and in stored form. None is unknown."""

DEFAULT_TIMEOUT_SECONDS = 10.0
"""Per row. Recognisers take tenths of a second; a minute per row would stop a pipeline."""
DEFAULT_SET_UP_TIMEOUT_SECONDS = 120.0
"""Loading a model of some gigabytes from a slow disk."""
DEFAULT_MEMORY_LIMIT_BYTES = 1 << 30
"""Of the process that runs the operator, its libraries and its model included."""


_NUMBER_RANKS: dict[type, int] = {int: 0, Decimal: 1, float: 2}
"""Numbers of a lower rank can stand where those of a higher one are expected."""


def is_number(value_type: ValueType) -> bool:
    return value_type.json_as in _NUMBER_RANKS


@dataclass(frozen=True, slots=True)
class Argument:
    """A value that an operator takes: of a column, or a constant."""

    name: str
    type: ValueType
    constant: bool = False
    """Whether it must be a constant, for operators that prepare something for each value."""

    def accepts(self, given: ValueType) -> bool:
        """Whether values of another type can stand here without losing anything, or (a number for
        a double) only what SQL would lose, too."""
        if self.type.joins_with(given):
            return True
        return _NUMBER_RANKS.get(given.json_as, 9) < _NUMBER_RANKS.get(self.type.json_as, 0)

    def convert(self, value: Stored, given: ValueType) -> Stored:
        """A stored value of a type that is accepted, as one of this type. ChangeError if this
        value does not fit, as a text that is longer than a VARCHAR(5)."""
        if value is None or given == self.type:
            return value
        return self.type.store(given.show(value))


@dataclass(frozen=True, slots=True)
class Output:
    """A variable that an operator binds. In a call, outputs stand behind all arguments."""

    name: str
    type: ValueType


class Operator:
    """The base of all operators; a class of operators sets these attributes and `evaluate`.

    One object serves one process, one batch at a time; it is pickled into the processes that run
    it before `set_up`.
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...] = ()
    version: str = "1"
    """Changes whenever any result may change: of the code, of a model, of a table it looks up."""
    cost_seconds: float | None = None
    """Of one row, roughly; None: learnt."""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    set_up_timeout_seconds: float = DEFAULT_SET_UP_TIMEOUT_SECONDS
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    takes_null: bool = False
    """Whether it wants to see rows with NULL among its arguments. By default they are not
    evaluated, and their result is unknown, as with SQL's functions."""

    def check_constants(self, constants: Mapping[str, Outside]) -> None:
        """Refuses, by OperatorError, constants that no row can be evaluated with: a region that
        does not exist. Called when somebody subscribes, with the constant arguments by name."""

    def set_up(self) -> None:
        """Called once in every process that evaluates, before the first batch: loads a model."""

    def evaluate(self, rows: Sequence[ArgumentRow]) -> Sequence[object]:
        """One result for each row, in their order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<operator {signature(self)}, version {self.version}>"


def signature(operator: Operator) -> str:
    """How an operator is called, with types: `mobPattern(image VARCHAR, :people BIGINT)`."""
    taken = [
        f"{one.name} {one.type}{' constant' if one.constant else ''}" for one in operator.arguments
    ]
    bound = [f":{one.name} {one.type}" for one in operator.outputs]
    return f"{operator.name}({', '.join([*taken, *bound])})"
