"""`penstock bench`: the benchmarks of penstock.lab."""

from __future__ import annotations

import os

import typer

from penstock.cli.groups import epilog, group_of
from penstock.cli.listing import list_found
from penstock.kernels.preparation import GEAR_VARIABLE

PANEL = "Try and measure"
PACKAGE = "penstock.lab.benchmarks"
EXAMPLES = """
  penstock bench              (lists them)
  penstock bench NAME --help
  penstock bench NAME --json
"""

app = typer.Typer(
    cls=group_of(PACKAGE), add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES)
)


@app.callback(invoke_without_command=True)
def bench(ctx: typer.Context) -> None:
    """Run a benchmark. Without a name, list them.

    Benchmarks wait until the kernels are compiled, unless PENSTOCK_GEAR selects the gear to
    measure.
    """
    os.environ.setdefault(GEAR_VARIABLE, "fast")  # inherited by child processes
    if ctx.invoked_subcommand is None:
        list_found(PACKAGE, "benchmark", "penstock bench")
