"""Contents built from messages, held against the same SQL run by DuckDB over the replayed log.

The rows come from the log through the row stage, the contents from the message log through the
client; matching, joining and everything that the Hub or Spark kept on the way has no part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import duckdb

from penstock.client import Content
from penstock.maintenance.findings import Finding, difference, remark
from penstock.maintenance.oracle import Oracle, comparable

_HINT = (
    "keep a copy of the home and report this; to go on, remove what is in its checkpoint directory "
    "(the next run rebuilds it from the log), then withdraw the subscription and subscribe again"
)


def compare(
    contents: Mapping[int, Content], oracle: Oracle, on_one: Callable[[int], None]
) -> Iterator[Finding]:
    """Every content that is not what DuckDB says; `on_one` is told of those that were compared."""
    for subscription, content in sorted(contents.items()):
        where = f"subscription {subscription}"
        built = comparable(row.values() for row in content.rows())
        try:
            expected = oracle.content(content.query.sql)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            yield remark(where, f"DuckDB cannot run its SQL, so it is not compared: {reason}")
        else:
            if built != expected:
                yield difference(where, _difference(built, expected), _HINT)
            on_one(subscription)


def _difference(built: Counter[tuple[object, ...]], expected: Counter[tuple[object, ...]]) -> str:
    missing, extra = expected - built, built - expected
    parts = [
        f"{rows.total()} {verdict}, for instance {next(iter(rows))}"
        for rows, verdict in ((missing, "missing"), (extra, "too many"))
        if rows
    ]
    return f"rows of its content: {'; '.join(parts)}"
