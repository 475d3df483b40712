"""`penstock explain`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Inspect"
EXAMPLES = """
  penstock explain shop 2 '{"table": "stocks", "row": {"id": 4, "per": 52}}'
  penstock explain shop 2 --offset 1041    (a change in the log)
  penstock explain shop --plan             (the gear of each table)
"""


def explain(
    home: HomeArgument,
    number: Annotated[
        int | None, typer.Argument(metavar="ID", help="Id of a subscription.", show_default=False)
    ] = None,
    change: Annotated[
        str | None,
        typer.Argument(metavar="CHANGE", help="A change to test, in the format of publish."),
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Explain the change at this offset of the log."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the execution plan of the pipeline instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Explain why a change reaches a subscription or does not, condition by condition.

    The tables are replayed from the log in memory, up to the change; nothing is written. With
    --plan: for each table, edge and space, whether kernels process its changes (the fast gear) or
    Python does (the plain gear), and why.
    """
    if plan:
        if (number, change, offset) != (None, None, None):
            raise typer.BadParameter("--plan shows the whole home: give no ID, CHANGE or --offset")
        _show_plan(home, Output(as_json=as_json))
        return
    if number is None:
        raise typer.BadParameter("give the id of a subscription, or --plan")
    from penstock.cli.replaying import explain_change, explain_logged
    from penstock.flow.events import decode_event
    from penstock.storage import Home

    if (change is None) == (offset is None):
        raise typer.BadParameter("give either a change or --offset")
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


def _show_plan(home: Path, out: Output) -> None:
    from penstock.pipeline.planned import execution_plan
    from penstock.storage import Home

    lines = list(execution_plan(Home.open(home)))
    out.result(
        {
            "plan": [
                {"subject": subject, "work": work, "gear": decision.gear, "why": decision.why}
                for subject, work, decision in lines
            ]
        }
    )
    rows = [[line.subject, line.work, line.decision.gear, line.decision.why] for line in lines]
    out.table(["subject", "work", "gear", "why not fast"], rows)
