"""Results and failures of rows as plain data and as bytes, for pipes and caches."""

from __future__ import annotations

from typing import Any

from penstock.operators.failures import FailureKind, OperatorFailure
from penstock.operators.interface import Operator, Result
from penstock.packing import pack, unpack


def pack_result(result: Result) -> bytes:
    return pack(result)


def unpack_result(data: bytes) -> Result:
    return read_result(unpack(data))


def read_result(plain: Any) -> Result:
    """Decodes a packed result: sequences come back as lists. ValueError if it is invalid."""
    if plain is None or isinstance(plain, bool):
        return plain
    if isinstance(plain, list) and all(isinstance(one, list) for one in plain):
        return tuple(map(tuple, plain))
    raise ValueError("not a result of an operator")


def plain_outcome(outcome: Result | OperatorFailure) -> object:
    """A result unchanged; a failure without the operator, which both sides know."""
    if isinstance(outcome, OperatorFailure):
        return {"kind": outcome.kind.value, "reason": outcome.reason}
    return outcome


def read_outcome(operator: Operator, plain: Any) -> Result | OperatorFailure:
    """The outcome of a row. ValueError if this operator cannot have it."""
    if not isinstance(plain, dict):
        result = read_result(plain)
        if not _can_have(operator, result):
            raise ValueError("not a result of this operator")
        return result
    kind, reason = FailureKind(str(plain.get("kind"))), str(plain.get("reason"))
    return OperatorFailure(operator.name, operator.version, kind, reason)


def _can_have(operator: Operator, result: Result) -> bool:
    if not isinstance(result, tuple):
        return result is None or not operator.outputs
    types = [one.type.stored_as for one in operator.outputs]
    return bool(types) and all(
        len(row) == len(types)
        and all(one is None or type(one) is kind for one, kind in zip(row, types, strict=True))
        for row in result
    )
