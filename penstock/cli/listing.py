"""Saying which commands a package holds."""

from __future__ import annotations

import importlib
import inspect

from penstock.cli.groups import module_names
from penstock.cli.output import Output


def list_found(package: str, noun: str, command: str) -> None:
    """One line for each module of a package: what to call, and what it does."""
    out = Output()
    names = module_names(package)
    if not names:
        out.say(f"there is no {noun} yet")
    width = max(map(len, names), default=0)
    for name in names:
        function = getattr(importlib.import_module(f"{package}.{name}"), name)
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        out.say(f"{command} {name.replace('_', '-'):<{width}}  {summary}")
