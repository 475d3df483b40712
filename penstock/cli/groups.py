"""Command groups discovered from packages: a new command is a new file.

A module `x` defines a function `x`, whose parameters are those of the command, or a typer
application `app` with subcommands. It may also define `EXAMPLES` (lines for the help text) and
`PANEL` (the heading under which the command is listed). Modules are imported on demand, so that a
command does not wait for the imports of the others.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from penstock.cli.failures import DEBUG_KEY, JSON_KEY, exit_code_of, explain_failure
from penstock.cli.output import literal

PANELS = ("Set up", "Publish and subscribe", "Process", "Inspect", "Operate", "Try and measure")


class FoundGroup(TyperGroup):
    """A group whose commands are the modules of `package`."""

    package = ""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name.replace("_", "-") for name in module_names(self.package)]

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        if cmd_name.replace("-", "_") not in module_names(self.package):
            return None
        return _command(cmd_name, self._module(cmd_name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            # Typer suggests only registered commands, and these are discovered.
            close = get_close_matches(args[0], self.list_commands(ctx)) if args else []
            if close:
                error.message = f"{error.message.rstrip('.')}. Did you mean {close[0]!r}?"
            raise

    def _module(self, command: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{command.replace('-', '_')}")


class RootGroup(FoundGroup):
    """The root group: turns exceptions into error texts and exit codes."""

    package = "penstock.cli.commands"

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: (_panel_number(self._module(name)), name))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise  # usage errors: typer prints them
        except (Exception, KeyboardInterrupt) as error:
            raise _failed(ctx, error) from error


def _failed(ctx: Any, error: BaseException) -> typer.Exit:
    as_json, debug = bool(ctx.meta.get(JSON_KEY)), bool(ctx.meta.get(DEBUG_KEY))
    explain_failure(error, as_json=as_json, debug=debug)
    return typer.Exit(exit_code_of(error))


def group_of(package_name: str) -> type[FoundGroup]:
    """The group class for the commands in a package."""

    class PackageGroup(FoundGroup):
        package = package_name

    return PackageGroup


def module_names(package: str) -> list[str]:
    """The modules of a package without helpers (`_x`); empty if there is no such package."""
    if importlib.util.find_spec(package) is None:
        return []
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return [module.name for module in found if not module.name.startswith("_")]


def epilog(examples: str) -> str:
    """The end of a help text: the examples."""
    return f"[bold]Examples[/bold]\n{literal(examples.strip(chr(10)))}" if examples else ""


@cache  # building a command takes milliseconds, and typer may look it up several times
def _command(name: str, module: ModuleType) -> TyperCommand | TyperGroup:
    family = getattr(module, "app", None)
    command: Any
    if isinstance(family, typer.Typer):
        command = typer.main.get_command(family)
        command.name = name
    else:
        function: Callable[..., object] = getattr(module, name.replace("-", "_"))
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        alone.command(name, epilog=epilog(getattr(module, "EXAMPLES", "")))(function)
        command = typer.main.get_command(alone)
    command.rich_help_panel = getattr(module, "PANEL", None)
    return command  # type: ignore[no-any-return]


def _panel_number(module: ModuleType) -> int:
    panel = getattr(module, "PANEL", "")
    return PANELS.index(panel) if panel in PANELS else len(PANELS)
