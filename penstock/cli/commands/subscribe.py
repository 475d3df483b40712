"""`penstock subscribe`"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.durations import lease_or_none
from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

if TYPE_CHECKING:
    from penstock.catalog import Catalog
    from penstock.registry import StoredSubscription

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock subscribe shop "SELECT * FROM stocks WHERE per BETWEEN 45 AND 70"
  penstock subscribe shop "SELECT * FROM reviews WHERE rating = 1" --owner ann
  penstock subscribe shop "SELECT id, photo FROM products" --payload photo
  penstock subscribe shop "SELECT * FROM trades" --initial none
  penstock subscribe shop "SELECT * FROM stocks" --lease 10m
  penstock subscribe shop "SELECT * FROM stocks" --lease none
  penstock subscribe shop --file interests.sql
"""


class Start(StrEnum):
    """The initial content of a subscription."""

    CONTENT = "content"
    NONE = "none"


def subscribe(
    home: HomeArgument,
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="The standing query.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="SCRIPT",
            exists=True,
            dir_okay=False,
            help="A file of queries: one per line, or separated by semicolons. All or none are "
            "registered.",
        ),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="The owner of the query.")
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A bulky column of a query over one table: sent once, not again with every "
            "change of the row. Can be given several times.",
        ),
    ] = None,
    initial: Annotated[
        Start, typer.Option(help="Initial content; none: changes only.")
    ] = Start.CONTENT,
    lease: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=lease_or_none,
            help="Lease, such as 90s, 10m, 12h, 7d: the query ends after this time unless renewed; "
            "none: it lasts until withdrawn. By default that of the home (init --default-lease).",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Register a standing query; print its id, and its ticket on standard error.

    It becomes active with the next batch and starts with the rows its SQL returns then. With
    --initial none it receives every change from now on, and has no content. With the ticket the
    query can be renewed and withdrawn without access to the home; it is printed once, not stored.
    """
    from penstock.cli.progress import working
    from penstock.cli.statements import given_statements
    from penstock.registry import Registry
    from penstock.storage import Home

    statements = given_statements(sql, file)
    registry = Registry(Home.open(home))
    out = Output(as_json=as_json)
    with working(f"subscribing {count(len(statements), 'query', 'queries')}"):
        stored = registry.subscribe_many(
            [one.sql for one in statements],
            owner,
            payload=payload or (),
            initial=initial,
            lease_seconds=lease,
        )
    subscribed = [_described(one, registry.catalog()) for one in stored]
    for one in subscribed:
        for warning in one["warnings"]:
            out.note(f"warning: subscription {one['id']}: {warning}")
        out.say(str(one["id"]))
        if not as_json:
            out.note(f"ticket of subscription {one['id']}: {one['ticket']}")
    out.result(subscribed[0] if file is None else {"subscriptions": subscribed})


def _described(stored: StoredSubscription, catalog: Catalog) -> dict[str, Any]:
    warnings = stored.query(catalog).warnings
    return {
        "id": stored.id,
        "sql": stored.sql,
        "owner": stored.owner,
        "initial": stored.initial.wanted,
        "expires": None if stored.lease is None else stored.lease.expires.isoformat(),
        "warnings": list(warnings),
        "ticket": stored.ticket,
    }
