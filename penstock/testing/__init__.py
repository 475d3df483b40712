"""Test doubles and tools that ship with the product."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.testing.local_pipeline import LocalPipeline
    from penstock.testing.scenario import load_scenario, parse_scenario

__all__ = ["LocalPipeline", "load_scenario", "parse_scenario"]

__getattr__ = lazy_door(
    __name__,
    {"local_pipeline": "LocalPipeline", "scenario": "load_scenario parse_scenario"},
)
