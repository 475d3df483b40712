"""Tables with derived columns: values computed from one row.

A derived column is identified by its *definition*: an expression over the columns of one table, as
text, and the type of its values. A query that uses derived columns reads an *extended* relation:
the columns of the table, followed by those of a set of definitions. It is neither declared nor
stored: its name holds the definitions, so every process that meets the name knows the relation, and
queries with the same definitions share their spaces.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from penstock.catalog.plain import plain_type, type_from_plain
from penstock.catalog.relations import Column, Relation
from penstock.catalog.types import ValueType

SEPARATOR = "\0"
"""Cannot occur in SQL text, so no table has the name of a derived relation."""
_EXTENDED = "derived"
_MARK = f"{SEPARATOR}{_EXTENDED}{SEPARATOR}"
"""Definitions are JSON, which escapes the separator: the text before the mark is a name."""

MAX_DEFINITIONS = 64
"""Maximum per table in one query."""

Source = Literal["expression", "operator"]


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a derived column. `text` names columns as they were declared."""

    text: str
    type: ValueType
    reads: tuple[int, ...]
    """The columns that its value depends on, in ascending order."""
    source: Source = "expression"
    plan: str = ""
    """For operators: the call, for the code that computes it."""

    @property
    def is_lazy(self) -> bool:
        """Whether it is computed only for rows that need it."""
        return self.source == "operator"

    @property
    def id(self) -> str:
        """The same in every process."""
        return hashlib.blake2b(_as_json(self).encode(), digest_size=8).hexdigest()


class ExtendedRelation(Relation):
    """A relation with derived columns after those of its table."""

    base: Relation
    definitions: tuple[Definition, ...]

    @property
    def declared(self) -> Relation:
        return self.base.declared

    @property
    def shown_name(self) -> str:
        return f"{self.base.shown_name} with {', '.join(one.text for one in self.definitions)}"

    @cached_property
    def first_derived(self) -> int:
        return len(self.base.columns)

    @cached_property
    def lazy_columns(self) -> frozenset[int]:
        """The positions of columns that may be absent from rows."""
        return frozenset(
            self.first_derived + i for i, one in enumerate(self.definitions) if one.is_lazy
        )


@lru_cache(maxsize=100_000)
def extend(base: Relation, definitions: tuple[Definition, ...]) -> ExtendedRelation:
    """A table with some derived columns, in the order of `definition_order`."""
    derived = tuple(Column(one.text, one.type) for one in definitions)
    name = SEPARATOR.join((base.name, _EXTENDED, *map(_as_json, definitions)))
    relation = ExtendedRelation(name, base.columns + derived, base.key, base.is_stream)
    object.__setattr__(relation, "base", base)
    object.__setattr__(relation, "definitions", definitions)
    return relation


def definition_order(one: Definition) -> tuple[str, str]:
    """The order of definitions in a relation, whatever their order in a query."""
    return one.source, one.text + one.plan


def is_extended(name: str) -> bool:
    """Whether a relation has derived columns (and is not half of one that has)."""
    return _MARK in name


def extended_base_name(name: str) -> str:
    """The relation that a relation with derived columns extends: a table, or one made of its
    documents."""
    return name.rpartition(_MARK)[0]


def mentions_derived(data: bytes) -> bool:
    """Whether bytes may contain the name of a relation that has derived columns."""
    return _MARK.encode() in data


def base_name(name: str) -> str:
    """The table whose rows a relation is derived from: itself, for a table."""
    return name.partition(SEPARATOR)[0]


def shown_column(relation: Relation, position: int) -> str:
    """The name of a column, or its expression in parentheses."""
    name = relation.columns[position].name
    derived = isinstance(relation, ExtendedRelation) and position >= relation.first_derived
    return f"({name})" if derived else name


def extended_named(name: str, base: Relation) -> ExtendedRelation:
    """The extended relation of this name. Raises TypeError, ValueError or LookupError if it is
    invalid."""
    definitions = name.rpartition(_MARK)[2].split(SEPARATOR)
    return extend(base, tuple(map(_from_json, definitions)))


def _as_json(one: Definition) -> str:
    plain = [one.text, plain_type(one.type), one.reads, one.source, one.plan]
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _from_json(text: str) -> Definition:
    plain: list[Any] = json.loads(text)
    words, kind, reads, source, plan = plain
    return Definition(words, type_from_plain(kind), tuple(reads), source, plan)
