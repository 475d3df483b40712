"""`penstock backtest`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import Output, count
from penstock.cli.parameters import (
    ConfOption,
    HomeArgument,
    JsonOption,
    MasterOption,
    spark_settings,
)

if TYPE_CHECKING:
    from penstock.client import Notification
    from penstock.history.backtest import Backtest, Tested

PANEL = "Inspect"
EXAMPLES = """
  penstock backtest shop "SELECT * FROM stocks WHERE per < 20"
  penstock backtest shop "SELECT * FROM stocks" --from 1000 --to 2000
  penstock backtest shop --file interests.sql --limit 0 --json
"""

SHOWN_ROWS = 20


def backtest(
    home: HomeArgument,
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="The query to test.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="SCRIPT",
            exists=True,
            dir_okay=False,
            help="A file of queries: one per line, or separated by semicolons.",
        ),
    ] = None,
    start: Annotated[
        int, typer.Option("--from", metavar="OFFSET", min=0, help="Subscribe at this offset.")
    ] = 0,
    end: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="OFFSET",
            min=0,
            help="End before this offset; by default at the end of the log.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Notifications to show per query; by default 20 in a table, all with --json.",
        ),
    ] = None,
    ranges: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=1000, help="Count notifications per offset range, in N ranges."
        ),
    ] = 10,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a query would have received, had it been subscribed earlier.

    A Spark job over the log, read-only; can run while the pipeline is running. The query starts
    with its initial content at --from and then receives every change of it. At most 100,000
    notifications per query are shown; all are counted.
    """
    from penstock.cli.progress import bar
    from penstock.cli.statements import given_statements
    from penstock.history.backtest import MAX_SHOWN
    from penstock.history.backtest import backtest as test

    statements = given_statements(sql, file)
    shown = limit if limit is not None else MAX_SHOWN if as_json else SHOWN_ROWS
    with bar("testing", "tasks") as advance:
        tested = test(
            home,
            [one.sql for one in statements],
            start=start,
            end=end,
            shown=shown,
            ranges=ranges,
            master=master,
            conf=spark_settings(conf),
            on_progress=advance,
        )
    out = Output(as_json=as_json)
    out.result(_described(tested))
    _show(out, tested)


def _described(tested: Backtest) -> dict[str, Any]:
    return {
        "from": tested.start,
        "to": tested.end,
        "ranges": tested.ranges,
        "refused": tested.refused,
        "seconds": round(tested.seconds, 1),
        "queries": [_query(number, one) for number, one in enumerate(tested.queries, 1)],
    }


def _query(number: int, one: Tested) -> dict[str, Any]:
    totals = one.totals
    return {
        "query": number,
        "sql": one.sql,
        "inserts": totals.inserts,
        "updates": totals.updates,
        "deletes": totals.deletes,
        "by_range": totals.by_range,
        "rows": totals.rows,
        "complete": len(one.notifications) == totals.notifications,
        "notifications": [_notification(each) for each in one.notifications],
    }


def _notification(one: Notification) -> dict[str, object]:
    return {"offset": one.offset, "kind": one.kind, "before": one.before, "after": one.after}


def _show(out: Output, tested: Backtest) -> None:
    for number, one in enumerate(tested.queries, 1):
        if one.notifications:
            _show_notifications(out, number, one)
    totals = [(number, one.totals) for number, one in enumerate(tested.queries, 1)]
    out.table(
        ["query", "notifications", "inserts", "updates", "deletes", "rows at the end"],
        ([i, t.notifications, t.inserts, t.updates, t.deletes, t.rows] for i, t in totals),
    )
    out.say()
    sums = [sum(counts) for counts in zip(*(t.by_range for _, t in totals), strict=True)]
    spread = [
        (f"{low} to {high - 1}", number)
        for (low, high), number in zip(tested.ranges, sums, strict=True)
        if low < high
    ]
    out.table(["offsets", "notifications"], spread, numbers=["notifications"])
    out.say()
    bad = f"; {count(tested.refused, 'event')} could not be applied" if tested.refused else ""
    queries = count(len(tested.queries), "query", "queries")
    span = f"{count(tested.end - tested.start, 'record')} from offset {tested.start}"
    out.say(f"{queries}, {span}, {tested.seconds:.1f} s{bad}")


def _show_notifications(out: Output, number: int, one: Tested) -> None:
    shown = one.notifications
    out.say(f"query {number}: {one.sql}")
    columns = list(shown[0].after or shown[0].before or ())
    out.table(["offset", "kind", *columns], map(_line, shown), numbers=["offset"])
    if len(shown) < one.totals.notifications:
        out.say(f"the first {len(shown):,} of {one.totals.notifications:,} (--limit N)")
    out.say()


def _line(one: Notification) -> list[object]:
    row = one.after if one.after is not None else one.before
    return [one.offset, one.kind, *(row or {}).values()]
