"""Caching of values derived from a catalog, valid as long as it does not grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from penstock.catalog import Catalog

T = TypeVar("T")


def per_catalog(make: Callable[[Catalog], T]) -> Callable[[Catalog], T]:
    """Decorator: caches the result of `make` for the current relations of a catalog."""
    made: WeakKeyDictionary[Catalog, tuple[int, T]] = WeakKeyDictionary()

    @wraps(make)
    def made_once(catalog: Catalog) -> T:
        found = made.get(catalog)
        if found is None or found[0] != len(catalog):
            found = made[catalog] = (len(catalog), make(catalog))
        return found[1]

    return made_once
