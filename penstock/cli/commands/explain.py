"""`penstock explain`"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption

PANEL = "Look"
EXAMPLES = """
  penstock explain shop 2 '{"table": "stocks", "row": {"id": 4, "per": 52}}'
  penstock explain shop 2 --offset 1041    (a change that is in the log)
"""


def explain(
    home: HomeArgument,
    number: IdArgument,
    change: Annotated[
        str | None,
        typer.Argument(metavar="CHANGE", help="A change that could come now, as published."),
    ] = None,
    offset: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Explain the change at this offset.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a change does, or does not, reach a subscription, condition by condition.

    The tables are replayed from the log in memory, up to the change; nothing is written.
    """
    from penstock.cli.replaying import explain_change, explain_logged
    from penstock.flow.events import decode_event
    from penstock.storage import Home

    if (change is None) == (offset is None):
        raise typer.BadParameter("give a change, or --offset of one in the log")
    opened = Home.open(home)
    if offset is not None:
        explanation = explain_logged(opened, number, offset)
    else:
        assert change is not None
        raw = change.encode(errors="surrogateescape")
        explanation = explain_change(opened, number, decode_event(raw))
    out = Output(as_json=as_json)
    out.result(explanation.to_dict())
    out.say(str(explanation))
