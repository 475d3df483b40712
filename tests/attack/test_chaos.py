"""Any function of the processing rooms fails once, at any time: the home opens again, and whatever
was acknowledged is served."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.storage import Home
from tests.attack.test_hostile_records import begun, by_hub, by_pipeline, check_served, publish
from tests.examples import examples

ROOMS = ("flow", "joins", "messages", "registry", "storage", "routing", "pipeline", "predicates")
APART = ("kernels", "comparators", "in_java", "run", "session", "java", "processors", "source")


class ChaosError(Exception):
    """What nobody expected."""


def functions() -> list[tuple[Any, str]]:
    """All functions and methods of the rooms that processing goes through, and their owners."""
    found: list[tuple[Any, str]] = []
    for room in ROOMS:
        package = importlib.import_module(f"{penstock.__name__}.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if any(part in info.name.split(".") for part in APART):
                continue
            module = importlib.import_module(info.name)
            for owner in (module, *vars(module).values()):
                if owner is not module and not (
                    inspect.isclass(owner) and owner.__module__ == module.__name__
                ):
                    continue
                found += [
                    (owner, name)
                    for name, value in vars(owner).items()
                    if isinstance(value, FunctionType) and value.__module__ == module.__name__
                ]
    return sorted(found, key=lambda pair: (str(pair[0]), pair[1]))


FUNCTIONS = functions()


@contextmanager
def failing_once(owner: Any, name: str, after: int) -> Iterator[list[int]]:
    """Let a function fail at one call; how often it was called."""
    real: Callable[..., Any] = getattr(owner, name)
    calls = [0]

    def chaotic(*values: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == after + 1:
            raise ChaosError(f"in {name}")
        return real(*values, **named)

    with mock.patch.object(owner, name, chaotic):
        yield calls


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(
    st.sampled_from(range(len(FUNCTIONS))),
    st.sampled_from([0, 0, 1, 2, 5, 20]),
    st.sampled_from([by_hub, by_pipeline]),
)
def test_whatever_fails_once(number: int, after: int, process: Callable[[Home], None]) -> None:
    owner, name = FUNCTIONS[number]
    with tempfile.TemporaryDirectory() as directory:
        home = begun(Path(directory) / "home")
        process(home)
        publish(home, 4)
        with failing_once(owner, name, after), suppress(Exception):
            process(home)
        # What was blamed for it is set aside; everybody else is served.
        home = Home.open(home.path)
        by_hub(home)
        bad = list(home.quarantine.entries())
        if not bad and not suspended(home):
            check_served(home, 8)
        publish(home, 8)
        by_pipeline(home)
        if not bad and not suspended(home):
            check_served(home, 12)


def suspended(home: Home) -> list[int]:
    from penstock.registry import Registry

    with Registry(home) as registry:
        return registry.suspended()
