"""`penstock quarantine`: events that could not be applied, and subscriptions that are suspended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.groups import epilog
from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

if TYPE_CHECKING:
    from penstock.registry import StoredSubscription

PANEL = "Inspect"
EXAMPLES = """
  penstock quarantine shop list
  penstock quarantine shop show 17
  penstock quarantine shop replay 17 18
  penstock quarantine shop replay --all
"""

app = typer.Typer(
    add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES), no_args_is_help=True
)

OffsetArgument = Annotated[
    int, typer.Argument(metavar="OFFSET", min=0, help="Offset of the event in the log.")
]


@app.callback()
def quarantine(ctx: typer.Context, home: HomeArgument) -> None:
    """List and replay events that could not be applied.

    Also lists subscriptions suspended because processing them failed, and rows missing from initial
    contents because an operator failed.
    """
    ctx.obj = home


@app.command("list", epilog=epilog("  penstock quarantine shop list --json"))
def list_events(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """List the events in quarantine, the suspended subscriptions, and the rows missing from
    subscriptions because an operator failed on them, each with the reason."""
    from penstock.registry import Registry, rows_left_out
    from penstock.storage import Home, list_quarantine

    home = Home.open(_home(ctx))
    entries = list(list_quarantine(home))
    with Registry(home) as registry:
        suspended = [one for one in registry.numbered(registry.suspended()) if _is_there(one)]
        left_out = [one for rows in rows_left_out(home.path, registry).values() for one in rows]
    out = Output(as_json=as_json)
    out.result(
        {
            "events": [
                {
                    "offset": entry.event.offset,
                    "primary": entry.event.primary,
                    "detail": entry.event.detail,
                    "hint": entry.event.hint,
                    "replayed_at": list(entry.replayed_at),
                }
                for entry in entries
            ],
            "suspended": [
                {"subscription": one.id, "sql": one.sql, "primary": one.suspended}
                for one in suspended
            ],
            "left_out": [
                {
                    "subscription": one.subscription,
                    "table": one.table,
                    "row": one.shown_key,
                    "primary": one.reason,
                }
                for one in left_out
            ],
        }
    )
    if left_out:
        shown = [(one.subscription, one.table, one.shown_key, one.reason) for one in left_out]
        out.table(("subscription", "missing row of", "key", "reason"), shown)
    if suspended:
        out.table(
            ("subscription", "suspended because processing it failed"),
            [(one.id, one.suspended) for one in suspended],
        )
    if entries:
        rows = [
            (e.event.offset, e.event.primary, ", ".join(map(str, e.replayed_at))) for e in entries
        ]
        out.table(("offset", "reason", "replayed at"), rows)
    elif not suspended and not left_out:
        out.say("the quarantine is empty")


def _is_there(one: StoredSubscription) -> bool:
    return one.withdrawn_at is None


@app.command(epilog=epilog("  penstock quarantine shop show 17"))
def show(ctx: typer.Context, offset: OffsetArgument, as_json: JsonOption = False) -> None:
    """Show one event: its bytes, and why it could not be applied."""
    from penstock.storage import Home

    event = Home.open(_home(ctx)).quarantine.get(offset)
    text = event.raw.decode(errors="backslashreplace")
    out = Output(as_json=as_json)
    out.result(
        {
            "offset": event.offset,
            "event": text,
            "primary": event.primary,
            "detail": event.detail,
            "hint": event.hint,
        }
    )
    out.say(text)
    for name, reason in (("reason", event.primary), ("detail", event.detail), ("hint", event.hint)):
        if reason:
            out.say(f"  {name}: {reason}")


@app.command(epilog=epilog("  penstock quarantine shop replay 17 18\n  … replay --all"))
def replay(
    ctx: typer.Context,
    offsets: Annotated[
        list[int] | None,
        typer.Argument(metavar="[OFFSET]...", help="Offsets of events, or ids of subscriptions."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All events that were not replayed yet.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Publish events again, for instance after the missing table was declared. Register
    subscriptions that are suspended or lack rows again, under a new id."""
    from penstock.registry import Registry, rows_left_out
    from penstock.storage import Home, list_quarantine
    from penstock.storage import replay as replay_events

    home = Home.open(_home(ctx))
    if bool(offsets) == everything:
        raise typer.BadParameter("give offsets or --all")
    if everything:
        offsets = [e.event.offset for e in list_quarantine(home) if not e.replayed_at]
    assert offsets is not None
    with Registry(home) as registry:
        known = {*registry.suspended(), *rows_left_out(home.path, registry)}
        subscriptions = [one for one in offsets if one in known]
        events = [one for one in offsets if one not in known]
        pairs = list(zip(events, replay_events(home, events), strict=True))
        again = [(one, registry.resubscribe(one).id) for one in subscriptions]
    out = Output(as_json=as_json)
    out.result({"replayed": [{"offset": old, "replayed_at": new} for old, new in [*pairs, *again]]})
    for old, new in again:
        out.say(f"subscription {old} is registered again as {new}")
    if events or not again:
        out.say(f"replayed {count(len(events), 'event')}")


def _home(ctx: typer.Context) -> Path:
    assert isinstance(ctx.obj, Path)
    return ctx.obj
