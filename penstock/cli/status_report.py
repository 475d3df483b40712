"""A status as text and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from penstock.cli.durations import lease_text
from penstock.cli.output import count, size

if TYPE_CHECKING:
    from penstock.maintenance import Status, Traffic


def status_members(status: Status, traffic: Traffic | None) -> dict[str, object]:
    """The JSON form."""
    last, rates = status.last, status.rates
    return {
        "processed_by": status.processed_by,
        "log_end": status.log_end,
        "offset": status.offset,
        "lag": status.lag,
        "subscriptions": status.subscriptions,
        "waiting": status.waiting,
        "suspended": status.suspended,
        "set_aside": status.set_aside,
        "lacking_rows": status.lacking_rows,
        "default_lease_seconds": status.default_lease_seconds,
        "bytes": {
            "log": status.log_bytes,
            "messages": status.message_bytes,
            "quarantine": status.quarantine_bytes,
            "checkpoint": status.checkpoint_bytes,
        },
        "last_batch": None if last is None else msgspec.to_builtins(last),
        "rates": None if rates is None else msgspec.to_builtins(rates),
        "traffic": None if traffic is None else _traffic(traffic),
    }


def _traffic(traffic: Traffic) -> dict[str, int]:
    return {
        "messages": traffic.messages,
        "message_bytes": traffic.message_bytes,
        "naive_rows": traffic.rows,
        "naive_row_bytes": traffic.row_bytes,
    }


def status_rows(status: Status, traffic: Traffic | None) -> list[tuple[str, str]]:
    """The text form: pairs of a name and a value."""
    waiting = f", {status.waiting:,} of them not active yet" if status.waiting else ""
    rows = [
        ("processed by", status.processed_by or "no process"),
        ("log", f"{count(status.log_end, 'record')}, {size(status.log_bytes)}"),
        ("lag", count(status.lag, "record")),
        ("subscriptions", f"{status.subscriptions:,}{waiting}"),
        ("default lease", lease_text(status.default_lease_seconds)),
        ("message log", size(status.message_bytes)),
        ("quarantine", size(status.quarantine_bytes)),
        ("checkpoint", size(status.checkpoint_bytes)),
    ]
    if status.set_aside:
        failed = f"{count(status.set_aside, 'record')} whose processing failed"
        failed += f", {count(status.suspended, 'subscription')} suspended"
        rows.append(("set aside", f"{failed} (penstock quarantine HOME list)"))
    if status.lacking_rows:
        lack = (
            f"{count(status.lacking_rows, 'subscription')} without rows on which an operator failed"
        )
        rows.append(("left out", f"{lack} (penstock quarantine HOME list)"))
    return rows + _batch_rows(status) + _traffic_rows(traffic)


def _batch_rows(status: Status) -> list[tuple[str, str]]:
    from penstock.maintenance import seconds_since

    last, rates = status.last, status.rates
    if last is None or rates is None:
        return [("batches", "no pipeline has run")]
    ago = seconds_since(last, datetime.now(UTC))
    batch = f"number {last.batch}, {count(last.records, 'record')}, "
    batch += f"{count(last.messages, 'message')}, {last.seconds:.2f} s, {ago:,.0f} s ago"
    recent = f"{rates.records_per_s:,.0f} records/s, {rates.messages_per_s:,.0f} messages/s, "
    recent += f"{rates.batch_seconds:.2f} s each"
    phases = sorted(rates.phases.items(), key=lambda phase: -phase[1])
    totals = last.totals
    total = f"{count(totals.batches, 'batch', 'batches')}, {count(totals.messages, 'message')}, "
    total += f"{size(totals.message_bytes)}, {count(totals.bad, 'event')} into quarantine"
    return [
        ("last batch", batch),
        (f"last {count(rates.batches, 'batch', 'batches')}", recent),
        ("  by phase", ", ".join(f"{phase} {took:.2f} s" for phase, took in phases)),
        ("state", f"{count(last.state_rows, 'entry', 'entries')}, {size(last.state_bytes)}"),
        ("total", total),
    ]


def _traffic_rows(traffic: Traffic | None) -> list[tuple[str, str]]:
    if traffic is None:
        return []
    sent = f"{count(traffic.messages, 'message')}, {size(traffic.message_bytes)}"
    naive = f"{count(traffic.rows, 'row')}, {size(traffic.row_bytes)}"
    return [("sent", sent), ("naive server", naive)]
