"""The bodies of log records that are not events.

SUBSCRIBE is `{"sql": ..., "owner": ..., "decomposition": ..., "initial": ..., "lease_seconds": ...,
"expires_ms": ..., "ticket_hash": ...}`, RENEW is `{"id": ..., "lease_seconds": ..., "expires_ms":
...}` (the id is the offset of the SUBSCRIBE record), WITHDRAW is `{"id": ..., "reason": ...}`,
REPLAN is `{"id": ..., "decomposition": ...}`, DDL is the text of the statement. A decomposition is
a list by branch, of lists by node, of the filtering node and its columns; a SUBSCRIBE without one
means the plain rule. `initial` says how the subscription starts (`penstock.client.Initial`);
`ticket_hash` (in base64, `penstock.registry.tickets`) is not there if an earlier release wrote the
record; `reason` is "lease" if the lease ran out, and not there if somebody withdrew it. Members
that a later release adds are ignored.

A record that cannot be read would stop every process that replays the log. So a body is decoded
before it is written, by the decoder of its readers: what they would not understand is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypeAlias, TypeVar

import msgspec

from penstock.arguments import text
from penstock.client import Initial
from penstock.errors import CatalogError, PenstockError, RecordError, SubscriptionError
from penstock.registry.leases import Lease
from penstock.spaces import (
    Decomposition,
    Replan,
    compact,
    decomposition_from_plain,
    plain_decomposition,
)
from penstock.storage import UNREADABLE_BODY, Offset, Record

MAX_OWNER_CHARACTERS = 200
LEASE_RAN_OUT = "lease"
"""The reason of an ended subscription that was not renewed in time."""
TICKET_HASH_BYTES = 16
"""128 bits: finding another ticket with the same hash takes 2**128 attempts, and the key."""


_PlainDecomposition = list[list[list[int]]]
_TicketHash: TypeAlias = Annotated[
    bytes, msgspec.Meta(min_length=TICKET_HASH_BYTES, max_length=TICKET_HASH_BYTES)
]
_Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
_Read = TypeVar("_Read")


class _Subscribe(msgspec.Struct, omit_defaults=True):
    sql: str
    owner: str | None = None
    decomposition: _PlainDecomposition | None = None
    initial: Initial = Initial.CONTENT
    lease_seconds: float | None = None
    expires_ms: _Milliseconds | None = None
    ticket_hash: _TicketHash | None = None


class Subscribed(NamedTuple):
    """What a SUBSCRIBE record says."""

    sql: str
    owner: str | None = None
    decomposition: Decomposition | None = None
    initial: Initial = Initial.CONTENT
    lease: Lease | None = None
    ticket_hash: bytes | None = None


class Withdrawal(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a WITHDRAW record says."""

    id: Offset
    reason: str = ""


class _Renew(msgspec.Struct):
    id: Offset
    lease_seconds: float
    expires_ms: _Milliseconds


class _Replan(msgspec.Struct):
    id: Offset
    decomposition: _PlainDecomposition


_SUBSCRIBE = msgspec.json.Decoder(_Subscribe)
_WITHDRAW = msgspec.json.Decoder(Withdrawal)
_RENEW = msgspec.json.Decoder(_Renew)
_REPLAN = msgspec.json.Decoder(_Replan)


def statement_bytes(sql: str) -> bytes:
    """The body of a DDL record."""
    return text(sql, "the statement", CatalogError).encode()


def subscribe_body(
    sql: str,
    owner: str | None = None,
    chosen: Decomposition | None = None,
    initial: Initial = Initial.CONTENT,
    lease: Lease | None = None,
    ticket_hash: bytes | None = None,
) -> bytes:
    plain = None if chosen is None else plain_decomposition(chosen)
    seconds, expires_ms = lease or (None, None)
    written = _Subscribe(sql, owner_name(owner), plain, initial, seconds, expires_ms, ticket_hash)
    compacted = None if chosen is None else compact(chosen)
    meant = Subscribed(sql, owner, compacted, initial, lease, ticket_hash)
    return _readable("SUBSCRIBE", written, subscribed, meant)


def owner_name(owner: object) -> str | None:
    """The owner of a subscription in a form that can be recorded; else SubscriptionError."""
    if owner is None:
        return None
    name = text(owner, "the name of an owner", SubscriptionError)
    if not 0 < len(name) <= MAX_OWNER_CHARACTERS:
        raise SubscriptionError(
            f"the name of an owner has 1 to {MAX_OWNER_CHARACTERS} characters, not {len(name)}"
        )
    return name


def subscribed(body: bytes) -> Subscribed:
    try:
        found = _SUBSCRIBE.decode(body)
    except UNREADABLE_BODY as error:
        raise _unreadable("SUBSCRIBE", error) from None
    plain = found.decomposition
    chosen = None if plain is None else _decomposition("SUBSCRIBE", plain)
    lease = None
    if found.lease_seconds is not None and found.expires_ms is not None:
        lease = Lease(found.lease_seconds, found.expires_ms)
    return Subscribed(found.sql, found.owner, chosen, found.initial, lease, found.ticket_hash)


def replan_body(subscription: int, chosen: Decomposition) -> bytes:
    written = _Replan(subscription, plain_decomposition(chosen))
    return _readable("REPLAN", written, _replanned, (subscription, compact(chosen)))


def replan_of(record: Record) -> Replan:
    return Replan(record.offset, *_replanned(record.body))


def _replanned(raw: bytes) -> tuple[int, Decomposition]:
    try:
        body = _REPLAN.decode(raw)
    except UNREADABLE_BODY as error:
        raise _unreadable("REPLAN", error) from None
    return body.id, _decomposition("REPLAN", body.decomposition)


def _decomposition(kind: str, plain: _PlainDecomposition) -> Decomposition:
    try:
        return decomposition_from_plain(plain)
    except ValueError as error:
        raise _unreadable(kind, error) from None


def withdraw_body(subscription: int, reason: str = "") -> bytes:
    gone = Withdrawal(subscription, reason)
    return _readable("WITHDRAW", gone, withdrawn, gone)


def withdrawn(body: bytes) -> Withdrawal:
    try:
        return _WITHDRAW.decode(body)
    except UNREADABLE_BODY as error:
        raise _unreadable("WITHDRAW", error) from None


def renew_body(subscription: int, lease: Lease) -> bytes:
    return _readable("RENEW", _Renew(subscription, *lease), renewed, (subscription, lease))


def renewed(body: bytes) -> tuple[int, Lease]:
    """The subscription of a RENEW record, and its lease from there on."""
    try:
        found = _RENEW.decode(body)
    except UNREADABLE_BODY as error:
        raise _unreadable("RENEW", error) from None
    return found.id, Lease(found.lease_seconds, found.expires_ms)


def _readable(
    kind: str, written: msgspec.Struct, read: Callable[[bytes], _Read], meant: _Read
) -> bytes:
    """The body of a record, after its reader has decoded it to what was meant."""
    try:
        body = msgspec.json.encode(written)
        if read(body) == meant:
            return body
        why = "what would be read is not what was meant"
    except (TypeError, ValueError, RecursionError, PenstockError) as error:
        why = getattr(error, "detail", "") or str(error)
    raise SubscriptionError(f"a {kind} record cannot hold these values", detail=why[:500])


def _unreadable(kind: str, error: Exception) -> RecordError:
    return RecordError(
        f"a {kind} record of the log cannot be read",
        detail=str(error),
        hint="it was written by another release: use that one",
    )
