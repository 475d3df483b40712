"""Leases: a subscription that is not renewed in time ends.

Duration and expiry are recorded in the log: the clock is read once when a record is appended, and
never when it is replayed. A lease that has run out ends the subscription by a WITHDRAW record,
appended by the process that processes the home when its clock says so. Until then it can be
renewed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from penstock.arguments import MAX_LEASE_SECONDS, lease_length, number
from penstock.errors import HomeError, SubscriptionError

_FIRST_SECOND = -62_135_596_800  # the start of year 1
_LAST_SECOND = 253_402_300_799  # the end of year 9999

Clock: TypeAlias = Callable[[], float]
"""Seconds since 1970, like `time.time`."""


def read_clock(clock: Clock) -> float:
    """The time of a clock; HomeError if no calendar has it, or if it leaves no time for a lease."""
    try:
        now = number(clock(), "the time that a clock says", HomeError)
    except (OverflowError, OSError) as error:  # beyond the year 2262, Python cannot convert it
        raise _unusable_clock(str(error)) from error
    if not _FIRST_SECOND <= now <= _LAST_SECOND - MAX_LEASE_SECONDS:
        raise _unusable_clock(f"it says {now:g} seconds since 1970")
    return now


def _unusable_clock(why: str) -> HomeError:
    return HomeError(
        "the clock cannot be used to tell whether leases have run out",
        detail=why,
        hint="set the clock of this machine right, then try again",
    )


class Lease(NamedTuple):
    """How long a subscription lasts unless it is renewed, and until when (Unix time)."""

    seconds: float
    expires_ms: int

    @classmethod
    def starting(cls, now: float, seconds: float) -> Lease:
        seconds = lease_length(seconds, SubscriptionError)
        return cls(seconds, math.ceil((now + seconds) * 1000))

    def renewed(self, now: float, seconds: float | None) -> Lease:
        """A lease from now on, of the given duration or of the same as before.

        Clocks differ, and are set back: a renewal by a slow clock does not shorten a lease. Only a
        request for a shorter duration does.
        """
        fresh = Lease.starting(now, self.seconds if seconds is None else seconds)
        if fresh.seconds < self.seconds:
            return fresh
        return fresh._replace(expires_ms=max(self.expires_ms, fresh.expires_ms))

    @property
    def expires(self) -> datetime:
        """The nearest time that a calendar can represent."""
        shown_ms = min(max(self.expires_ms, _FIRST_SECOND * 1000), _LAST_SECOND * 1000)
        return datetime.fromtimestamp(shown_ms / 1000, UTC)


def first_lease(now: float, seconds: float | None, default_seconds: float | None) -> Lease | None:
    """The initial lease of a subscription. None stands for the default of its home, which may be
    none; infinity for no lease, whatever the default is."""
    if seconds is None:
        seconds = default_seconds
    if seconds is None or (isinstance(seconds, float) and seconds == math.inf):
        return None
    return Lease.starting(now, seconds)


def renewed_lease(
    subscription: int, held: Lease | None, now: float, seconds: float | None
) -> Lease:
    """The lease after a renewal, for a subscription with or without a lease."""
    if held is not None:
        return held.renewed(now, seconds)
    if seconds is None:
        raise _without_lease(subscription)
    return Lease.starting(now, seconds)


def _without_lease(subscription: int) -> SubscriptionError:
    return SubscriptionError(
        f"subscription {subscription} has no lease to renew",
        detail="it lasts until it is withdrawn",
        hint="say how long it should last from now on (--lease 10m, lease_seconds=600)",
    )


def ran_out(subscription: int) -> SubscriptionError:
    return SubscriptionError(
        f"the lease of subscription {subscription} ran out",
        detail="it was not renewed in time, so it was withdrawn",
        hint="subscribe again, and renew it before its lease ends (penstock renew)",
    )


class Leases:
    """The leases of all subscriptions, by expiry. Not thread-safe."""

    def __init__(self) -> None:
        self._leases: dict[int, Lease] = {}
        self._due: list[tuple[int, int]] = []  # a heap; may hold leases renewed since

    def __getitem__(self, subscription: int) -> Lease | None:
        return self._leases.get(subscription)

    def note(self, subscription: int, lease: Lease | None) -> None:
        """Set the lease of a subscription, replacing any earlier one."""
        if lease is None:
            self._leases.pop(subscription, None)
            return
        self._leases[subscription] = lease
        heappush(self._due, (lease.expires_ms, subscription))

    def run_out(self, now: float) -> list[int]:
        """The subscriptions whose leases have run out, the longest overdue first. They are returned
        again until they are noted as ended."""
        found: dict[int, int] = {}
        while self._due and self._due[0][0] <= now * 1000:
            expires_ms, subscription = heappop(self._due)
            lease = self._leases.get(subscription)
            if lease is not None and lease.expires_ms == expires_ms:
                found[subscription] = expires_ms
        for subscription, expires_ms in found.items():
            heappush(self._due, (expires_ms, subscription))
        return list(found)
