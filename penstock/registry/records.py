"""The bodies of log records that are not events.

SUBSCRIBE is `{"sql": ..., "owner": ...}`, WITHDRAW is `{"id": ...}` (the offset of the SUBSCRIBE
record), DDL is the text of the statement. Members that a later release adds are ignored.
"""

from __future__ import annotations

import msgspec

from penstock.errors import CatalogError, HomeError, SubscriptionError

MAX_OWNER_CHARACTERS = 200


class _Subscribe(msgspec.Struct):
    sql: str
    owner: str | None = None


class _Withdraw(msgspec.Struct):
    id: int


_SUBSCRIBE = msgspec.json.Decoder(_Subscribe)
_WITHDRAW = msgspec.json.Decoder(_Withdraw)


def statement_bytes(sql: str) -> bytes:
    """The body of a DDL record."""
    try:
        return sql.encode()
    except UnicodeEncodeError:
        raise CatalogError(
            "the statement is not Unicode", detail="a lone surrogate is not a character"
        ) from None


def subscribe_body(sql: str, owner: str | None = None) -> bytes:
    if owner is not None and not 0 < len(owner) <= MAX_OWNER_CHARACTERS:
        raise SubscriptionError(
            f"the name of an owner has 1 to {MAX_OWNER_CHARACTERS} characters, not {len(owner)}"
        )
    try:
        return msgspec.json.encode(_Subscribe(sql, owner))
    except UnicodeEncodeError:
        raise SubscriptionError(
            "the text of a subscription or its owner is not Unicode",
            detail="a lone surrogate is not a character",
        ) from None


def subscribe_sql(body: bytes) -> str:
    return _subscribe(body).sql


def subscribe_owner(body: bytes) -> str | None:
    return _subscribe(body).owner


def withdraw_body(subscription: int) -> bytes:
    return msgspec.json.encode(_Withdraw(subscription))


def withdrawn_id(body: bytes) -> int:
    try:
        return _WITHDRAW.decode(body).id
    except msgspec.DecodeError as error:
        raise _unreadable("WITHDRAW", error) from None


def _subscribe(body: bytes) -> _Subscribe:
    try:
        return _SUBSCRIBE.decode(body)
    except msgspec.DecodeError as error:
        raise _unreadable("SUBSCRIBE", error) from None


def _unreadable(kind: str, error: Exception) -> HomeError:
    return HomeError(
        f"a {kind} record of the log cannot be read",
        detail=str(error),
        hint="it was written by another release: use that one",
    )
