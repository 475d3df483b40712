"""Operators that are defined with arguments of wrong types: an error that names what is wrong, or
an operator that can be served; the hub goes on in any case."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Hub
from penstock.errors import PenstockError
from penstock.operators import BIGINT, Argument, Output, operator
from tests.odd_values import ODD_VALUES, check_refusal
from tests.operators.samples import is_odd

SOUND: dict[str, Callable[[], Any]] = {
    "name": lambda: "odd",
    "arguments": lambda: [Argument("n", BIGINT)],
}


def always(*_row: object) -> bool:
    return True


@pytest.mark.parametrize("name", inspect.signature(operator).parameters)
def test_every_argument_of_the_decorator(name: str) -> None:
    with Hub() as hub:
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        for odd in ODD_VALUES.values():
            try:
                hub.register_operator(operator(**{**_sound(), name: odd()})(always))
            except PenstockError as error:
                check_refusal(error)
        hub.insert("t", {"id": 1, "n": 1})


def _sound() -> dict[str, Any]:
    return {name: make() for name, make in SOUND.items()}


@pytest.mark.parametrize("kind", [Argument, Output])
def test_every_argument_of_a_parameter(kind: type[Any]) -> None:
    sound = {"name": "n", "type": BIGINT}
    with Hub() as hub:
        for name in inspect.signature(kind).parameters:
            for odd in ODD_VALUES.values():
                try:
                    made = kind(**{**sound, name: odd()})
                    taken = [made] if kind is Argument else [Argument("a", BIGINT)]
                    bound = [made] if kind is Output else []
                    hub.register_operator(operator("odd", taken, outputs=bound)(always))
                except PenstockError as error:
                    check_refusal(error)
        hub.register_operator(is_odd)


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_functions_that_are_none(odd: str) -> None:
    with Hub() as hub:
        given: Any = ODD_VALUES[odd]()
        if callable(given):
            hub.register_operator(operator("odd", [Argument("n", BIGINT)])(given))
        else:
            with pytest.raises(PenstockError, match="made of a function"):
                operator("odd", [Argument("n", BIGINT)])(given)
