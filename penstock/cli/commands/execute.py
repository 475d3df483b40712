"""`penstock execute`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock execute shop "CREATE TABLE stocks (id INT PRIMARY KEY, per DOUBLE)"
  penstock execute shop "CREATE STREAM trades (symbol VARCHAR, price DOUBLE)"
  penstock execute shop --file schema.sql
"""


def execute(
    home: HomeArgument,
    sql: Annotated[
        str | None, typer.Argument(metavar="SQL", help="CREATE TABLE … or CREATE STREAM …")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="SCRIPT",
            exists=True,
            dir_okay=False,
            help="A file of statements: one per line, or separated by semicolons.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Declare tables and streams.

    The statements of a script are executed in order; the first one that is refused ends it.
    """
    from penstock.cli.statements import given_statements, in_place
    from penstock.registry import Registry
    from penstock.sql import parse_declaration
    from penstock.storage import Home

    statements = given_statements(sql, file)
    registry = Registry(Home.open(home))
    out = Output(as_json=as_json)
    declared = []
    for statement in statements:
        with in_place(statement, file):
            offset = registry.define(statement.sql)
        relation = parse_declaration(statement.sql)
        declared.append({"name": relation.name, "kind": relation.kind, "offset": offset})
        out.say(f"declared {relation.kind} {relation.name}")
    out.result({"declared": declared})
