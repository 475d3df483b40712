"""`penstock init`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.durations import duration
from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock init shop
  penstock init /var/lib/penstock/shop --json
  penstock init /srv/shop --group-access
  penstock init shop --buckets 16
  penstock init shop --default-lease 1d
  penstock init /shared/shop --shared      (for a cluster: docs/cluster.md)
"""


def init(
    home: HomeArgument,
    shared: Annotated[
        bool, typer.Option("--shared", help="The home is used from several machines.")
    ] = False,
    group_access: Annotated[
        bool,
        typer.Option(
            "--group-access",
            help="Grant access to the directory's group (2770); by default only to you (0700).",
        ),
    ] = False,
    buckets: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Buckets of the pipeline's state, a power of two up to 64: the maximum number of "
            "parallel tasks per batch. Cannot be changed later.",
        ),
    ] = 8,
    default_lease: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=duration,
            help="Default lease of subscriptions, such as 90s, 15m, 12h, 1d: they end after this "
            "time unless renewed. Without it they last until withdrawn.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a home: a directory with a log and everything derived from it."""
    from penstock.storage import Home

    created = Home.create(
        home,
        shared=shared,
        group_access=group_access,
        buckets=buckets,
        default_lease_seconds=default_lease,
    )
    out = Output(as_json=as_json)
    out.result({"home": str(created.path)})
    out.say(f"created {created.path}")
