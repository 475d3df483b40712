"""Parameters that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.failures import JSON_KEY


def _remember_json(ctx: typer.Context, value: bool) -> bool:
    ctx.meta[JSON_KEY] = value
    return value


HomeArgument = Annotated[
    Path, typer.Argument(metavar="HOME", help="The directory of a Penstock instance.")
]
IdArgument = Annotated[
    int, typer.Argument(metavar="ID", min=0, help="The number that `penstock subscribe` printed.")
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", callback=_remember_json, help="Print one JSON object and nothing else."),
]
JsonLinesOption = Annotated[
    bool,
    typer.Option("--json", callback=_remember_json, help="Print one JSON object on each line."),
]
LimitOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Rows to show in a table; 0 shows all.")
]
