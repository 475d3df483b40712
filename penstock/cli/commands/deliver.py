"""`penstock deliver`"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failures import INTERRUPTED
from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption

if TYPE_CHECKING:
    from penstock.delivery import Channel, SubscriptionDelivery

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock deliver shop 2 --to changes.jsonl
  penstock deliver shop 2 --to changes.jsonl --follow
  penstock deliver shop 2 --to - --name mail | send-mails
  penstock deliver shop 2 --to changes.jsonl --restart
"""


def deliver(
    home: HomeArgument,
    number: IdArgument,
    to: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File or pipe to append to; - is standard output."),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the cursor; by default ID-FILE."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="CURSOR",
            min=0,
            help="Start of a new cursor, as printed by `penstock content`.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow/--no-follow", help="Keep waiting for notifications, until Ctrl-C."),
    ] = False,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Reset the cursor to --from, or start over from the content."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Append the notifications of a subscription to a file; every run continues the last one.

    The lines are those of `penstock tail --json`. A durable cursor in the home records what was
    delivered; `penstock cursors` lists the cursors, and `penstock compact` keeps what they still
    need. Delivery is at least once: after a crash some lines may be repeated, with the same ids.
    """
    from penstock.cli.interruptible import run_interruptible
    from penstock.delivery import JsonLinesChannel, SubscriptionDelivery
    from penstock.errors import HomeError
    from penstock.storage import Home

    if as_json and str(to) == "-":
        raise typer.BadParameter("--json and --to - both write to standard output")
    opened, target = Home.open(home), JsonLinesChannel.target_of(to)
    named = _default_name(number, to) if name is None else name
    out = Output(as_json=as_json)
    with SubscriptionDelivery(opened, number, since, name=named, target=target) as delivery:
        if delivery.state.target != target:
            raise HomeError(
                f"cursor {named} delivers to {delivery.state.target}",
                hint="give another --name, or remove that cursor: penstock cursors",
            )
        if restart:
            delivery.restart(since or 0)
        delivery.resume()  # running the command again ends a suspension
        channel = JsonLinesChannel(to)
        try:
            ended = run_interruptible(lambda stop: _send(delivery, channel, stop, follow=follow))
        finally:
            channel.close()
        state = delivery.state
    out.result({"cursor": state.cursor, "name": state.name, "sent": ended.result, "to": target})
    say = out.note if str(to) == "-" else out.say
    say(f"delivered {count(ended.result, 'notification')}; cursor {named} is at {state.cursor}")
    if ended.by_interrupt:
        raise typer.Exit(INTERRUPTED)


def _send(
    delivery: SubscriptionDelivery, channel: Channel, stop: threading.Event, *, follow: bool
) -> int:
    from penstock.delivery.delivery import POLL_SECONDS
    from penstock.errors import ChannelError

    sent = delivery.send_to(channel)
    while follow and not delivery.state.is_suspended and not stop.wait(POLL_SECONDS):
        sent += delivery.send_to(channel)
    if delivery.state.last_error:
        raise ChannelError(
            delivery.state.last_error,
            detail=f"{count(sent, 'notification')} delivered; the cursor is at "
            f"{delivery.state.cursor}",
            hint="run the same command again to continue from there",
        )
    return sent


def _default_name(number: int, to: Path) -> str:
    file = re.sub(r"[^A-Za-z0-9._-]", "_", "stdout" if str(to) == "-" else to.name)
    return f"{number}-{file[:60]}"
