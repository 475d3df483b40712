"""Validation of user input: definitions of operators and the values they return."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from penstock import arguments as given
from penstock.catalog import Outside, Stored, ValueType
from penstock.errors import ChangeError, OperatorError
from penstock.operators.failures import FailureKind, OperatorFailure
from penstock.operators.interface import Argument, ArgumentRow, Operator, Output, Result, StoredRow
from penstock.packing import pack

MAX_BINDINGS = 1_000
"""Per row and predicate. The paper expects few; joins of bindings multiply them."""
MAX_RESULT_BYTES = 1 << 20
"""Maximum packed size of one row's bindings: they are stored with the row and sent in messages."""
MAX_ARGUMENTS = 32
MAX_OUTPUTS = 16
MAX_NAME_CHARACTERS = 64
MAX_VERSION_CHARACTERS = 200
MAX_TIMEOUT_SECONDS = 3_600.0
MIN_MEMORY_BYTES = 64 << 20
"""With less, Python and the libraries of operators do not even start."""
MAX_MEMORY_BYTES = 1 << 50
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_operator(candidate: object) -> Operator:
    """The operator, if its definition is valid; otherwise OperatorError."""
    if not isinstance(candidate, Operator):
        raise OperatorError(
            f"{given.shown(candidate)} is not an operator",
            hint="decorate a function with @operator, or derive a class from Operator",
        )
    name = "without a name"
    try:
        name = check_name(getattr(candidate, "name", None), "the name of an operator")
        _check_parameters(candidate)
        _check_limits(candidate)
    except OperatorError as error:
        raise OperatorError(
            f"operator {name} is badly defined: {error.primary}", hint=error.hint
        ) from None
    except Exception as error:  # raised by a property, for instance
        reason = describe_exception(error)
        raise OperatorError(f"operator {name} is badly defined", detail=reason) from error
    return candidate


def check_constants_of(operator: Operator, constants: Mapping[str, Outside]) -> None:
    """OperatorError if an operator rejects these constants, by whatever exception."""
    try:
        operator.check_constants(constants)
    except OperatorError:
        raise
    except (Exception, SystemExit) as error:
        raise OperatorError(
            f"operator {operator.name} does not take these constants",
            detail=describe_exception(error),
        ) from error


def check_name(name: object, what: str) -> str:
    plain = given.text(name, what, OperatorError)
    if not _NAME.match(plain) or len(plain) > MAX_NAME_CHARACTERS:
        raise OperatorError(
            f"{what} is made of letters, digits and underscores, not {given.shown(name)}",
            hint=f"it begins with a letter and has at most {MAX_NAME_CHARACTERS} characters",
        )
    return plain


def _check_parameters(operator: Operator) -> None:
    taken = given.listed(
        getattr(operator, "arguments", None), "arguments", OperatorError, most=MAX_ARGUMENTS
    )
    bound = given.listed(operator.outputs, "outputs", OperatorError, most=MAX_OUTPUTS)
    names: set[str] = set()
    for kind, parameters in ((Argument, taken), (Output, bound)):
        for one in parameters:
            if not isinstance(one, Argument | Output) or type(one) is not kind:
                raise OperatorError(
                    f"{given.shown(one)} stands where an {kind.__name__} is expected"
                )
            name = check_name(one.name, f"the name of an {kind.__name__.lower()}").lower()
            if name in names:
                raise OperatorError(f"two of its arguments and outputs are named {one.name}")
            names.add(name)
            if not isinstance(one.type, ValueType):
                raise OperatorError(
                    f"the type of {one.name} is {given.shown(one.type)}",
                    hint="use a type of penstock.operators: BIGINT, VARCHAR, decimal_type(10, 2)",
                )
    if not callable(getattr(operator, "evaluate", None)) or _lacks_evaluate(operator):
        raise OperatorError("it has no method evaluate(rows)")


def _lacks_evaluate(operator: Operator) -> bool:
    return type(operator).evaluate is Operator.evaluate and "evaluate" not in vars(operator)


def _check_limits(operator: Operator) -> None:
    version = given.text(operator.version, "its version", OperatorError)
    if not 1 <= len(version) <= MAX_VERSION_CHARACTERS:
        raise OperatorError(f"its version has 1 to {MAX_VERSION_CHARACTERS} characters")
    given.flag(operator.takes_null, "takes_null", OperatorError)
    for what in ("timeout_seconds", "set_up_timeout_seconds"):
        _check_seconds(getattr(operator, what), what)
    if operator.cost_seconds is not None:
        _check_seconds(operator.cost_seconds, "cost_seconds")
    given.whole_number(
        operator.memory_limit_bytes,
        "memory_limit_bytes",
        OperatorError,
        least=MIN_MEMORY_BYTES,
        most=MAX_MEMORY_BYTES,
    )


