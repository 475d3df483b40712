"""Doors of packages whose parts are loaded when they are first asked for.

Some parts need numba or pyarrow, which take half a second to load; whoever needs only the others
should not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_door(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package: names, each with the module that defines it."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return load
