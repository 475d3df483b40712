"""SET_ASIDE records: which records of the log are not processed, because they led to a fault.

The decision is recorded in the log, so every process that processes or replays it follows it. A
body is `{"of": ..., "primary": ..., "detail": ..., "suspect": ...}`: the offset of the record, the
reason, and the subscription that took part in it (`penstock.flow.faults`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.errors import ChangeError
from penstock.flow.faults import SetAside
from penstock.storage.interfaces import (
    UNREADABLE_BODY,
    AnyHome,
    Entry,
    Offset,
    QuarantineStore,
    Record,
    RecordKind,
    RecordLog,
)

SET_ASIDE = frozenset({RecordKind.SET_ASIDE})
_HINT = "a release without this fault can process it: penstock quarantine HOME replay OFFSET"


class _Body(msgspec.Struct, omit_defaults=True):
    of: Offset
    primary: str
    detail: str = ""
    suspect: Offset | None = None


_DECODER = msgspec.json.Decoder(_Body)


def set_aside_entry(one: SetAside) -> Entry:
    body = _Body(one.offset, one.primary, one.detail, one.suspect)
    return RecordKind.SET_ASIDE, msgspec.json.encode(body)


def set_aside_of(record: Record) -> SetAside | None:
    """The content of a SET_ASIDE record; None if another release wrote it in another form."""
    try:
        body = _DECODER.decode(record.body)
    except UNREADABLE_BODY:
        return None
    return SetAside(body.of, body.primary, body.detail, body.suspect)


def set_aside_in(log: RecordLog) -> dict[int, SetAside]:
    """All records that are set aside, by their offsets."""
    found = map(set_aside_of, log.read(0, kinds=SET_ASIDE))
    return {one.offset: one for one in found if one is not None}


def refusal(one: SetAside) -> ChangeError:
    """Why an event that is set aside cannot be applied."""
    return ChangeError(
        f"processing it failed: {one.primary}",
        detail=one.detail or "a bug in Penstock",
        hint=_HINT,
    )


def events_not_applied(home: AnyHome) -> dict[int, ChangeError]:
    """The events of the log that must not be applied when it is replayed: those set aside, and
    those in quarantine. A later release might accept some of these, but the message log was made
    without them."""
    aside = {offset: refusal(one) for offset, one in set_aside_in(home.log).items()}
    return events_in_quarantine(home.quarantine) | aside


def events_in_quarantine(
    quarantine: QuarantineStore, start: int = 0, end: int | None = None
) -> dict[int, ChangeError]:
    """The reasons for which events of [start, end) were refused."""
    return {
        event.offset: ChangeError(event.primary, detail=event.detail, hint=event.hint)
        for event in quarantine.entries(start, end)
    }


def suspects_among(aside: Iterable[SetAside]) -> set[int]:
    """Subscriptions that took part in the fault of an event."""
    return {one.suspect for one in aside if one.suspect is not None}