def _check_seconds(value: object, what: str) -> None:
    seconds = given.number(value, what, OperatorError)
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise OperatorError(f"{what} is above 0 and at most {MAX_TIMEOUT_SECONDS:g}, not {value}")


class GarbageError(Exception):
    """The value returned for a batch cannot be split into results of rows."""


def show_rows(operator: Operator, rows: Sequence[StoredRow]) -> list[ArgumentRow]:
    """Stored arguments as outside values."""
    types = [one.type for one in operator.arguments]
    return [
        tuple(
            None if value is None else type_.show(value)
            for type_, value in zip(types, row, strict=True)
        )
        for row in rows
    ]


def store_results(
    operator: Operator, returned: object, expected: int
) -> list[Result | OperatorFailure]:
    """The value returned by `evaluate` in stored form; a failure for each row whose result is not
    what the operator declares. GarbageError if it cannot be split into rows."""
    if isinstance(returned, str | bytes | Mapping):
        raise GarbageError(f"evaluate returned {given.shown(returned)}, not a list of results")
    try:
        results = list(islice(returned, expected + 1))  # type: ignore[call-overload]
    except TypeError:
        raise GarbageError(
            f"evaluate returned {given.shown(returned)}, not a list of results"
        ) from None
    if len(results) != expected:
        many = "more" if len(results) > expected else f"{len(results)}"
        raise GarbageError(f"evaluate returned {many} results for {expected} rows")
    return [_store_result(operator, one) for one in results]


def _store_result(operator: Operator, returned: object) -> Result | OperatorFailure:
    if isinstance(returned, BaseException):
        kind = FailureKind.MEMORY if isinstance(returned, MemoryError) else FailureKind.RAISED
        return failure_of(operator, kind, describe_exception(returned))
    returned = _without_numpy(returned)
    if returned is None:
        return None
    try:
        return _store_bindings(operator, returned) if operator.outputs else _store_truth(returned)
    except ChangeError as error:
        return failure_of(operator, FailureKind.GARBAGE, ": ".join(filter(None, _parts(error))))
    except Exception as error:  # noqa: BLE001 - objects of users do what they like when looked at
        return failure_of(operator, FailureKind.GARBAGE, describe_exception(error))


def _parts(error: ChangeError) -> tuple[str, str]:
    return error.primary, error.detail


def _store_truth(returned: object) -> bool:
    if not isinstance(returned, bool):
        raise ChangeError(f"{given.shown(returned)} is neither True, False nor None")
    return returned


def _store_bindings(operator: Operator, returned: Any) -> tuple[StoredRow, ...]:
    if isinstance(returned, str | bytes | bool | Mapping):
        raise ChangeError(
            f"{given.shown(returned)} is not a list of bindings",
            detail=f"{operator.name} has outputs: a result is a list of tuples",
        )
    listed = list(islice(returned, MAX_BINDINGS + 1))
    if len(listed) > MAX_BINDINGS:
        raise ChangeError(f"more than {MAX_BINDINGS:,} bindings for one row")
    bindings = tuple(dict.fromkeys(_store_binding(operator, one) for one in listed))
    if len(pack(bindings)) > MAX_RESULT_BYTES:
        raise ChangeError(f"the bindings of one row have more than {MAX_RESULT_BYTES:,} bytes")
    return bindings


def _store_binding(operator: Operator, binding: object) -> StoredRow:
    if not isinstance(binding, tuple | list) or len(binding) != len(operator.outputs):
        names = ", ".join(one.name for one in operator.outputs)
        raise ChangeError(f"{given.shown(binding)} is not a tuple of ({names})")
    return tuple(
        _store_value(output, value) for output, value in zip(operator.outputs, binding, strict=True)
    )


def _store_value(output: Output, value: object) -> Stored:
    plain: Outside = _without_numpy(value)
    if plain is None:
        return None
    try:
        stored = output.type.store(plain)
    except ChangeError as error:
        raise ChangeError(f"output {output.name}: {error.primary}", detail=error.detail) from None
    # One canonical NaN: sets, packed bytes and messages must not depend on its bit pattern.
    return math.nan if isinstance(stored, float) and math.isnan(stored) else stored


def _without_numpy(value: object) -> object:
    """A NumPy scalar as the equal Python value."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()  # type: ignore[attr-defined]
    return value


def failure_of(operator: Operator, kind: FailureKind, reason: str) -> OperatorFailure:
    return OperatorFailure(operator.name, operator.version, kind, reason)


def describe_exception(error: BaseException) -> str:
    try:
        text = str(error)[:1_000].encode(errors="replace").decode()  # it is stored, and shown
    except Exception:  # noqa: BLE001 - an exception without a text is an exception all the same
        text = ""
    name = type(error).__name__
    return f"{name}: {text}"[:1_000] if text else name
