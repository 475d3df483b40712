"""`penstock rebuild`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock rebuild shop
  penstock rebuild shop --accept-loss      (the end of the log is lost)
"""


def rebuild(
    home: HomeArgument,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Continue without the records missing at the end of the log."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild everything derived from the log, for instance after a file was damaged.

    The catalog, the registry, and the list of ingested files. Refused if acknowledged records are
    missing at the end of the log: restore the log from a backup. With --accept-loss the home
    continues without them: their offsets are not used again, and batches that came from them are
    moved to HOME/lost. No Hub or pipeline may be processing the home then.
    """
    from penstock.ingest import remove_ledger
    from penstock.registry import Registry
    from penstock.registry import rebuild as rebuild_registry
    from penstock.storage import Home
    from penstock.storage import accept_loss as accept

    opened = Home.open(home)
    loss = accept(opened) if accept_loss else None
    opened.log.check_end()
    rebuild_registry(opened)
    remove_ledger(opened)
    with Registry(opened) as registry:
        found = {
            "tables": len(registry.catalog()),
            "subscriptions": sum(1 for _ in registry.subscriptions(include_broken=True)),
            "log_end": registry.applied,
        }
    out = Output(as_json=as_json)
    lost = (
        {} if loss is None else {"lost": loss.end - loss.start, "batches_put_aside": loss.batches}
    )
    out.result(found | lost)
    if loss is not None and loss.end > loss.start:
        out.say(f"lost: {count(loss.end - loss.start, 'record')}, from offset {loss.start} on")
        out.say(f"moved to {loss.aside}: {count(loss.batches, 'batch', 'batches')}")
    out.say(
        f"rebuilt from {count(found['log_end'], 'record')}: {count(found['tables'], 'table')}, "
        f"{count(found['subscriptions'], 'subscription')}"
    )
