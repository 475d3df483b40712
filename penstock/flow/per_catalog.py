"""Things that are made from a catalog and serve as long as it does not grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from penstock.catalog import Catalog

T = TypeVar("T")


def per_catalog(make: Callable[[Catalog], T]) -> Callable[[Catalog], T]:
    """Make a thing for the relations that a catalog has now, or give the one made before."""
    made: WeakKeyDictionary[Catalog, tuple[int, T]] = WeakKeyDictionary()

    @wraps(make)
    def made_once(catalog: Catalog) -> T:
        found = made.get(catalog)
        if found is None or found[0] != len(catalog):
            found = made[catalog] = (len(catalog), make(catalog))
        return found[1]

    return made_once
