"""Test doubles and tools that ship with the product."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.testing.local_pipeline import LocalPipeline
    from penstock.testing.scenario import load_scenario, parse_scenario

__all__ = ["LocalPipeline", "load_scenario", "parse_scenario"]

_MODULES = {
    "LocalPipeline": "local_pipeline",
    "load_scenario": "scenario",
    "parse_scenario": "scenario",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
