"""Converts SUBSCRIBE records to rows of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.client import Initial
from penstock.errors import PenstockError
from penstock.flow.faults import SetAside, describe_fault, is_fault
from penstock.packing import pack
from penstock.registry.damage import damaged
from penstock.registry.leases import Lease
from penstock.registry.plans import (
    decode_decomposition,
    encode_decomposition,
    encode_plan,
)
from penstock.registry.records import Subscribed, subscribed
from penstock.registry.stored_subscription import StoredSubscription
from penstock.spaces import Replan
from penstock.storage import Record

if TYPE_CHECKING:
    from penstock.sql import ShapeBinder

_REGISTRY = Path("registry.db")


class Binder:
    """Turns texts into stored plans, each distinct text once: texts often repeat."""

    def __init__(self, shapes: Callable[[], ShapeBinder]) -> None:
        self._shapes = shapes
        self._plans: dict[str, bytes] = {}

    def plan(self, sql: str) -> bytes:
        plan = self._plans.get(sql)
        if plan is None:
            plan = self._plans[sql] = encode_plan(self._shapes().bind(sql))
        return plan

    def plans(self, statements: Sequence[str]) -> list[bytes]:
        """The plans of all statements; an error says which one was refused."""
        plans = []
        for number, sql in enumerate(statements, 1):
            try:
                plans.append(self.plan(sql))
            except PenstockError as error:
                if len(statements) > 1:
                    which = f"statement {number} of {len(statements)}"
                    error.detail = f"{which}; {error.detail}" if error.detail else which
                raise
        return plans

    def stored(self, record: Record) -> StoredSubscription:
        """The subscription of a SUBSCRIBE record. If another release accepted it and this one does
        not, or if it leads to a fault, it is marked as such."""
        said = Subscribed("")
        try:
            said = subscribed(record.body)
            plan, broken = self.plan(said.sql), ""
        except PenstockError as error:
            plan, broken = b"", str(error)
        except Exception as error:
            if not is_fault(error):
                raise
            plan, broken = b"", describe_fault(error)
        return stored_as(record.offset, said, plan, broken)


def stored_as(
    offset: int, said: Subscribed, plan: bytes, broken: str = "", ticket: str | None = None
) -> StoredSubscription:
    sql, owner, chosen, initial, lease, ticket_hash = said
    return StoredSubscription(
        offset,
        sql,
        owner,
        None,
        plan,
        broken,
        chosen,
        initial,
        lease,
        ticket_hash=ticket_hash,
        ticket=ticket,
    )


def row_of(stored: StoredSubscription) -> dict[str, object]:
    chosen = encode_decomposition(stored.decomposition)
    return {
        "id": stored.id,
        "sql": stored.sql,
        "owner": stored.owner,
        "withdrawn_at": stored.withdrawn_at,
        "ended_by": stored.ended_by,
        **lease_row(stored.lease),
        "plan": stored.plan,
        "broken": stored.broken,
        "decomposition": chosen,
        "initial": str(stored.initial),
        "ticket_hash": stored.ticket_hash,
        "checksum": _checksum(
            stored.id,
            stored.sql,
            stored.owner,
            stored.plan,
            stored.broken,
            chosen,
            str(stored.initial),
            stored.ticket_hash,
        ),
        "suspended": stored.suspended,
    }


def lease_row(lease: Lease | None) -> dict[str, object]:
    seconds, expires_ms = (None, None) if lease is None else lease
    return {"lease_seconds": seconds, "expires_ms": expires_ms}


def from_rows(rows: Iterable[Sequence[Any]]) -> list[StoredSubscription]:
    found = []
    for number, sql, owner, withdrawn_at, why, seconds, expires_ms, *fixed in rows:
        plan, broken, chosen, initial, ticket_hash, checksum, suspended = fixed
        if _checksum(number, sql, owner, plan, broken, chosen, initial, ticket_hash) != checksum:
            raise damaged(_REGISTRY, f"subscription {number} is not as it was written")
        if not _are_plausible(withdrawn_at, why, seconds, expires_ms):
            raise damaged(_REGISTRY, f"how subscription {number} ends is not as it was written")
        lease = None if seconds is None else Lease(seconds, expires_ms)
        chosen = decode_decomposition(chosen)
        said = Subscribed(sql, owner, chosen, Initial(initial), lease, ticket_hash)
        stored = stored_as(number, said, plan, broken)
        if withdrawn_at is not None:
            stored = replace(stored, withdrawn_at=withdrawn_at, ended_by=why)
        if suspended:
            stored = replace(stored, suspended=suspended)
        found.append(stored)
    return found


def _are_plausible(withdrawn_at: object, why: object, seconds: object, expires_ms: object) -> bool:
    """Whether the mutable fields of a row, which have no checksum, have the right types."""
    ends = isinstance(withdrawn_at, int | None) and isinstance(why, str)
    leased = isinstance(seconds, int | float) and isinstance(expires_ms, int)
    return ends and (leased or (seconds is None and expires_ms is None))


def _checksum(*fields: object) -> int:
    """Covers the immutable fields of a row. SQLite does not detect a flipped bit in a value."""
    return crc32(pack(fields))


def replan_row(replan: Replan) -> dict[str, object]:
    return {
        "offset": replan.offset,
        "subscription": replan.subscription,
        "decomposition": encode_decomposition(replan.decomposition),
    }


def replans_from_rows(rows: Iterable[Sequence[Any]]) -> list[Replan]:
    return [
        Replan(offset, subscription, decode_decomposition(chosen) or ())
        for offset, subscription, chosen in rows
    ]


def set_aside_row(one: SetAside) -> dict[str, object]:
    row = {"offset": one.offset, "primary": one.primary, "detail": one.detail}
    return {**row, "suspect": one.suspect}
