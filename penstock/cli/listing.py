"""Listing the commands of a package."""

from __future__ import annotations

import importlib
import inspect

from penstock.cli.groups import module_names
from penstock.cli.output import Output


def list_found(package: str, noun: str, command: str) -> None:
    """Print one line per module of a package: its command and summary."""
    out = Output()
    names = module_names(package)
    if not names:
        out.say(f"no {noun}s")
    width = max(map(len, names), default=0)
    for name in names:
        function = getattr(importlib.import_module(f"{package}.{name}"), name)
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        out.say(f"{command} {name.replace('_', '-'):<{width}}  {summary}")
