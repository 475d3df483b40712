"""Packages whose names are loaded on first use.

A worker of the pipeline is one of a dozen processes, and a command lives for a moment: neither
should spend a second on modules that it does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_door(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package; `names` maps each of its modules to the names it provides."""
    modules = {
        name: f"{package}.{module}" for module, found in names.items() for name in found.split()
    }

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return load
