"""Compares contents built from messages with the same SQL run by DuckDB over the replayed log.

The rows come from the log through the row stage, the contents from the message log through the
client; matching, joining and all state of the Hub or Spark take no part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import duckdb

from penstock.catalog.derived import is_extended
from penstock.catalog.payload_split import whole_name
from penstock.client import Content
from penstock.errors import OperatorError
from penstock.maintenance.findings import Finding, difference, remark
from penstock.maintenance.operator_functions import OperatorFunctions
from penstock.maintenance.oracle import Oracle, comparable
from penstock.query import Query, calls_operators
from penstock.sql.tried import with_try

_HINT = (
    "keep a copy of the home and report this; to go on, remove what is in its checkpoint directory "
    "(the next run rebuilds it from the log), then withdraw the subscription and subscribe again"
)


def compare(
    contents: Mapping[int, Content],
    oracle: Oracle,
    operators: OperatorFunctions,
    on_one: Callable[[int], None],
) -> Iterator[Finding]:
    """Every content that differs from DuckDB's result; `on_one` is called for each comparison."""
    for subscription, content in sorted(contents.items()):
        where = f"subscription {subscription}"
        built = comparable(row.values() for row in content.rows())
        try:
            expected = oracle.content(_text(content.query, operators, oracle))
        except (duckdb.Error, OperatorError) as error:
            reason = str(error).partition("\n")[0]
            yield remark(where, f"DuckDB cannot run its SQL, so it is not compared: {reason}")
        else:
            if built != expected:
                found = _difference(built, expected)
                excuse = operators.excuse(subscription, content.query)
                yield (
                    remark(where, f"{found}; {excuse}")
                    if excuse
                    else difference(where, found, _HINT)
                )
            on_one(subscription)


def _text(query: Query, operators: OperatorFunctions, oracle: Oracle) -> str:
    """The SQL for DuckDB: in a subscription, a value that cannot be computed is NULL."""
    computes = any(is_extended(whole_name(node.relation.name)) for node in query.nodes)
    text = operators.define_for(query) if calls_operators(query) else query.sql
    return with_try(oracle.with_documents(text)) if computes else text


def _difference(built: Counter[tuple[object, ...]], expected: Counter[tuple[object, ...]]) -> str:
    missing, extra = expected - built, built - expected
    parts = [
        f"{rows.total()} {verdict}, for instance {next(iter(rows))}"
        for rows, verdict in ((missing, "missing"), (extra, "too many"))
        if rows
    ]
    return f"rows of its content: {'; '.join(parts)}"
