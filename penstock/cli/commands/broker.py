"""`penstock broker`"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption

PayloadCacheOption = Annotated[
    int,
    typer.Option(
        metavar="MIB",
        min=0,
        max=16 << 10,
        help="Memory for caching long texts that are sent repeatedly; 0 disables the cache.",
    ),
]
FalsePositivesOption = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        max=0.9,
        help="Acceptable share of unneeded messages from upstream, to send fewer interests there: "
        "0.05 is one in twenty.",
    ),
]

if TYPE_CHECKING:
    from penstock.service import Address, BrokerSettings

PANEL = "Operate"
EXAMPLES = """
  penstock broker --home shop --listen 127.0.0.1:7070
  penstock broker --upstream 127.0.0.1:7070 --listen 127.0.0.1:7071
  penstock tail --broker 127.0.0.1:7071 2
  penstock broker --home shop --listen 0.0.0.0:7070 --token-file tokens
  penstock broker --upstream 127.0.0.1:7070 --listen 127.0.0.1:7072 \\
      --payload-cache 256 --false-positives 0.05
  penstock broker --upstream hub:7070 --listen 127.0.0.1:7071 \\
      --upstream-token-file token
"""


def broker(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen on HOST:PORT; port 0 picks a free port.")
    ],
    home: Annotated[
        Path | None, typer.Option(metavar="HOME", help="Forward the messages of this home.")
    ] = None,
    upstream: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Or forward those of this broker.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of accepted tokens, one per line. Required unless it listens on loopback.",
        ),
    ] = None,
    upstream_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the token for the upstream broker."),
    ] = None,
    payload_cache: PayloadCacheOption = 16,
    false_positives: FalsePositivesOption = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Forward messages to readers and other brokers, until Ctrl-C.

    Brokers form a tree whose root reads the home. Each forwards only the messages that a subscriber
    downstream needs; a long text is sent over a link once and then referenced by name. Brokers keep
    nothing on disk: restart one that was killed, and its peers continue where they were.
    """
    from penstock.service import BrokerSettings, parse_address, read_tokens

    settings = BrokerSettings(
        parse_address(listen),
        None if upstream is None else parse_address(upstream),
        home,
        (b"",) if token_file is None else read_tokens(token_file),
        b"" if upstream_token_file is None else read_tokens(upstream_token_file)[0],
        payload_cache << 20,
        false_positives,
    )
    asyncio.run(_run(settings, Output(as_json=as_json)))


async def _run(settings: BrokerSettings, out: Output) -> None:
    from penstock.service import Broker

    def on_ready(address: Address) -> None:
        out.say(f"listening on {address}")
        out.result({"listening": str(address)})

    broker = Broker(settings, out.note)
    task = asyncio.ensure_future(broker.run(on_ready))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    done = broker.statistics()
    out.result(done.to_json())
    out.say(
        f"sent {done.sent_bytes:,} bytes to other brokers; {done.payloads_saved:,} payloads "
        "saved by the cache"
    )
    if done.received:
        out.say(f"{done.in_vain:,} of {done.received:,} received messages were not needed")
