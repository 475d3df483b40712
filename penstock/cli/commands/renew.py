"""`penstock renew`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.durations import duration
from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption, TicketOption

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock renew shop 2
  penstock renew shop 2 3 5 --lease 1h
  penstock renew shop 2 --ticket TICKET
"""


def renew(
    home: HomeArgument,
    numbers: Annotated[
        list[int],
        typer.Argument(metavar="ID...", min=0, help="Ids printed by `penstock subscribe`."),
    ],
    lease: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=duration,
            help="New lease, starting now, such as 90s, 10m, 12h, 7d; by default the same length.",
        ),
    ] = None,
    ticket: TicketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Renew the leases of subscriptions, all or none.

    An expired lease ends its subscription when the home is next processed; until then it can still
    be renewed.
    """
    from penstock.registry import OWNER, Registry
    from penstock.storage import Home

    renewed = Registry(Home.open(home)).renew(numbers, lease, tickets=ticket or OWNER)
    out = Output(as_json=as_json)
    leases = [(one.id, one.lease) for one in renewed if one.lease is not None]
    for number, found in leases:
        out.say(f"renewed subscription {number} until {found.expires:%Y-%m-%d %H:%M:%S} UTC")
    out.result(
        {
            "renewed": [
                {"id": n, "lease_seconds": one.seconds, "expires": one.expires.isoformat()}
                for n, one in leases
            ]
        }
    )
