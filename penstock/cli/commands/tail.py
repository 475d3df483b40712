"""`penstock tail`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output, shown
from penstock.cli.parameters import HomeArgument, IdArgument, JsonLinesOption

if TYPE_CHECKING:
    from penstock.client import Notification
    from penstock.delivery import SubscriptionReader

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
    from penstock.cli.remarks import progress_remark
    from penstock.delivery import SubscriptionReader
    from penstock.storage import Home

    if since is not None and after is not None:
        raise typer.BadParameter("give --from or --after, not both")
    opened = Home.open(home)
    # Records up to `after` need not be reported, so what they led to may come from a saved content.
    reader = SubscriptionReader(opened, number, since, skip_to=None if after is None else after + 1)
    if after is not None:
        reader.check_reachable(after + 1)
    out = Output(as_json=as_json)
    if reader.lost_before:
        out.note(f"note: what changed before offset {reader.lost_before} is no longer there")
    _print_new(out, reader, after)
    remark = progress_remark(opened, reader.progress())
    if remark:
        out.note(f"note: {remark}")
    while follow:
        time.sleep(LOOK_EVERY_SECONDS)
        _print_new(out, reader, after)
        reader.check_registered()


def _print_new(out: Output, reader: SubscriptionReader, after: int | None) -> None:
    from penstock.delivery.json_lines import notification_lines

    for news in reader.new():
        told = [one for one in news.notifications if after is None or one.offset > after]
        if out.as_json:
            for line in notification_lines(news._replace(notifications=told)):
                typer.echo(line)
        else:
            for one in told:
                out.say(f"{one.id}  {one.kind}  {_change_text(one)}")


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
