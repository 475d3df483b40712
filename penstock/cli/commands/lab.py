"""`penstock lab`: the experiments of penstock.lab, and the papers they reproduce."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.groups import epilog, group_of
from penstock.cli.listing import list_found
from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption
from penstock.kernels.preparation import GEAR_VARIABLE

PANEL = "Try and measure"
PACKAGE = "penstock.lab.experiments"
EXAMPLES = """
  penstock lab list
  penstock lab paper liu2007
  penstock lab run              (lists experiments)
  penstock lab run NAME --json
"""
PAPER_EXAMPLES = """
  penstock lab paper liu2007
  penstock lab paper all --out evidence
  penstock lab paper liu2007 --full --json
  penstock lab paper liu2007 --full --item spreads --item "scheduling time"
"""
LIST_EXAMPLES = """
  penstock lab list
  penstock lab list --json
"""
DEFAULT_DIRECTORY = Path("build/lab")

app = typer.Typer(add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES))
experiments = typer.Typer(
    cls=group_of(PACKAGE), add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES)
)
app.add_typer(experiments, name="run")


@app.callback(invoke_without_command=True)
def lab(ctx: typer.Context) -> None:
    """Run the experiments behind the figures, and those of the papers."""
    if ctx.invoked_subcommand is None:
        list_found(PACKAGE, "experiment", "penstock lab run")


@experiments.callback(invoke_without_command=True)
def run(ctx: typer.Context) -> None:
    """Run an experiment. Without a name, list them."""
    _wait_for_kernels()
    if ctx.invoked_subcommand is None:
        list_found(PACKAGE, "experiment", "penstock lab run")


@app.command(epilog=epilog(PAPER_EXAMPLES))
def paper(
    name: Annotated[str, typer.Argument(help="Name of a paper (see penstock lab list), or all.")],
    full: Annotated[
        bool, typer.Option("--full", help="Use the published sizes: minutes to hours.")
    ] = False,
    item: Annotated[
        list[str] | None,
        typer.Option(
            help='Only items whose names begin with this, such as "figure 6". Can be given several '
            "times."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Directory for the pages.", file_okay=False)
    ] = DEFAULT_DIRECTORY,
    json: JsonOption = False,
) -> None:
    """Rerun the tables and figures of a paper, compare them with it, and judge its claims.

    Writes one HTML page per paper, and an index. Exit code 1: a claim fails.
    """
    _wait_for_kernels()
    from penstock.cli.paper_report import run_papers
    from penstock.lab.evidence.model import Size
    from penstock.lab.evidence.registry import ALL, PAPERS, find_papers

    if name not in (*PAPERS, ALL):
        raise typer.BadParameter(f"{name[:60]!r} is not one of {', '.join((*PAPERS, ALL))}")
    size = Size.FULL if full else Size.SMALL
    papers = find_papers(name)
    if item:
        known = [one.name for paper in papers for one in paper.items]
        papers = [one.only(item) for one in papers]
        if not any(one.items for one in papers):
            raise typer.BadParameter(f"{' or '.join(item)[:60]!r} is not one of {', '.join(known)}")
    if not run_papers(papers, size, out, Output(as_json=json)):
        raise typer.Exit(1)


@app.command("list", epilog=epilog(LIST_EXAMPLES))
def list_items(
    json: JsonOption = False,
) -> None:
    """List the papers, with their tables and figures, sizes and approximate durations."""
    from penstock.cli.paper_report import list_papers

    list_papers(Output(as_json=json))


def _wait_for_kernels() -> None:
    os.environ.setdefault(GEAR_VARIABLE, "fast")  # measure compiled kernels only
