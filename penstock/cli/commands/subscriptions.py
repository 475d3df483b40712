"""`penstock subscriptions`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption, LimitOption

if TYPE_CHECKING:
    from penstock.registry import StoredSubscription

PANEL = "Inspect"
EXAMPLES = """
  penstock subscriptions shop
  penstock subscriptions shop --owner ann --json
  penstock subscriptions shop --ended
"""


def subscriptions(
    home: HomeArgument,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only subscriptions of this owner.")
    ] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="List ended subscriptions instead.")
    ] = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List the standing queries.

    The state is "active", "waiting" (for the next batch), "broken" (accepted by
    another release) or "suspended" (processing it failed: penstock quarantine HOME list);
    of those that have ended, "withdrawn" or "expired" (the lease was not renewed).
    """
    from penstock.registry import Registry
    from penstock.storage import Home

    opened = Home.open(home)
    frontier = opened.messages.frontier
    active = 0 if frontier is None else frontier.active
    registry = Registry(opened)
    found = registry.ended() if ended else registry.subscriptions(include_broken=True)
    listed = [_described(one, active) for one in found if owner is None or one.owner == owner]
    out = Output(as_json=as_json)
    if as_json:
        out.result({"subscriptions": listed})
    elif not listed:
        out.say("no subscriptions")
    else:
        shown = listed[: limit or None]
        leased = ["expires"] if any(one["expires"] for one in shown) else []
        columns = ["id", "state", "owner", *leased, "sql"]
        out.table(columns, [["" if o[c] is None else o[c] for c in columns] for o in shown])
        if len(shown) < len(listed):
            out.say(f"… and {len(listed) - len(shown):,} more (--limit 0 shows all)")


def _described(one: StoredSubscription, active: int) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": _state(one, active),
        "owner": one.owner,
        "initial": one.initial.wanted,
        "expires": None if one.lease is None else one.lease.expires.isoformat(timespec="seconds"),
        "sql": one.sql,
    }


def _state(one: StoredSubscription, active: int) -> str:
    from penstock.registry import LEASE_RAN_OUT

    if one.withdrawn_at is not None:
        return "expired" if one.ended_by == LEASE_RAN_OUT else "withdrawn"
    if one.suspended or one.broken:
        return "suspended" if one.suspended else "broken"
    return "active" if one.id < active else "waiting"
