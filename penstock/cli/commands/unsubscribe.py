"""`penstock unsubscribe`"""

from __future__ import annotations

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock unsubscribe shop 2
"""


def unsubscribe(home: HomeArgument, number: IdArgument, as_json: JsonOption = False) -> None:
    """Withdraw a standing query. It ends with the next batch."""
    from penstock.registry import Registry
    from penstock.storage import Home

    offset = Registry(Home.open(home)).withdraw(number)
    out = Output(as_json=as_json)
    out.result({"id": number, "withdrawn_at": offset})
    out.say(f"withdrew subscription {number}")
