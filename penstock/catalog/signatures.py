"""Signatures of operators, expensive functions of a row.

The catalog has only the signature of an operator, so that statements can be bound wherever there is
a catalog; the implementation is needed only where it runs (`penstock.operators`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.catalog.plain import plain_type, type_from_plain
from penstock.catalog.types import ValueType


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or output of an operator."""

    name: str
    type: ValueType
    constant: bool = False
    """Whether it must be a constant."""


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    arguments: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...] = ()
    """The variables that it binds, after all arguments."""
    place: str = ""
    """`module:attribute` of the operator; empty if it is registered by hand or found by its name
    among installed packages."""

    @property
    def kind(self) -> str:
        return "operator"

    def __str__(self) -> str:
        taken = [f"{one.name} {one.type}" for one in self.arguments]
        bound = [f":{one.name} {one.type}" for one in self.outputs]
        return f"{self.name}({', '.join([*taken, *bound])})"


def plain_signature(one: Signature) -> dict[str, Any]:
    """For `signature_from_plain`."""
    return {
        "operator": one.name,
        "arguments": [[p.name, plain_type(p.type), p.constant] for p in one.arguments],
        "outputs": [[p.name, plain_type(p.type)] for p in one.outputs],
        "place": one.place,
    }


def signature_from_plain(plain: dict[str, Any]) -> Signature:
    return Signature(
        plain["operator"],
        tuple(Parameter(n, type_from_plain(t), c) for n, t, c in plain["arguments"]),
        tuple(Parameter(n, type_from_plain(t)) for n, t in plain["outputs"]),
        plain["place"],
    )
