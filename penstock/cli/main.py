"""The `penstock` program."""

from __future__ import annotations

import gc
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from penstock.cli.failures import DEBUG_KEY, READER_GONE, exit_code_help, silence_standard_output
from penstock.cli.groups import RootGroup, epilog

EXAMPLES = """\
  penstock demo
  penstock init shop
  penstock execute shop "CREATE TABLE stocks (id INT PRIMARY KEY, per DOUBLE)"
  penstock subscribe shop "SELECT * FROM stocks WHERE per < 20"
  penstock publish shop changes.jsonl
  penstock run shop --once
"""

COLLECT_AFTER_OBJECTS = 50_000
"""New objects between two garbage collections, instead of 700. Loading a command creates some
200,000 long-lived objects; scanning them repeatedly took a sixth of the loading time."""

app = typer.Typer(
    cls=RootGroup,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=f"{epilog(EXAMPLES)}\n\n{exit_code_help()}",
)


@app.callback(invoke_without_command=True)
def penstock(
    ctx: typer.Context,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="PENSTOCK_DEBUG", help="Print a traceback with errors."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Standing SQL queries: subscribe with a SELECT, publish changes, receive what changed."""
    ctx.meta[DEBUG_KEY] = debug
    if version:
        from penstock.cli.commands.version import version as print_version

        print_version(as_json=False)
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    """The entry point of the installed program."""
    gc.set_threshold(COLLECT_AFTER_OBJECTS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a limited terminal encoding is no error
    code: str | int | None = 0
    try:
        app(prog_name="penstock")
    except SystemExit as ended:
        code = ended.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_standard_output()
        code = READER_GONE
    # Skips the last garbage collection at exit: 0.1 s. DuckDB's bindings need it: they report
    # objects that are still alive.
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)
