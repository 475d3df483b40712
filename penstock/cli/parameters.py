"""Parameters shared by several commands."""

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
    int, typer.Argument(metavar="ID", min=0, help="The id printed by `penstock subscribe`.")
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", callback=_remember_json, help="Print one JSON object and nothing else."),
]
JsonLinesOption = Annotated[
    bool,
    typer.Option("--json", callback=_remember_json, help="Print one JSON object per line."),
]
TicketOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ticket",
        metavar="TICKET",
        envvar="PENSTOCK_TICKET",
        help="Authorise by this ticket only, not as the owner of the home; one per ID, in the same "
        "order.",
    ),
]
LimitOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Rows to show in a table; 0 shows all.")
]
MasterOption = Annotated[
    str, typer.Option(metavar="URL", help="Spark master URL; by default this machine.")
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting. Can be given several times."),
]


def spark_settings(conf: list[str] | None) -> dict[str, str]:
    """The settings given by --conf."""
    settings = {}
    for setting in conf or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        settings[key] = value
    return settings
