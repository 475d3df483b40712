"""`penstock unsubscribe`"""

from __future__ import annotations

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption, TicketOption

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock unsubscribe shop 2
  penstock unsubscribe shop 2 --ticket TICKET
"""


def unsubscribe(
    home: HomeArgument,
    number: IdArgument,
    ticket: TicketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Withdraw a standing query. It ends with the next batch."""
    from penstock.registry import OWNER, Registry
    from penstock.storage import Home

    offset = Registry(Home.open(home)).withdraw_many([number], tickets=ticket or OWNER)
    out = Output(as_json=as_json)
    out.result({"id": number, "withdrawn_at": offset})
    out.say(f"withdrew subscription {number}")
