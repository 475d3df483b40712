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
    """Run a network of brokers on this machine, or simulate one."""


@app.command(epilog=epilog(EXAMPLES))
def up(
    home: HomeArgument,
    brokers: Annotated[
        int, typer.Option(metavar="N", min=1, max=30, help="Number of brokers.")
    ] = 3,
    payload_cache: PayloadCacheOption = 16,
    false_positives: FalsePositivesOption = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Start a chain of brokers on this machine, to try them out; runs until Ctrl-C."""
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
            out.say(f"{address}  upstream: {addresses[number - 1] if number else 'the home'}")
        out.say("To follow a subscription through the last broker, run in another terminal:")
        out.say(f"  penstock tail --broker {addresses[-1]} --token-file {token_file} ID")
        out.say("Ctrl-C stops all brokers.")
        while not stop.wait(LOOK_EVERY_SECONDS):
            if ended := network.ended():
                raise NetworkError(
                    f"the broker at {ended[0]} has ended", hint="see its output above"
                )
    _print_work(addresses, network.statistics, out)


def _print_work(
    addresses: Sequence[str], statistics: Sequence[dict[str, int]], out: Output
) -> None:
    """Print what each broker has sent and received, after all have ended."""
    out.result({"statistics": statistics})
    columns = ("broker", "bytes sent", "interests", "sent upstream", "unneeded", "payloads saved")
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
    brokers: Annotated[
        int, typer.Option(metavar="N", min=2, max=200, help="Number of brokers.")
    ] = 30,
    subscriptions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Subscriptions, at random brokers.")
    ] = 500,
    changes: Annotated[
        int, typer.Option(metavar="N", min=10, help="Changes sent through the network.")
    ] = 500,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 1,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a diagram of the overlay and its loads."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Demo of what covering, merging and payload caching save, simulated with 30 brokers."""
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
    columns = ("method", "bytes", "hops", "server sends", "busiest sends", "unneeded", "entries")
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
        out.say(f"Diagram of the overlay, line widths by traffic: {svg}")
