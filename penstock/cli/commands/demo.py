"""`penstock demo`"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption
from penstock.cli.progress import Advance, bar

PANEL = "Try and measure"
EXAMPLES = """
  penstock demo
  penstock demo --home shop --subscriptions 5000 --changes 2000
"""

MOST = 1_000_000
"""The demonstration keeps all it does in memory, to compare: a kilobyte or so for each."""


def demo(
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to make the home; by default a new temporary one."),
    ] = None,
    subscriptions: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="How many standing queries.")
    ] = 2000,
    changes: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="How many changes.")
    ] = 3000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    master: Annotated[str, typer.Option(metavar="URL", help="Where Spark runs.")] = "local[2]",
    as_json: JsonOption = False,
) -> None:
    """See it work: stocks, analysts' reviews, 2,000 standing queries, Spark on this machine.

    Takes a minute or so, and leaves a home that you can go on with.
    """
    from penstock.cli.demo_report import figures, show_report
    from penstock.lab.demo import run_demo

    out = Output(as_json=as_json)
    path = home if home is not None else Path(tempfile.mkdtemp(prefix="penstock-demo-"), "home")
    report = run_demo(
        path,
        _Steps(out),
        subscriptions=subscriptions,
        changes=changes,
        seed=seed,
        master=master,
    )
    out.result(figures(report))
    if not as_json:
        show_report(out, report)


class _Steps:
    """Says what is being done, and how long it took."""

    def __init__(self, out: Output) -> None:
        self._out = out

    @contextmanager
    def step(self, what: str) -> Iterator[Advance]:
        began = time.monotonic()
        with bar(what) as advance:
            yield advance
        self._out.say(f"✓ {what}  ({time.monotonic() - began:.1f} s)")
