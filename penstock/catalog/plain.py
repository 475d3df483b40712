"""Relations as plain data, and back: for databases that are read without a parser."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from penstock.catalog.relations import Column, Relation
from penstock.catalog.types import ValueType


def plain_relation(relation: Relation) -> list[Any]:
    """For `relation_from_plain`."""
    columns = [[one.name, plain_type(one.type), one.nullable] for one in relation.columns]
    return [relation.name, columns, list(relation.key), relation.is_stream]


def relation_from_plain(plain: list[Any]) -> Relation:
    """The inverse of `plain_relation`. Raises TypeError, ValueError or LookupError for invalid
    data."""
    name, columns, key, is_stream = plain
    found = tuple(
        Column(column, type_from_plain(kind), nullable) for column, kind, nullable in columns
    )
    return Relation(name, found, tuple(key), is_stream)


def plain_type(value_type: ValueType) -> list[Any]:
    """The name of its class, and its fields."""
    return [type(value_type).__name__, *astuple(value_type)]


def type_from_plain(plain: list[Any]) -> ValueType:
    """The inverse of `plain_type`."""
    return _type_classes()[plain[0]](*plain[1:])


def _type_classes() -> dict[str, type[ValueType]]:
    return {one.__name__: one for one in ValueType.__subclasses__()}
