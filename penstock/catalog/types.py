"""The interface of column types.

A value has three forms:

* *outside*: what JSON, Python callers and contents show (`Decimal`, `date`, `datetime`, ...);
* *stored*: plain `int`, `float`, `str`, `bool` or `None`, which every codec can carry: dates as
  days and timestamps as microseconds since 1970, decimals as integers scaled by their type;
* *key*: an `int` or `str` with the order and the equality of SQL, for comparing. Only doubles need
  another key than their stored form: -0.0 equals 0.0, and NaN equals itself and exceeds everything.

A type stores outside values (and refuses those that do not fit), shows stored ones, and converts
between stored values and keys. Code outside this package uses the methods of a type and never tests
its class; the few tables by class are listed in docs/notes/column-types.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from penstock.errors import ChangeError

Outside: TypeAlias = object
Stored: TypeAlias = int | float | str | bool | None
Key: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class ValueType:
    """One SQL type. Subclasses define how values are stored, shown and compared."""

    kind: ClassVar[str]
    """Types of one kind can be joined with each other."""
    discrete: ClassVar[bool] = True
    """Whether the key after `k` is `k + 1`, so that `x > 5` is the same as `x >= 6`."""
    stored_as: ClassVar[type] = int
    """The Python type of stored values."""
    json_as: ClassVar[type] = str
    """The Python type of a publisher's usual JSON value."""
    is_opaque: ClassVar[bool] = False
    """Whether values are only stored and shown: no keys, comparisons or expressions. DuckDB has
    them as texts."""

    def store(self, value: Outside) -> Stored:
        """The stored form of a value that is not None; ChangeError if it does not fit."""
        raise NotImplementedError

    def rewrite(self, _value: Outside) -> Outside | None:
        """The same value in a form that `store` accepts; None if there is none. ChangeError if the
        conversion would be lossy. See `penstock.catalog.coercions`."""
        return None

    def show(self, stored: Stored) -> Outside:
        return stored

    def literal(self, stored: Stored) -> str:
        """A stored value that is not None, as an SQL literal."""
        return str(self.show(stored))

    def quoted(self, stored: Stored) -> str:
        """A stored value as an SQL string literal."""
        return "'" + str(self.show(stored)).replace("'", "''") + "'"

    def key(self, stored: Stored) -> Key:
        """The comparable form of a stored value that is not None."""
        assert isinstance(stored, int)
        return stored

    def unkey(self, key: Key) -> Stored:
        return key

    def join_key(self, stored: Stored) -> Key:
        """Like `key`, and equal for equal values of all types of this kind."""
        return self.key(stored)

    def joins_with(self, other: ValueType) -> bool:
        """Whether columns of both types can be compared for equality in a join."""
        return self.kind == other.kind

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        """The smallest and the largest key of the type, if they exist."""
        return None, None

    def successor(self, key: Key) -> Key | None:
        """The smallest key above `key`, if it is known."""
        if not self.discrete:
            return None
        assert isinstance(key, int)
        return key + 1

    def near_keys(self, key: Key) -> list[Key]:
        """A key and some adjacent keys, to try in explanations."""
        assert isinstance(key, int)
        return [key, key - 1, key + 1]

    def misfit(self, value: Outside, why: str = "") -> ChangeError:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ChangeError(f"{shown} is not a {self}", detail=why)
