"""`penstock cursors`"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Inspect"
EXAMPLES = """
  penstock cursors shop
  penstock cursors shop --json
  penstock cursors shop --remove 2-changes.jsonl
"""
COLUMNS = ("name", "subscription", "cursor", "behind", "to", "next attempt", "last error")


def cursors(
    home: HomeArgument,
    remove: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove this cursor; compaction ignores it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the durable cursors of deliveries, and how far each is behind.

    `penstock deliver` creates a cursor, and so does a named delivery in a program. Compaction keeps
    the messages that cursors still need.
    """
    from penstock.delivery import DurableCursors
    from penstock.storage import Home

    opened = Home.open(home)
    kept = DurableCursors(opened)
    if remove is not None:
        kept.remove(remove)
    frontier = opened.messages.frontier
    end = 0 if frontier is None else frontier.end
    states = kept.all()
    out = Output(as_json=as_json)
    out.result(
        {
            "cursors": [
                {
                    "name": one.name,
                    "subscription": one.subscription,
                    "cursor": one.cursor,
                    "behind": max(0, end - one.cursor),
                    "generation": one.generation,
                    "to": one.target,
                    "next_attempt": _moment(one.next_attempt),
                    "suspended": one.is_suspended,
                    "last_error": one.last_error,
                }
                for one in states
            ]
        }
    )
    if not states:
        out.say("no cursors")
        return
    out.table(
        COLUMNS,
        [
            [
                one.name,
                one.subscription,
                one.cursor,
                max(0, end - one.cursor),
                one.target,
                "suspended" if one.is_suspended else _moment(one.next_attempt) or "",
                one.last_error,
            ]
            for one in states
        ],
        numbers=("subscription", "cursor", "behind"),
    )


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
