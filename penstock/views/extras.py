"""Optional libraries of this package, loaded on first use and named when missing."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from penstock.errors import ExtraError

EXTRA = "views"


def load_highspy() -> Any:
    """HiGHS, which solves the linear programs of plans."""
    return _load("highspy", "highspy", "An exact plan of views")


def load_igraph() -> Any:
    """igraph, which removes cycles from graphs that are not transitive."""
    return _load("igraph", "igraph", "Cycle removal")


def _load(module: str, library: str, feature: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExtraError(feature, library, EXTRA) from error
