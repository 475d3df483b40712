"""Test doubles and tools that ship with the product."""

from penstock.testing.scenario import load_scenario, parse_scenario

__all__ = ["load_scenario", "parse_scenario"]
