"""`penstock content`"""

from __future__ import annotations

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption, LimitOption

PANEL = "Inspect"
EXAMPLES = """
  penstock content shop 2
  penstock content shop 2 --json
  penstock content shop 2 --limit 0
"""


def content(
    home: HomeArgument, number: IdArgument, limit: LimitOption = 100, as_json: JsonOption = False
) -> None:
    """Show the content of a subscription, built from the message log.

    Prints a note if some records have not been processed yet. The cursor is the position of the
    content in the log: `penstock tail HOME ID --from CURSOR` prints all later changes.
    """
    from penstock.cli.remarks import progress_remark
    from penstock.delivery import END, SubscriptionReader
    from penstock.storage import Home

    opened = Home.open(home)
    reader = SubscriptionReader(opened, number, skip_to=END)
    reader.catch_up()
    rows, progress = reader.rows(), reader.progress()
    columns = reader.registration.columns
    out = Output(as_json=as_json)
    out.result(
        {
            "subscription": number,
            "sql": reader.registration.query.sql,
            "columns": columns,
            "rows": rows,
            "cursor": reader.cursor,
            "offset": progress.processed,
            "log_end": progress.log_end,
            "active": progress.active,
            "complete": progress.complete,
        }
    )
    shown = rows[: limit or None]
    if rows:
        out.table(columns, [list(row.values()) for row in shown])
    more = "" if len(shown) == len(rows) else f"; {len(shown):,} shown (--limit 0 shows all)"
    out.say(f"{count(len(rows), 'row')} at cursor {reader.cursor}{more}")
    remark = progress_remark(opened, progress)
    if remark:
        out.note(f"note: {remark}")
