"""`penstock content`"""

from __future__ import annotations

from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, IdArgument, JsonOption, LimitOption

PANEL = "Look"
EXAMPLES = """
  penstock content shop 2
  penstock content shop 2 --json
  penstock content shop 2 --limit 0
"""


def content(
    home: HomeArgument, number: IdArgument, limit: LimitOption = 100, as_json: JsonOption = False
) -> None:
    """Show the content of a subscription, built from the message log.

    Says so if there are records that no batch has processed yet. The cursor says where the content
    stands: `penstock tail HOME ID --from CURSOR` tells everything that changes after it.
    """
    from penstock.cli.following import EVERYTHING, Follower
    from penstock.storage import Home

    opened = Home.open(home)
    follower = Follower(opened, number, known=EVERYTHING)
    follower.catch_up()
    rows, progress = follower.rows(), follower.progress()
    out = Output(as_json=as_json)
    out.result(
        {
            "subscription": number,
            "sql": follower.subscription.sql,
            "columns": follower.columns,
            "rows": rows,
            "cursor": follower.cursor,
            "offset": progress.processed,
            "log_end": progress.log_end,
            "active": progress.active,
            "complete": progress.complete,
        }
    )
    shown = rows[: limit or None]
    if rows:
        out.table(follower.columns, [list(row.values()) for row in shown])
    more = "" if len(shown) == len(rows) else f", of which {len(shown):,} are shown (--limit 0)"
    out.say(f"{count(len(rows), 'row')} at cursor {follower.cursor}{more}")
    remark = progress.remark(opened)
    if remark:
        out.note(f"note: {remark}")
