"""`penstock tail`"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.following import follow_broker, print_news
from penstock.cli.output import Output
from penstock.cli.parameters import JsonLinesOption

if TYPE_CHECKING:
    from penstock.delivery import SubscriptionReader

PANEL = "Inspect"
EXAMPLES = """
  penstock tail shop 2
  penstock tail shop 2 --no-follow --json
  penstock tail shop 2 --from 1042      (a cursor of content or tail --json)
  penstock tail shop 2 --after 1041     (changes after that offset)
  penstock tail --broker 127.0.0.1:7071 2
"""

LOOK_EVERY_SECONDS = 0.25
"""About as long as a stateful batch takes; polling more often would find little more."""


def tail(
    home: Annotated[
        str, typer.Argument(metavar="[HOME]", help="The directory of a Penstock instance.")
    ],
    number: Annotated[
        int | None,
        typer.Argument(metavar="ID", min=0, help="The id printed by `penstock subscribe`."),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Follow through this broker; give no HOME."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token for the broker.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow/--no-follow", help="Keep waiting for notifications, until Ctrl-C."),
    ] = True,
    since: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="CURSOR",
            min=0,
            help="Start from this cursor, as printed by `penstock content` or by --json.",
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

    Delivery is at least once: a notification may be repeated, for instance after a crash, and then
    has the same id. Each line of --json has a cursor to continue from with --from. It advances when
    all notifications of a batch have been printed; a reader that stops earlier gets them again.
    """
    from penstock.cli.remarks import progress_remark
    from penstock.delivery import SubscriptionReader
    from penstock.storage import Home

    if since is not None and after is not None:
        raise typer.BadParameter("give --from or --after, not both")
    out = Output(as_json=as_json)
    if broker is not None:
        if number is not None:
            raise typer.BadParameter("give HOME or --broker, not both")
        follow_broker(out, broker, _id(home), token_file, since, after, follow=follow)
        return
    if number is None:
        raise typer.BadParameter("Missing argument 'ID'.")
    opened = Home.open(Path(home))
    # Records up to `after` are not reported, so their effect may come from a saved content.
    reader = SubscriptionReader(opened, number, since, skip_to=None if after is None else after + 1)
    if after is not None:
        reader.check_reachable(after + 1)
    if reader.lost_before:
        out.note(f"note: changes before offset {reader.lost_before} were compacted")
    _print_new(out, reader, after)
    remark = progress_remark(opened, reader.progress())
    if remark:
        out.note(f"note: {remark}")
    while follow:
        time.sleep(LOOK_EVERY_SECONDS)
        _print_new(out, reader, after)
        reader.check_registered()


def _print_new(out: Output, reader: SubscriptionReader, after: int | None) -> None:
    for news in reader.new():
        print_news(out, news, after)


def _id(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text!r} is not a valid integer.", param_hint="'ID'")
    return int(text)
