"""`penstock site`"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.interruptible import run_until_signal
from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption

if TYPE_CHECKING:
    from penstock.service import Address

PANEL = "Operate"
EXAMPLES = """
  penstock site --home news --listen 127.0.0.1:7170 --sites 12
  penstock site --upstream 127.0.0.1:7170 --listen 127.0.0.1:0
  penstock views calibrate
  penstock views up news --sites 12
"""


def site(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen on HOST:PORT; port 0 picks a free port.")
    ] = "127.0.0.1:0",
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="HOME", help="Run as the source: plan and feed the views of this home."
        ),
    ] = None,
    upstream: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Or run as a site of this source.")
    ] = None,
    sites: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Plan after N sites have connected.")
    ] = 1,
    documents: Annotated[
        str | None,
        typer.Option(metavar="TABLE.COLUMN", help="Column of documents, if there are several."),
    ] = None,
    feeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Maximum views that one view feeds. At the source: in the whole plan, by default "
            "30. At a site: for its own views, by default measured.",
        ),
    ] = None,
    source_feeds: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Maximum views that the source feeds.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of accepted tokens, one per line; the first is also used to connect. "
            "Required unless it listens on loopback.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a site or the source of a network of views, until Ctrl-C.

    Views feed each other: the source serves the views that no other view can feed, and a site
    computes its views from what it receives. Sites keep nothing on disk: when one fails, its views
    move to other sites.
    """
    from penstock.errors import NetworkError
    from penstock.service import (
        SiteSettings,
        SourceSettings,
        parse_address,
        read_tokens,
        run_site,
        run_source,
    )

    out = Output(as_json=as_json)
    if (home is None) == (upstream is None):
        raise NetworkError(
            "a site needs either a home or a source", hint="give --home HOME or --upstream ADDRESS"
        )
    address = parse_address(listen)
    tokens = (b"",) if token_file is None else read_tokens(token_file)
    if home is not None:
        limits = _limits(feeds, source_feeds)
        settings = SourceSettings(home, address, documents, sites, limits, tokens)
        _serve(out, lambda on_ready: run_source(settings, on_ready, out.note))
        return
    assert upstream is not None
    site_settings = SiteSettings(address, parse_address(upstream), tokens, feeds or 0)
    site_settings.check()
    if feeds is None:
        site_settings = replace(site_settings, feeds=_measured_feeds())
    _serve(out, lambda on_ready: run_site(site_settings, on_ready, out.note))


def _limits(feeds: int | None, source_feeds: int | None) -> Any:
    from penstock.views.plan_limits import PlanLimits

    return PlanLimits(source=source_feeds) if feeds is None else PlanLimits(feeds, source_feeds)


def _serve(
    out: Output, run: Callable[[Callable[[Address], None]], Coroutine[Any, Any, None]]
) -> None:
    def on_ready(address: Address) -> None:
        out.say(f"listening on {address}")
        out.result({"listening": str(address)})

    asyncio.run(run_until_signal(run(on_ready)))


def _measured_feeds() -> int:
    from penstock.service import calibrate_site

    return max(1, asyncio.run(calibrate_site(most=100)).feeds)
