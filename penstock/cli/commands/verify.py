"""`penstock verify`"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failures import DAMAGED, DIFFERENT
from penstock.cli.output import Output, count, size
from penstock.cli.parameters import HomeArgument, JsonOption

if TYPE_CHECKING:
    from penstock.maintenance import Verdict

PANEL = "Operate"
EXAMPLES = """
  penstock verify shop
  penstock verify shop --sample 1000
  penstock verify shop --all --json
"""


def verify(
    home: HomeArgument,
    sample: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of contents to compare.")
    ] = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Compare the contents of all subscriptions.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the sample.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check all files against their checksums, and contents against DuckDB over the log.

    Reports which file is damaged and what to do. Read-only; the home may be in use. Exit code 0: no
    problem; 7: a file is damaged or missing; 10: all files are intact but do not agree.
    """
    from penstock.cli.progress import bar
    from penstock.maintenance import Severity
    from penstock.maintenance import verify as verify_home
    from penstock.storage import Home

    drawn = random.randrange(1 << 32) if seed is None else seed
    verdict = verify_home(Home.open(home), bar, sample=None if everything else sample, seed=drawn)
    _show(Output(as_json=as_json), verdict, drawn)
    if verdict.has(Severity.DAMAGE):
        raise typer.Exit(DAMAGED)
    if verdict.has(Severity.DIFFERENCE):
        raise typer.Exit(DIFFERENT)


def _show(out: Output, verdict: Verdict, seed: int) -> None:
    frontier = verdict.frontier
    offset = 0 if frontier is None else frontier.end
    out.result(
        {
            "files": verdict.files,
            "bytes": verdict.bytes,
            "log_end": verdict.log_end,
            "offset": offset,
            "subscriptions": verdict.active,
            "compared": verdict.compared,
            "seed": seed,
            "findings": [
                {"severity": f.severity.value, "where": f.where, "what": f.what, "hint": f.hint}
                for f in verdict.findings
            ],
        }
    )
    for found in verdict.findings:
        out.say(f"{found.severity.value}: {found.where}: {found.what}")
        if found.hint:
            out.say(f"  hint: {found.hint}")
    out.say(f"read {count(verdict.files, 'file')}, {size(verdict.bytes)}")
    compared = len(verdict.compared)
    out.say(
        f"compared {count(compared, 'content')} of {verdict.active:,} with DuckDB "
        f"at offset {offset}"
    )
