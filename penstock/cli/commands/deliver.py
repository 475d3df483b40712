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
        typer.Option(metavar="FILE", help="A file or a pipe to append to; - is standard output."),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the cursor; by default ID-FILE."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="CURSOR", min=0, help="Where a new cursor starts: after a content."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Set the cursor back: to --from, or to the content.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Append the notifications of a subscription to a file, once each, however often this is run.

    The lines are those of `penstock tail --json`. A cursor in the home remembers what was
    delivered; `penstock cursors` lists all of them, and `penstock compact` keeps what they still
    need. Delivery is at least once: after a crash some lines may come again, with the same ids.
    """
    from penstock.cli.interruptible import run_interruptible
    from penstock.delivery import JsonLinesChannel, SubscriptionDelivery
    from penstock.errors import HomeError
    from penstock.storage import Home

    if as_json and str(to) == "-":
        raise typer.BadParameter("--json prints to standard output, which --to - fills")
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
        delivery.resume()  # whoever runs the command has seen to what failed
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
            hint="the same command again goes on from there",
        )
    return sent


def _default_name(number: int, to: Path) -> str:
    file = re.sub(r"[^A-Za-z0-9._-]", "_", "stdout" if str(to) == "-" else to.name)
    return f"{number}-{file[:60]}"
