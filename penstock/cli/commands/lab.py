"""`penstock lab`: the experiments of penstock.lab."""

from __future__ import annotations

import os

import typer

from penstock.cli.groups import epilog, group_of
from penstock.cli.listing import list_found
from penstock.kernels.preparation import GEAR_VARIABLE

PANEL = "Try and measure"
PACKAGE = "penstock.lab.experiments"
EXAMPLES = """
  penstock lab run              (lists them)
  penstock lab run NAME --json
"""

app = typer.Typer(rich_markup_mode="rich", epilog=epilog(EXAMPLES))
experiments = typer.Typer(cls=group_of(PACKAGE), rich_markup_mode="rich", epilog=epilog(EXAMPLES))
app.add_typer(experiments, name="run")


@app.callback(invoke_without_command=True)
def lab(ctx: typer.Context) -> None:
    """Reproduce the experiments behind the figures."""
    if ctx.invoked_subcommand is None:
        list_found(PACKAGE, "experiment", "penstock lab run")


@experiments.callback(invoke_without_command=True)
def run(ctx: typer.Context) -> None:
    """Run an experiment. Without a name, list them."""
    os.environ.setdefault(GEAR_VARIABLE, "fast")  # figures are of compiled kernels
    if ctx.invoked_subcommand is None:
        list_found(PACKAGE, "experiment", "penstock lab run")
