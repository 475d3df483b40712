"""`penstock tail`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output, json_line, shown
from penstock.cli.parameters import HomeArgument, IdArgument, JsonLinesOption

if TYPE_CHECKING:
    from penstock.cli.following import Follower
    from penstock.client import Notification

PANEL = "Look"
EXAMPLES = """
  penstock tail shop 2
  penstock tail shop 2 --no-follow --json
  penstock tail shop 2 --from 1042      (the cursor of a content, or a line)
  penstock tail shop 2 --after 1041     (changes behind that offset)
"""

LOOK_EVERY_SECONDS = 0.25
"""A stateful batch takes about as long, so looking more often would find little more."""


def tail(
    home: HomeArgument,
    number: IdArgument,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")
    ] = True,
    since: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="CURSOR",
            min=0,
            help="Only what happens from this cursor on: that of `penstock content`, or of a line "
            "of --json.",
        ),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(
            metavar="OFFSET",
            min=-1,
            help="Only changes from records after this offset.",
        ),
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print the notifications of a subscription, one per line.

    Delivery is at least once: a notification may come again, after a crash for instance, and then
    has the same id. Each line of --json has a cursor to go on from with --from. It moves when all
    notifications of a batch have been printed: whoever stops before that is told the batch again.
    """
    from penstock.cli.following import Follower
    from penstock.storage import Home

    if since is not None and after is not None:
        raise typer.BadParameter("give --from or --after, not both")
    opened = Home.open(home)
    known = since if since is not None else -1 if after is None else after
    follower = Follower(opened, number, since, known=known)
    follower.check_reachable(-1 if after is None else after)
    out = Output(as_json=as_json)
    if follower.lost_before:
        out.note(f"note: what changed before offset {follower.lost_before} is no longer there")
    _print_new(out, follower, after)
    remark = follower.progress().remark(opened)
    if remark:
        out.note(f"note: {remark}")
    while follow:
        time.sleep(LOOK_EVERY_SECONDS)
        _print_new(out, follower, after)
        follower.check_still_there()


def _print_new(out: Output, follower: Follower, after: int | None) -> None:
    for news in follower.advance():
        told = [one for one in news.notifications if after is None or one.offset > after]
        for number, one in enumerate(told, 1):
            _print(out, one, news.cursor if number == len(told) else news.since)


def _print(out: Output, notification: Notification, cursor: int) -> None:
    if out.as_json:
        typer.echo(
            json_line(
                {
                    "id": notification.id,
                    "subscription": notification.subscription,
                    "offset": notification.offset,
                    "cursor": cursor,
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
