"""Tickets: only the creator of a subscription may renew and withdraw it (Liu et al., 2007).

A ticket is a secret that subscribing returns. The log holds a hash of it, keyed with the home's
owner key: reading the log, or a part of it, gives nobody a ticket or a way to test guesses. The
owner key, known to everyone who may read the home's files, replaces any ticket.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

from penstock.arguments import listed
from penstock.errors import TicketError
from penstock.registry.records import TICKET_HASH_BYTES, subscribed
from penstock.storage import AnyHome, RecordKind

TICKET_BYTES = 24  # 192 random bits, or 32 characters
MAX_TICKET_CHARACTERS = 200
"""Of a ticket shown by a caller; longer ones are not hashed."""

_PURPOSE = b"penstock-ticket"  # separates these hashes from other uses of the key


class Owner(Enum):
    """The authority of the home's owner, in place of tickets. Not None: a caller that passes on a
    forgotten ticket must not get it."""

    OWNER = "owner"


OWNER: Final = Owner.OWNER


class Tickets:
    """Makes and checks the tickets of a home. `hash_of` returns the recorded hash of a
    subscription's ticket; None if it has no ticket or does not exist."""

    def __init__(self, home: AnyHome, hash_of: Callable[[int], bytes | None]) -> None:
        self._home = home
        self._hash_of = hash_of

    def issue(self, count: int) -> list[tuple[str, bytes]]:
        """New tickets, each with the hash to record."""
        fresh = [secrets.token_urlsafe(TICKET_BYTES) for _ in range(count)]
        return [(one, self._hash(one.encode())) for one in fresh]

    def check(self, subscriptions: Sequence[int], shown: Sequence[object] | Owner) -> None:
        """TicketError unless each ticket matches the subscription at its position, or is the owner
        key. The error does not reveal whether the subscription exists."""
        if shown is OWNER:
            return
        given = listed(shown, "tickets", TicketError, most=len(subscriptions))
        if len(given) < len(subscriptions):
            raise TicketError("each subscription needs its ticket", detail="some have none")
        for place, (number, ticket) in enumerate(zip(subscriptions, given, strict=True), 1):
            if not self._fits(ticket, self._hash_of(number)):
                which = f"number {place} of {len(given)}; " if len(given) > 1 else ""
                raise TicketError(
                    "this is not the ticket of such a subscription",
                    detail=f"{which}there may be no such subscription, or it has another ticket",
                    hint="renew and withdraw with the ticket that subscribing gave",
                )

    def check_one(self, subscription: int, shown: object) -> None:
        """The same for one subscription and its ticket."""
        self.check([subscription], OWNER if shown is OWNER else [shown])

    def _fits(self, shown: object, recorded: bytes | None) -> bool:
        """Constant time, however much of a ticket is right, and if there is none."""
        given = _ticket_bytes(shown)
        is_owner = compare_digest(given, self._owner_key)
        is_ticket = compare_digest(self._hash(given), recorded or bytes(TICKET_HASH_BYTES))
        return is_owner or (is_ticket and recorded is not None)

    def _hash(self, ticket: bytes) -> bytes:
        started = self._keyed.copy()  # half the time of starting with the key for each
        started.update(ticket)
        return started.digest()

    @cached_property
    def _owner_key(self) -> bytes:
        return self._home.owner_key().encode()

    @cached_property
    def _keyed(self) -> blake2b:
        return blake2b(key=self._owner_key, digest_size=TICKET_HASH_BYTES, person=_PURPOSE)


def logged_ticket_hash(home: AnyHome, subscription: int) -> bytes | None:
    """From the record in the log, for homes without a registry."""
    if subscription >= home.log.end:
        return None
    (record,) = home.log.read(subscription, subscription + 1)
    return subscribed(record.body).ticket_hash if record.kind is RecordKind.SUBSCRIBE else None


def _ticket_bytes(shown: object) -> bytes:
    """The ticket shown by a caller, if it can be one. Errors do not repeat it."""
    if isinstance(shown, str) and 0 < len(shown) <= MAX_TICKET_CHARACTERS and shown.isascii():
        return shown.encode()
    raise TicketError("a ticket is a text of letters and digits, as subscribing gave it")
