"""Commands on subscriptions: validated requests, as records to append to the log.

Used by the Hub and the registry. Each has its own view of the subscriptions (a `Directory`) and
holds the append lock while it calls; nothing here reads or writes a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from penstock.arguments import listed, shown, statement, text
from penstock.catalog import Relation
from penstock.catalog.relations import MAX_COLUMNS
from penstock.catalog.signatures import Signature
from penstock.client import Initial
from penstock.errors import SubscriptionError
from penstock.joins.decomposition import fitting
from penstock.query import Query
from penstock.registry.leases import Lease, first_lease, renewed_lease
from penstock.registry.records import (
    LEASE_RAN_OUT,
    Subscribed,
    owner_name,
    renew_body,
    replan_body,
    statement_bytes,
    subscribe_body,
    withdraw_body,
)
from penstock.spaces import Decomposition
from penstock.storage import Entry, RecordKind

MAX_SUBSCRIPTIONS_AT_ONCE = 100_000  # one frame of the log, so that all or none are accepted

_Result = TypeVar("_Result")


class Command(NamedTuple, Generic[_Result]):
    """Records to append as one frame, and the result they stand for."""

    entries: list[Entry]
    result: _Result


class Directory(Protocol):
    """The subscriptions as of the end of the log."""

    def check_present(self, subscription: int) -> None:
        """SubscriptionError unless it was recorded and not withdrawn; it may be suspended."""

    def lease_of(self, subscription: int) -> Lease | None:
        """The lease of a subscription that is present."""

    def query_of(self, subscription: int) -> Query:
        """The query of a subscription that is present and can be used."""

    def run_out(self, now: float, most: int) -> list[int]:
        """Subscriptions present whose leases have run out, the longest overdue first."""


class Terms(NamedTuple):
    """The settings shared by the subscriptions of one call."""

    owner: str | None
    decomposition: Decomposition | None
    """None: chosen for each query."""
    initial: str
    lease: Lease | None


class Candidate(NamedTuple):
    """A statement that binds. Its query and decomposition are computed lazily."""

    sql: str
    query: Callable[[], Query]
    choose: Callable[[], Decomposition | None]


def define(sql: object) -> Command[Relation | Signature]:
    """Declare a table, a stream or an operator. Whether it is new is for the catalog to check."""
    from penstock.sql import parse_declaration

    checked = statement(sql)
    declared = parse_declaration(checked)
    if isinstance(declared, Signature) and not (declared.arguments or declared.outputs):
        from penstock.registry.operator_runtime import complete_signature
        from penstock.sql import operator_statement

        declared = complete_signature(declared)
        checked = operator_statement(declared)
    return Command([(RecordKind.DDL, statement_bytes(checked))], declared)


def check_statements(given: Iterable[object], payload: str | Sequence[str] = ()) -> list[str]:
    """The texts of queries, with their payload columns as hints."""
    columns = _payload_columns(payload)
    texts = [statement(one) for one in given]
    if not columns:
        return texts
    from penstock.sql import hinted

    return [hinted(sql, columns) for sql in texts]


def make_terms(
    owner: object,
    decomposition: Decomposition | None,
    initial: str,
    lease_seconds: float | None,
    now: float,
    default_lease_seconds: float | None,
) -> Terms:
    lease = first_lease(now, lease_seconds, default_lease_seconds)
    return Terms(owner_name(owner), decomposition, initial, lease)


def subscribe(
    candidates: Iterable[Candidate], terms: Terms, ticket_hashes: Iterable[bytes | None]
) -> Command[list[Subscribed]]:
    """Register queries, each with the hash of its ticket; the result is what their records say."""
    said = [
        Subscribed(
            one.sql,
            terms.owner,
            _decompose(one, terms),
            _start(one, terms.initial),
            terms.lease,
            ticket_hash,
        )
        for one, ticket_hash in zip(candidates, ticket_hashes, strict=True)
    ]
    return Command([(RecordKind.SUBSCRIBE, subscribe_body(*one)) for one in said], said)


def unsubscribe(directory: Directory, ids: Iterable[int]) -> Command[list[int]]:
    """Withdraw subscriptions, without duplicates."""
    gone = list(dict.fromkeys(ids))
    for number in gone:
        directory.check_present(number)
    return Command([(RecordKind.WITHDRAW, withdraw_body(number)) for number in gone], gone)


def renew(
    directory: Directory, ids: Iterable[int], lease_seconds: float | None, now: float
) -> Command[dict[int, Lease]]:
    """Renew leases; the result is the new leases."""
    leases = {
        number: renewed_lease(number, directory.lease_of(number), now, lease_seconds)
        for number in ids
    }
    return Command([(RecordKind.RENEW, renew_body(*one)) for one in leases.items()], leases)


def expire(directory: Directory, now: float) -> Command[list[int]]:
    """Withdraw subscriptions whose leases have run out, as many as fit into one append."""
    gone = directory.run_out(now, MAX_SUBSCRIPTIONS_AT_ONCE)
    bodies = [withdraw_body(number, LEASE_RAN_OUT) for number in gone]
    return Command([(RecordKind.WITHDRAW, body) for body in bodies], gone)


def replan(
    directory: Directory, chosen: Mapping[int, Decomposition]
) -> Command[dict[int, Decomposition]]:
    """Change the decompositions of subscriptions."""
    if not isinstance(chosen, Mapping):
        raise SubscriptionError(f"decompositions come by subscription, not {shown(chosen)}")
    plain = {
        number: fitting(directory.query_of(number), decomposition)
        for number, decomposition in chosen.items()
    }
    return Command([(RecordKind.REPLAN, replan_body(*one)) for one in plain.items()], plain)


def _decompose(candidate: Candidate, terms: Terms) -> Decomposition | None:
    if terms.decomposition is None:
        return candidate.choose()
    return fitting(candidate.query(), terms.decomposition)


def _start(candidate: Candidate, wanted: str) -> Initial:
    """How a subscription with or without initial content starts."""
    if isinstance(wanted, str) and wanted == Initial.CONTENT:
        return Initial.CONTENT
    return Initial.of(wanted, candidate.query())


def _payload_columns(payload: str | Sequence[str]) -> list[str]:
    if isinstance(payload, str):
        payload = [payload] if payload else []
    named = listed(payload, "the columns of a payload", SubscriptionError, most=MAX_COLUMNS)
    return [text(one, "the name of a column", SubscriptionError) for one in named]
