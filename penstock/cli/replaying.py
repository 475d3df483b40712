"""Explanations over the tables of a home as they were at an offset."""

from __future__ import annotations

from penstock.engine.changes import Change
from penstock.engine.events import decode_event
from penstock.engine.explain import Explanation, explain
from penstock.errors import ChangeError
from penstock.log import Home, RecordKind
from penstock.log.replaying import replay_tables
from penstock.registry import Registry

_EVENTS = frozenset({RecordKind.EVENT})


def explain_change(home: Home, subscription: int, change: Change) -> Explanation:
    """Why a change would, or would not, reach a subscription, if it came now."""
    return _explain(home, subscription, change, home.log.end)


def explain_logged(home: Home, subscription: int, offset: int) -> Explanation:
    """Why the change at an offset did, or did not, reach a subscription."""
    end = home.log.end
    records = home.log.read(offset, offset + 1, _EVENTS) if 0 <= offset < end else iter(())
    for record in records:
        return _explain(home, subscription, decode_event(record.body), offset)
    raise ChangeError(
        f"there is no change at offset {offset} of the log",
        detail=f"the log holds offsets 0 to {end - 1}" if end else "the log is empty",
        hint="notifications name the offset of the change that caused them",
    )


def _explain(home: Home, subscription: int, change: Change, offset: int) -> Explanation:
    registry = Registry(home)
    stored = registry.subscription(subscription)
    engine = replay_tables(home.log, offset).engine
    return explain(
        subscription, stored.query(registry.catalog()), change, engine.catalog, engine.rows, offset
    )
