"""From SUBSCRIBE records to rows of the registry."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from penstock.catalog import Catalog
from penstock.errors import PenstockError
from penstock.log import Record
from penstock.registry.plans import encode_plan
from penstock.registry.records import subscribe_owner, subscribe_sql
from penstock.registry.subscriptions import StoredSubscription
from penstock.sql import bind
from penstock.sql.query import Query


def bind_one_of(sql: str, catalog: Catalog, index: int, count: int) -> Query:
    """Bind one of several statements; the error says which one it was."""
    try:
        return bind(sql, catalog)
    except PenstockError as error:
        if count > 1:
            which = f"statement {index + 1} of {count}"
            error.detail = f"{which}; {error.detail}" if error.detail else which
        raise


def subscription_row(record: Record, catalog: Catalog, bound: Query | None) -> dict[str, object]:
    """The row for a SUBSCRIBE record; one that another release accepted, and this one does not,
    becomes a row that says so."""
    sql, owner, plan, broken = "", None, b"", ""
    try:
        sql, owner = subscribe_sql(record.body), subscribe_owner(record.body)
        plan = encode_plan(bound if bound is not None else bind(sql, catalog))
    except PenstockError as error:
        broken = str(error)
    return {
        "id": record.offset,
        "sql": sql,
        "owner": owner,
        "withdrawn_at": None,
        "plan": plan,
        "broken": broken,
    }


def stored_subscription(row: Row[Any]) -> StoredSubscription:
    return StoredSubscription(row.id, row.sql, row.owner, row.withdrawn_at, row.plan, row.broken)
