"""The second stage: the rows of all tables, by primary key.

It resolves changes against the rows, emits the messages of subscriptions over one table, and sends
steps to the partitions of their groups. The initial content of new subscriptions comes first, from
the rows as they were before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from penstock.catalog import Relation, RowKey
from penstock.errors import ChangeError
from penstock.flow.changes import Checked, Delta
from penstock.flow.consequences import emit_consequences, emit_packed_consequences
from penstock.flow.exchange import StageInput, StageOutput
from penstock.flow.faults import RecordFaultError, is_fault
from penstock.flow.kinds import ChangeRow, Kind, Reason, StreamEvents
from penstock.flow.plain import RowStage, steps_of
from penstock.flow.stage import BatchView, Key
from penstock.flow.state import RowStore
from penstock.flow.stores import ManyEntries, StoredRows
from penstock.operators.failures import OperatorFailure


class StageRows(RowStore, Protocol):
    """The rows of one partition: objects, and for the fast gear also packed (`PackedRows`)."""

    def keep_events(self, first_offset: int, events: bytes | StreamEvents) -> None:
        """Store events of a keyless stream, which never change."""

    def note(self, deltas: list[Delta]) -> None:
        """Called with changes that were resolved one by one."""


class Rows:
    name = "rows"
    takes = frozenset({Kind.CHANGE, Kind.EVENTS})
    gives = frozenset({Kind.SEED, Kind.STEP, Kind.MESSAGE, Kind.BAD})
    keyed_by: Key | None = Key.ROW

    def open_store(self, entries: ManyEntries) -> StoredRows:
        return StoredRows(entries)

    def advance(self, given: StageInput, store: StageRows, view: BatchView) -> StageOutput:
        out = StageOutput(view.spread)
        stage, new = RowStage(store, view.index, view.derivation.row_operators(store)), view.new
        for edge, steps in steps_of(view.index, view.derivation.ask_about_rows(store)).items():
            if edge not in new.edges:
                out.add_steps(Kind.SEED, {edge: steps})
        for edge in new.edges:
            out.add_steps(Kind.SEED, {edge: stage.seed(given.span.start, edge)})
        for selections in new.selections:
            out.add_messages(given.bucket, stage.initial(given.span.start, selections))
        for events in given.rows(Kind.EVENTS):
            store.keep_events(events.offset, events.body)
        others = _resolve_packed(given, store, view, out)
        if others:
            _resolve_each(given, others, store, view, out)
        return out


def _resolve_packed(
    given: StageInput, store: StageRows, view: BatchView, out: StageOutput
) -> Mapping[str, Relation]:
    """Resolve the changes of tables in the fast gear; returns the other tables."""
    if not view.plan.reading().is_fast:
        return {relation.name: relation for relation in view.catalog}
    from penstock.flow.packed.operator_rows import derive_apart, take_back
    from penstock.flow.packed.rows import SentChanges

    assert isinstance(store, StoredRows)
    changes = SentChanges(given.chunks(Kind.CHANGE))
    plain = [name for name in changes.tables if not view.plan.rows(name).is_fast]
    for deltas, refused in changes.carry_out(view.plan.forms, store):
        derived = derive_apart(deltas, view.index.derived, view.derivation, store)
        if derived.failures:
            take_back(deltas, store)
            plain.append(deltas.relation.name)
            continue
        for offset, why in refused:
            out.add(given.bucket, Kind.BAD, offset, Reason.of(why))
        emit_packed_consequences(deltas, view, given.bucket, out)
        if derived.deltas:
            emit_consequences(derived.deltas, view, given.bucket, out)
    return {name: view.catalog[name] for name in plain}


def _resolve_each(
    given: StageInput,
    relations: Mapping[str, Relation],
    store: StageRows,
    view: BatchView,
    out: StageOutput,
) -> None:
    """Resolve the changes of these relations, one by one."""
    changes = [one for one in given.rows(Kind.CHANGE) if one[1] in relations]
    stage = RowStage(store, view.index)
    refused: dict[int, ChangeError] = {}
    while True:
        kept = [one for one in changes if one[0] not in refused]
        resolved, bad = _resolve(kept, relations, stage)
        deltas, failures, _ = view.derivation.derive(resolved, store)
        if not failures:
            break
        # Later changes of a row may depend on a refused one: roll back and resolve all again.
        for delta in reversed(resolved):
            store.put(delta.relation, delta.key, delta.old)
        refused |= _first_failures(resolved, failures)
    for offset, error in sorted({**bad, **refused}.items()):
        out.add(given.bucket, Kind.BAD, offset, Reason.of(error))
    store.note(resolved)
    emit_consequences([*resolved, *deltas], view, given.bucket, out)


def _first_failures(
    run: Iterable[Delta], failures: Mapping[int, OperatorFailure]
) -> dict[int, ChangeError]:
    """The first change of each row that operators fail on: later ones may fail because of it."""
    found: dict[tuple[str, RowKey], int] = {}
    for delta in run:
        if delta.offset in failures:
            found.setdefault((delta.relation.name, delta.key), delta.offset)
    return {offset: failures[offset].error() for offset in found.values()}


def _resolve(
    changes: Iterable[ChangeRow], relations: Mapping[str, Relation], stage: RowStage
) -> tuple[list[Delta], dict[int, ChangeError]]:
    """The effects of changes on rows, and why some of them cannot be applied."""
    resolved: list[Delta] = []
    bad: dict[int, ChangeError] = {}
    for offset, name, op, key, row, columns in changes:
        try:
            delta = stage.resolve(offset, Checked(relations[name], op, key, row, columns))
        except ChangeError as error:
            bad[offset] = error
            continue
        except Exception as error:
            raise RecordFaultError(offset, error) if is_fault(error) else error from error
        if delta is not None:
            resolved.append(delta)
    return resolved, bad
