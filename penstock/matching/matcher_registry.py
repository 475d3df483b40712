"""Matchers by name.

The one in production is `penstock.matching.lanes`; those for comparison are modules of
`penstock.matching.matchers`. To add one, add a module of its name there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from penstock.catalog import Relation
from penstock.matching.interface import Matcher

DEFAULT_MATCHER = "lanes"
_COMPARATORS = "penstock.matching.matchers"

F = TypeVar("F", bound=Callable[..., Matcher])

_factories: dict[str, Callable[..., Matcher]] = {}


def register(name: str) -> Callable[[F], F]:
    """Class decorator: `create(name, relation, …)` calls the class."""

    def remember(factory: F) -> F:
        _factories[name] = factory
        return factory

    return remember


def matcher_names() -> list[str]:
    """All matchers, the brute-force reference first."""
    _import_all()
    return sorted(_factories, key=lambda name: (name != "naive", name))


def create(name: str, relation: Relation, **options: object) -> Matcher:
    """A new, empty matcher; `options` are those of its class."""
    if name not in _factories and name in _modules():
        importlib.import_module(_modules()[name])
    if name not in _factories:
        raise ValueError(f"no matcher is called {name!r}; there are {', '.join(matcher_names())}")
    return _factories[name](relation, **options)


@cache
def _modules() -> dict[str, str]:
    """The modules of all matchers, by matcher name."""
    found = {DEFAULT_MATCHER: f"penstock.matching.{DEFAULT_MATCHER}"}
    for module in pkgutil.iter_modules(importlib.import_module(_COMPARATORS).__path__):
        found[module.name] = f"{_COMPARATORS}.{module.name}"
    return found


def _import_all() -> None:
    for module in _modules().values():
        importlib.import_module(module)
