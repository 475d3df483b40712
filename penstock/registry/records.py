"""The bodies of log records that are not events.

SUBSCRIBE is `{"sql": ..., "owner": ..., "decomposition": ..., "initial": ...}`, WITHDRAW is
`{"id": ...}` (the offset of the SUBSCRIBE record), REPLAN is `{"id": ..., "decomposition": ...}`,
DDL is the text of the statement. A decomposition is a list by branch, of lists by node, of the
filtering node and its columns; a SUBSCRIBE without one means the plain rule. `initial` says how the
subscription starts (`penstock.client.Initial`). Members that a later release adds are ignored.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.client import Initial
from penstock.errors import CatalogError, HomeError, SubscriptionError
from penstock.joins.decomposition import (
    Decomposition,
    Replan,
    decomposition_from_plain,
    plain_decomposition,
)
from penstock.log import Record

MAX_OWNER_CHARACTERS = 200


_PlainDecomposition = list[list[list[int]]]


class _Subscribe(msgspec.Struct, omit_defaults=True):
    sql: str
    owner: str | None = None
    decomposition: _PlainDecomposition | None = None
    initial: Initial = Initial.CONTENT


class Subscribed(NamedTuple):
    """What a SUBSCRIBE record says."""

    sql: str
    owner: str | None = None
    decomposition: Decomposition | None = None
    initial: Initial = Initial.CONTENT


class _Withdraw(msgspec.Struct):
    id: int


class _Replan(msgspec.Struct):
    id: int
    decomposition: _PlainDecomposition


_SUBSCRIBE = msgspec.json.Decoder(_Subscribe)
_WITHDRAW = msgspec.json.Decoder(_Withdraw)
_REPLAN = msgspec.json.Decoder(_Replan)


def statement_bytes(sql: str) -> bytes:
    """The body of a DDL record."""
    try:
        return sql.encode()
    except UnicodeEncodeError:
        raise CatalogError(
            "the statement is not Unicode", detail="a lone surrogate is not a character"
        ) from None


def subscribe_body(
    sql: str,
    owner: str | None = None,
    chosen: Decomposition | None = None,
    initial: Initial = Initial.CONTENT,
) -> bytes:
    if owner is not None and not 0 < len(owner) <= MAX_OWNER_CHARACTERS:
        raise SubscriptionError(
            f"the name of an owner has 1 to {MAX_OWNER_CHARACTERS} characters, not {len(owner)}"
        )
    try:
        plain = None if chosen is None else plain_decomposition(chosen)
        return msgspec.json.encode(_Subscribe(sql, owner, plain, initial))
    except UnicodeEncodeError:
        raise SubscriptionError(
            "the text of a subscription or its owner is not Unicode",
            detail="a lone surrogate is not a character",
        ) from None


def subscribed(body: bytes) -> Subscribed:
    try:
        found = _SUBSCRIBE.decode(body)
    except msgspec.DecodeError as error:
        raise _unreadable("SUBSCRIBE", error) from None
    plain = found.decomposition
    chosen = None if plain is None else _decomposition("SUBSCRIBE", plain)
    return Subscribed(found.sql, found.owner, chosen, found.initial)


def replan_body(subscription: int, chosen: Decomposition) -> bytes:
    return msgspec.json.encode(_Replan(subscription, plain_decomposition(chosen)))


def replan_of(record: Record) -> Replan:
    try:
        body = _REPLAN.decode(record.body)
    except msgspec.DecodeError as error:
        raise _unreadable("REPLAN", error) from None
    return Replan(record.offset, body.id, _decomposition("REPLAN", body.decomposition))


def _decomposition(kind: str, plain: _PlainDecomposition) -> Decomposition:
    try:
        return decomposition_from_plain(plain)
    except ValueError as error:
        raise _unreadable(kind, error) from None


def withdraw_body(subscription: int) -> bytes:
    return msgspec.json.encode(_Withdraw(subscription))


def withdrawn_id(body: bytes) -> int:
    try:
        return _WITHDRAW.decode(body).id
    except msgspec.DecodeError as error:
        raise _unreadable("WITHDRAW", error) from None


def _unreadable(kind: str, error: Exception) -> HomeError:
    return HomeError(
        f"a {kind} record of the log cannot be read",
        detail=str(error),
        hint="it was written by another release: use that one",
    )
