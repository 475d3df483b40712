"""`penstock network`: brokers between the message log and its readers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.commands.broker import FalsePositivesOption, PayloadCacheOption
from penstock.cli.groups import epilog
from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Try and measure"
EXAMPLES = """
  penstock network demo
  penstock network demo --brokers 60 --svg overlay.svg
  penstock network up shop --brokers 3
"""
LOOK_EVERY_SECONDS = 0.5

app = typer.Typer(
    add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES), no_args_is_help=True
)


@app.callback()
def network() -> None:
    """Pass messages on over many brokers."""


@app.command(epilog=epilog(EXAMPLES))
def up(
    home: HomeArgument,
    brokers: Annotated[int, typer.Option(metavar="N", min=1, max=30, help="How many.")] = 3,
    payload_cache: PayloadCacheOption = 16,
    false_positives: FalsePositivesOption = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Start a few brokers on this machine for trying: a chain from a home, until Ctrl-C."""
    from penstock.cli.interruptible import run_interruptible

    out = Output(as_json=as_json)
    options = ("--payload-cache", str(payload_cache), "--false-positives", str(false_positives))
    run_interruptible(lambda stop: _keep_up(home, brokers, options, out, stop))


def _keep_up(
    home: Path, brokers: int, options: Sequence[str], out: Output, stop: threading.Event
) -> None:
    from penstock.errors import NetworkError
    from penstock.service import LocalNetwork

    with LocalNetwork(home, brokers, options) as network:
        addresses, token_file = list(map(str, network.addresses)), str(network.token_file)
        out.result({"brokers": addresses, "token_file": token_file})
        for number, address in enumerate(addresses):
            out.say(
                f"{address}  {'at the home' if not number else f'below {addresses[number - 1]}'}"
            )
        out.say("Follow a subscription through the last one, in another terminal:")
        out.say(f"  penstock tail --broker {addresses[-1]} --token-file {token_file} ID")
        out.say("Ctrl-C ends them all.")
        while not stop.wait(LOOK_EVERY_SECONDS):
            if ended := network.ended():
                raise NetworkError(f"the broker at {ended[0]} has ended", hint="see above")
    _print_work(addresses, network.statistics, out)


def _print_work(
    addresses: Sequence[str], statistics: Sequence[dict[str, int]], out: Output
) -> None:
    """What each broker has done, when all have ended."""
    out.result({"statistics": statistics})
    columns = ("broker", "bytes sent", "interests", "sent on", "in vain", "payloads saved")
    rows = [
        (
            address,
            f"{one['sent_bytes']:,}",
            f"{one['interests']:,}",
            f"{one['interests_sent']:,}",
            f"{one['in_vain']:,} of {one['received']:,}",
            f"{one['payloads_saved']:,}",
        )
        for address, one in zip(addresses, statistics, strict=True)
        if one
    ]
    out.table(columns, rows, columns[1:])


@app.command(epilog=epilog(EXAMPLES))
def demo(
    brokers: Annotated[int, typer.Option(metavar="N", min=2, max=200, help="How many.")] = 30,
    subscriptions: Annotated[int, typer.Option(metavar="N", min=1, help="At any broker.")] = 500,
    changes: Annotated[int, typer.Option(metavar="N", min=10, help="Sent through it.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 1,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the overlay with the link loads.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """See what covering, merging and payload caching save: stocks and reviews over 30 brokers."""
    from penstock.lab.network_demo import run_network_demo
    from penstock.lab.overlay_svg import draw_overlay

    out = Output(as_json=as_json)
    done = run_network_demo(brokers, subscriptions, changes, seed)
    if svg is not None:
        drawn = draw_overlay(done.brokers, done.edges, done.link_bytes, done.subscribers)
        svg.write_text(drawn, encoding="utf-8")
    lines = [
        {"way": one.name, "table_entries": one.table_entries, **one.figures} for one in done.lines
    ]
    out.result(
        {
            "results": lines,
            "brokers": done.brokers,
            "subscriptions": done.subscriptions,
            "changes": done.changes,
            "messages": done.messages,
            "svg": None if svg is None else str(svg),
        }
    )
    out.say(
        f"{done.changes:,} changes gave {done.messages:,} messages for {done.subscriptions:,} "
        f"subscriptions at {done.brokers} brokers. Per change:"
    )
    columns = ("way", "bytes", "hops", "server sends", "busiest sends", "in vain", "table entries")
    rows = [
        (
            one.name,
            f"{one.figures['traffic_bytes']:,.0f}",
            f"{one.figures['overlay_hops']:.1f}",
            f"{one.figures['server_stress_bytes']:,.0f}",
            f"{one.figures['stress_p100']:,.0f}",
            f"{one.figures['in_vain']:.2f}",
            f"{one.table_entries:,}",
        )
        for one in done.lines
    ]
    out.table(columns, rows, columns[1:])
    if svg is not None:
        out.say(f"The overlay, with links as wide as what went over them: {svg}")
