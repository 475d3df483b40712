"""`penstock tail`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output, json_line, shown
from penstock.cli.parameters import HomeArgument, IdArgument, JsonLinesOption

if TYPE_CHECKING:
    from penstock.client import Notification

PANEL = "Look"
EXAMPLES = """
  penstock tail shop 2
  penstock tail shop 2 --no-follow --json
  penstock tail shop 2 --after 1041     (the last offset you have seen)
"""

LOOK_EVERY_SECONDS = 0.25
"""A stateful batch takes about as long, so looking more often would find little more."""


def tail(
    home: HomeArgument,
    number: IdArgument,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")
    ] = True,
    after: Annotated[
        int, typer.Option(metavar="OFFSET", min=-1, help="Only changes behind this offset.")
    ] = -1,
    as_json: JsonLinesOption = False,
) -> None:
    """Print the notifications of a subscription, one on each line.

    Delivery is at least once: a notification may come again, after a crash for instance, and then
    has the same id.
    """
    from penstock.cli.following import Follower
    from penstock.log import Home

    opened = Home.open(home)
    follower = Follower(opened, number, known=after)
    follower.check_reachable(after)
    out = Output(as_json=as_json)
    for notification in follower.advance():
        _print(out, notification, after)
    remark = follower.progress().remark(opened)
    if remark:
        out.note(f"note: {remark}")
    while follow:
        time.sleep(LOOK_EVERY_SECONDS)
        for notification in follower.advance():
            _print(out, notification, after)
        follower.check_still_there()


def _print(out: Output, notification: Notification, after: int) -> None:
    if notification.offset <= after:
        return
    if out.as_json:
        typer.echo(
            json_line(
                {
                    "id": notification.id,
                    "subscription": notification.subscription,
                    "offset": notification.offset,
                    "kind": notification.kind,
                    "before": notification.before,
                    "after": notification.after,
                }
            )
        )
    else:
        out.say(f"{notification.id}  {notification.kind}  {_change_text(notification)}")


def _change_text(notification: Notification) -> str:
    before, after = notification.before, notification.after
    if before is not None and after is not None:
        parts = [
            f"{name}={shown(old)}" + ("" if new == old else f"→{shown(new)}")
            for (name, old), new in zip(before.items(), after.values(), strict=True)
        ]
    else:
        row = before if after is None else after
        parts = [f"{name}={shown(value)}" for name, value in (row or {}).items()]
    return "  ".join(parts)
