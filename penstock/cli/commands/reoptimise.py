"""`penstock reoptimise`"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption

PANEL = "Process"
EXAMPLES = """
  penstock reoptimise shop
  penstock reoptimise shop --dry-run
  penstock reoptimise shop --method selective --json
  penstock analyse shop && penstock reoptimise shop --analysed
"""


def reoptimise(
    home: HomeArgument,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How costs are estimated: simulation (the default), selective or uniform.",
        ),
    ] = None,
    analysed: Annotated[
        bool,
        typer.Option(
            "--analysed", help="Use the statistics of penstock analyse (selective or uniform)."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Dry run: change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Choose new decompositions for queries over several tables, where that saves a fifth of
    their cost.

    Costs are estimated from the tables and their change rates, replayed from the log in memory; or,
    where they are too large for that, from the statistics of the last analysis. Contents stay the
    same; new decompositions take effect with the next batch.
    """
    from penstock.cli.progress import working
    from penstock.cli.replaying import reoptimised, reoptimised_as_analysed
    from penstock.errors import PenstockError
    from penstock.flow.planning import Method
    from penstock.flow.splitting import filtering_text
    from penstock.storage import Home

    try:
        chosen = Method.of(method or ("selective" if analysed else "simulation"))
    except PenstockError as error:
        message = f"{error.primary}; {error.hint}"
        raise typer.BadParameter(message, param_hint="--method") from None
    if analysed and chosen is Method.SIMULATION:
        raise typer.BadParameter(
            "simulation needs rows, and an analysis keeps none", param_hint="--method"
        )
    opened = Home.open(home)
    with working("estimating costs"):
        weigh = reoptimised_as_analysed if analysed else reoptimised
        replanned = weigh(opened, chosen, dry_run=dry_run)
    out = Output(as_json=as_json)
    out.result({"replanned": [asdict(one) for one in replanned], "dry_run": dry_run})
    for one in replanned:
        out.say(f"{one.id}: {one.sql}")
        for filtering in one.after:
            out.say(f"  {filtering_text(filtering)}")
    dry = " (dry run)" if dry_run else ""
    out.say(f"{count(len(replanned), 'subscription')} with a new decomposition{dry}")
