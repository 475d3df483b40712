"""`penstock init`"""

from __future__ import annotations

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock init shop
  penstock init /var/lib/penstock/shop --json
"""


def init(home: HomeArgument, as_json: JsonOption = False) -> None:
    """Make a new home: a directory with a log, and all that is derived from it."""
    from penstock.log import Home

    created = Home.create(home)
    out = Output(as_json=as_json)
    out.result({"home": str(created.path)})
    out.say(f"made {created.path}")
