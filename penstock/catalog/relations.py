"""Tables and streams: named columns, a primary key, and rows as tuples of stored values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from penstock.catalog.coercions import store_lossless
from penstock.catalog.types import Key, Outside, Stored, ValueType
from penstock.errors import ChangeError

MAX_COLUMNS = 1_000
"""Maximum per table or stream."""

Row: TypeAlias = tuple[Stored, ...]
RowKey: TypeAlias = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ValueType
    nullable: bool = True


@dataclass(frozen=True)
class Relation:
    """A table (keyed rows that change) or a stream (events that are only appended).

    `key` holds the positions of the primary key's columns. A stream may have none: its rows are
    then identified by the offset at which they were appended. Names keep the case they were
    declared with and are found in any case, as in SQL; `positions` maps lower-case names to
    columns.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    is_stream: bool = False
    positions: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions = {column.name.lower(): i for i, column in enumerate(self.columns)}
        object.__setattr__(self, "positions", positions)

    @cached_property
    def kind(self) -> str:
        return "stream" if self.is_stream else "table"

    @property
    def declared(self) -> Relation:
        """The table or stream that its rows come from: itself, unless it is derived."""
        return self

    @property
    def shown_name(self) -> str:
        """The name for people."""
        return self.name

    @cached_property
    def has_doubles(self) -> bool:
        """Whether rows may hold NaN, which Python does not consider equal to itself."""
        return any(column.type.stored_as is float for column in self.columns)

    @cached_property
    def all_columns(self) -> tuple[int, ...]:
        return tuple(range(len(self.columns)))

    @cached_property
    def _stores(self) -> list[tuple[str, Callable[[Outside], Stored], bool]]:
        return [(column.name, column.type.store, column.nullable) for column in self.columns]

    @cached_property
    def _single_key(self) -> tuple[int, Callable[[Stored], Key]] | None:
        """The position of a primary key of one column, and its comparison key function."""
        if len(self.key) != 1:
            return None
        return self.key[0], self.columns[self.key[0]].type.key

    def store_row(self, values: Mapping[str, Outside]) -> Row:
        """The stored form of a whole row; a missing column is NULL."""
        # Fast path: most publishers give all columns, by their declared names, and in the form that
        # their types accept.
        if len(values) != len(self.columns):
            return self._store_named(values)
        row: list[Stored] = []
        try:
            for name, store, nullable in self._stores:
                value = values[name]
                if value is not None:
                    row.append(store(value))
                elif nullable:
                    row.append(None)
                else:
                    return self._store_named(values)
        except (KeyError, ChangeError):
            return self._store_named(values)
        return tuple(row)

    def _store_named(self, values: Mapping[str, Outside]) -> Row:
        """Some columns, by names in any case."""
        found: dict[str, Outside] = {}
        for name, value in values.items():
            lowered = name.lower()
            if lowered not in self.positions:
                raise self.unknown_column(name)
            if lowered in found:
                raise ChangeError(f"column {name} of {self.name} is given twice")
            found[lowered] = value
        return tuple(self.store_value(c, found.get(c.name.lower())) for c in self.columns)

    def unknown_column(self, name: str) -> ChangeError:
        names = ", ".join(column.name for column in self.columns)
        return ChangeError(
            f"{self.kind} {self.name} has no column {name}", hint=f"its columns are {names}"
        )

    def store_value(self, column: Column, value: Outside) -> Stored:
        if value is None:
            if column.nullable:
                return None
            raise ChangeError(f"column {column.name} of {self.name} must not be NULL")
        try:
            return store_lossless(column.type, value)
        except ChangeError as error:
            raise ChangeError(
                f"column {column.name} of {self.name}: {error.primary}", detail=error.detail
            ) from None

    def key_of(self, row: Row, offset: int) -> RowKey:
        """What identifies a row: its primary key, or its offset where there is none.

        In comparable form, so that equal keys are equal whatever their type (NaN, -0.0).
        """
        if self._single_key is not None:
            position, key = self._single_key
            return (key(row[position]),)
        if not self.key:
            return (offset,)
        return tuple([self.columns[i].type.key(row[i]) for i in self.key])

    def show_key(self, key: RowKey) -> dict[str, Outside]:
        """A row key in outside values, by column; an offset where there is no primary key."""
        if not self.key:
            return {"offset": key[0]}
        columns = [self.columns[i] for i in self.key]
        return {c.name: c.type.show(c.type.unkey(k)) for c, k in zip(columns, key, strict=True)}

    def show_row(self, row: Row) -> dict[str, Outside]:
        return {
            column.name: None if value is None else column.type.show(value)
            for column, value in zip(self.columns, row, strict=True)
        }
