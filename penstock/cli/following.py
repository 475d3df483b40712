"""Output of `penstock tail`: notifications of a home, or through a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli.output import Output, shown

if TYPE_CHECKING:
    from penstock.client import News, Notification


def follow_broker(
    out: Output,
    broker: str,
    subscription: int,
    token_file: Path | None,
    since: int | None,
    after: int | None,
    *,
    follow: bool,
) -> None:
    """Print notifications; when a connection ends, report it and reconnect."""
    from penstock.service import BrokerReader, parse_address, read_tokens

    reader = BrokerReader(
        parse_address(broker),
        subscription,
        since=since,
        token=b"" if token_file is None else read_tokens(token_file)[0],
        on_trouble=lambda why: out.note(f"note: {why}; reconnecting"),
    )

    async def print_all() -> None:
        async for news in reader.news(follow=follow):
            print_news(out, news, after)

    asyncio.run(print_all())


def print_news(out: Output, news: News, after: int | None) -> None:
    """Print the notifications of a cut; with `after`, only those after that offset."""
    from penstock.delivery.json_lines import notification_lines

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
