"""`penstock rebuild`"""

from __future__ import annotations

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock rebuild shop
"""


def rebuild(home: HomeArgument, as_json: JsonOption = False) -> None:
    """Make what is derived from the log again, for instance if a file is damaged.

    The catalog, the registry, and the list of files that were taken from directories.
    """
    from penstock.log import Home
    from penstock.registry import Registry
    from penstock.registry import rebuild as rebuild_registry
    from penstock.sources.ledger import rebuild_ledger

    opened = Home.open(home)
    rebuild_registry(opened)
    rebuild_ledger(opened)
    registry = Registry(opened)
    found = {
        "tables": len(registry.catalog()),
        "subscriptions": sum(1 for _ in registry.subscriptions(include_broken=True)),
        "log_end": registry.applied,
    }
    out = Output(as_json=as_json)
    out.result(found)
    out.say(
        f"rebuilt from {count(found['log_end'], 'record')}: {count(found['tables'], 'table')}, "
        f"{count(found['subscriptions'], 'subscription')}"
    )
