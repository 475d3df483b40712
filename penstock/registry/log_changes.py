"""Changes to subscriptions in a range of the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.flow.faults import SetAside, describe_fault, is_fault
from penstock.registry.leases import Lease
from penstock.registry.records import Withdrawal, renewed, replan_of, withdrawn
from penstock.registry.registry_rows import Binder
from penstock.registry.stored_subscription import StoredSubscription
from penstock.spaces import Replan
from penstock.storage import Record, RecordKind, RecordLog, set_aside_of

_KINDS = frozenset(
    {
        RecordKind.SUBSCRIBE,
        RecordKind.WITHDRAW,
        RecordKind.REPLAN,
        RecordKind.RENEW,
        RecordKind.SET_ASIDE,
    }
)


@dataclass(frozen=True, slots=True)
class LogChanges:
    """The changes from `start` on: subscriptions, withdrawals with their offsets, other
    decompositions, (offset, subscription, lease) of renewals, records set aside with the offsets
    that say so."""

    start: int
    added: list[StoredSubscription] = field(default_factory=list)
    ended: list[tuple[int, Withdrawal]] = field(default_factory=list)
    replanned: list[Replan] = field(default_factory=list)
    leases: list[tuple[int, int, Lease]] = field(default_factory=list)
    aside: list[tuple[int, SetAside]] = field(default_factory=list)


def read_changes(log: RecordLog, start: int, end: int, binder: Binder) -> LogChanges:
    """The changes in the records of [start, end). A record that leads to a fault is set aside."""
    changes = LogChanges(start)
    for record in log.read(start, end, _KINDS) if start < end else ():
        try:
            _note(record, changes, binder)
        except Exception as error:
            if not is_fault(error):
                raise
            unreadable = SetAside(record.offset, describe_fault(error))
            changes.aside.append((record.offset, unreadable))
    return changes


def _note(record: Record, changes: LogChanges, binder: Binder) -> None:
    """Add the change of one record."""
    match record.kind:
        case RecordKind.SUBSCRIBE:
            changes.added.append(binder.stored(record))
        case RecordKind.REPLAN:
            changes.replanned.append(replan_of(record))
        case RecordKind.RENEW:
            changes.leases.append((record.offset, *renewed(record.body)))
        case RecordKind.SET_ASIDE:
            found = set_aside_of(record)
            if found is not None:
                changes.aside.append((record.offset, found))
        case _:
            changes.ended.append((record.offset, withdrawn(record.body)))
