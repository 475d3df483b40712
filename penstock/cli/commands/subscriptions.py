"""`penstock subscriptions`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption, LimitOption

PANEL = "Look"
EXAMPLES = """
  penstock subscriptions shop
  penstock subscriptions shop --owner ann --json
"""


def subscriptions(
    home: HomeArgument,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this owner.")
    ] = None,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List the standing queries that are not withdrawn.

    The state is "active", "waiting" (for the next batch) or "broken" (accepted by another release).
    """
    from penstock.log import Home
    from penstock.registry import Registry

    opened = Home.open(home)
    frontier = opened.messages.frontier
    active = 0 if frontier is None else frontier.active
    listed = [
        {
            "id": one.id,
            "state": "broken" if one.broken else "active" if one.id < active else "waiting",
            "owner": one.owner,
            "initial": one.initial.wanted,
            "sql": one.sql,
        }
        for one in Registry(opened).subscriptions(include_broken=True)
        if owner is None or one.owner == owner
    ]
    out = Output(as_json=as_json)
    if as_json:
        out.result({"subscriptions": listed})
    elif not listed:
        out.say("no subscriptions")
    else:
        shown = listed[: limit or None]
        out.table(
            ("id", "state", "owner", "sql"),
            [(o["id"], o["state"], o["owner"] or "", o["sql"]) for o in shown],
        )
        if len(shown) < len(listed):
            out.say(f"… and {len(listed) - len(shown):,} more (--limit 0 shows all)")
