"""`penstock compact`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import Output, size
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Operate"
EXAMPLES = """
  penstock compact shop
  penstock compact shop --to 1000000    (the cursor of the slowest subscriber)
  penstock compact shop --past-cursors  (slow deliveries must be restarted)
"""


def compact(
    home: HomeArgument,
    to: Annotated[
        int | None,
        typer.Option(metavar="OFFSET", min=0, help="Compact no further than this offset."),
    ] = None,
    past_cursors: Annotated[
        bool,
        typer.Option(
            "--past-cursors",
            help="Also remove what durable cursors still need; restart their deliveries.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compact the log and the message log up to an offset.

    Tables, contents and subscriptions stay the same; the changes that led to them are removed.
    Subscribers whose cursor is before the compacted offset must restart from their content.
    Messages that a durable cursor (`penstock cursors`) still needs are kept. No Hub or pipeline may
    be processing the home; publishing and reading are allowed.
    """
    from penstock.cli.progress import bar
    from penstock.maintenance import compact as compact_home
    from penstock.storage import Home

    done = compact_home(Home.open(home), bar, to=to, past_cursors=past_cursors)
    out = Output(as_json=as_json)
    out.result(
        {
            "offset": done.offset,
            "log_offset": done.log_offset,
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
            "held_back_by": done.held_back_by,
        }
    )
    out.say(f"compacted the messages up to offset {done.offset}, the log up to {done.log_offset}")
    out.say(f"{size(done.bytes_before)} before, {size(done.bytes_after)} now")
    if done.held_back_by:
        out.note(f"note: {done.held_back_by}")
