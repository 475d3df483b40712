"""Matchers by name. A matcher is added by adding a module of its name to this package."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.catalog import Relation
from penstock.matching.interface import Matcher

DEFAULT_MATCHER = "lanes"

MatcherFactory = Callable[[Relation], Matcher]
F = TypeVar("F", bound=Callable[..., Matcher])

_factories: dict[str, Callable[..., Matcher]] = {}


def register(name: str) -> Callable[[F], F]:
    """Class decorator: `create(name, relation, …)` calls the class."""

    def remember(factory: F) -> F:
        _factories[name] = factory
        return factory

    return remember


def matcher_names() -> list[str]:
    """All matchers, the brute-force twin first."""
    _import_all()
    return sorted(_factories, key=lambda name: (name != "naive", name))


def create(name: str, relation: Relation, **options: object) -> Matcher:
    """A new, empty matcher; `options` are those of its class."""
    if name not in _factories and any(m.name == name for m in _modules()):
        importlib.import_module(f"penstock.matching.{name}")
    if name not in _factories:
        raise ValueError(f"no matcher is called {name!r}; there are {', '.join(matcher_names())}")
    return _factories[name](relation, **options)


def _modules() -> Iterable[pkgutil.ModuleInfo]:
    return pkgutil.iter_modules(sys.modules[__package__].__path__)


def _import_all() -> None:
    for module in _modules():
        importlib.import_module(f"penstock.matching.{module.name}")
