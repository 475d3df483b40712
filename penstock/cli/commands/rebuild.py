"""`penstock rebuild`"""

from __future__ import annotations

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Set up"
EXAMPLES = """
  penstock rebuild shop
"""


def rebuild(home: HomeArgument, as_json: JsonOption = False) -> None:
    """Make the catalog and the registry again from the log, for instance if a file is damaged."""
    from penstock.log import Home
    from penstock.registry import Registry
    from penstock.registry import rebuild as rebuild_registry

    opened = Home.open(home)
    rebuild_registry(opened)
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
