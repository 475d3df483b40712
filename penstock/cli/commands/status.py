"""`penstock status`"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output, literal, text_console
from penstock.cli.parameters import HomeArgument, JsonOption

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.maintenance import Traffic
    from penstock.storage import Home

PANEL = "Operate"
EXAMPLES = """
  penstock status shop
  penstock status shop --once
  penstock status shop --naive --json
"""


def status(
    home: HomeArgument,
    once: Annotated[
        bool, typer.Option("--once", help="Print the state of things and end.")
    ] = False,
    naive: Annotated[
        bool,
        typer.Option(
            "--naive", help="Count what a naive server would have sent, from the message log."
        ),
    ] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How often to look again.")
    ] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Show how a home is doing: lag, rates, batch times, state, subscriptions, messages.

    In a terminal it goes on until Ctrl-C. What the pipeline did is read from the files that it
    writes into HOME/metrics: batches.jsonl, and penstock.prom for Prometheus.
    """
    from penstock.cli.status_report import status_members, status_rows
    from penstock.maintenance import status_of
    from penstock.storage import Home

    opened = Home.open(home)
    traffic = _count(opened) if naive else None
    if not (once or as_json) and sys.stdout.isatty():
        _follow(opened, traffic, interval)
        return
    found = status_of(opened)
    out = Output(as_json=as_json)
    out.result(status_members(found, traffic))
    for name, value in status_rows(found, traffic):
        out.say(f"{name:<16}  {value}")


def _count(home: Home) -> Traffic:
    from penstock.cli.progress import bar
    from penstock.maintenance import Clients

    clients = Clients(home)
    end = home.log.end
    with bar("building all contents") as advance:
        clients.take_in(lambda done: advance(done, end))
    return clients.traffic


def _follow(home: Home, traffic: Traffic | None, interval: float) -> None:
    from rich.live import Live

    from penstock.cli.status_report import status_rows
    from penstock.maintenance import status_of

    with Live(console=text_console(), auto_refresh=False) as live:
        try:
            while True:
                live.update(_table(status_rows(status_of(home), traffic)), refresh=True)
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _table(rows: list[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(literal(name), literal(value))
    return table
