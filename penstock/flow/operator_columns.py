"""Operator columns for the rows of a batch: stored results, and evaluation of missing ones.

Operator results are stored with the row, together with a digest of their inputs: an update of other
columns needs no new evaluation, unless the operator has a new version. A row whose operators fail
is refused, with the operator's name: its event goes to the quarantine, and can be replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from penstock.catalog import Column, Relation, Row, RowKey, StringType
from penstock.catalog.derived import SEPARATOR, Definition
from penstock.errors import shortened
from penstock.flow.candidates import Branch, Candidates, call_id, computed_relations
from penstock.flow.changes import Delta
from penstock.flow.derived import DerivedValues, LazyValues
from penstock.flow.operator_values import OperatorRuntime, Results, RowResults
from penstock.flow.streams import is_keyless_stream
from penstock.messages import Point
from penstock.operators.failures import OperatorFailure
from penstock.operators.groups import Predicate
from penstock.operators.interface import Result
from penstock.operators.journal import LeftOut
from penstock.operators.result_codec import read_result
from penstock.operators.terms import ColumnTerm
from penstock.packing import pack, unpack
from penstock.predicates.boxes import contains

if TYPE_CHECKING:
    from penstock.flow.state import RowStore


class Said(NamedTuple):
    """A stored operator result."""

    version: str
    inputs: bytes
    """A digest of the columns that the operator read."""
    result: Result


Kept: TypeAlias = dict[Predicate, Said]


class KeptResults:
    """Operator results of the rows of one table, stored with the rows."""

    def __init__(self, store: RowStore | None, candidates: Candidates) -> None:
        table = candidates.table
        # Events of a keyless stream never change, so earlier results are never needed.
        self._store = None if is_keyless_stream(table) else store
        self._relation = Relation(
            f"{table.name}{SEPARATOR}results", (Column("results", StringType()),), table.key
        )
        self._candidates = candidates

    @property
    def is_kept(self) -> bool:
        """Whether results that are written can be read later."""
        return self._store is not None

    def read(self, key: RowKey) -> Kept:
        """The stored results of predicates that are still in use."""
        row = None if self._store is None else self._store.get(self._relation, key)
        if row is None:
            return {}
        known = self._candidates.calls
        entries = unpack(row[0])  # type: ignore[arg-type]  # bytes, see `write`
        return {
            known[one]: Said(version, inputs, read_result(result))
            for one, version, inputs, result in entries
            if one in known
        }

    def write(self, key: RowKey, kept: Kept) -> None:
        if self._store is None:
            return
        if kept:
            entries = [(call_id(one), *said) for one, said in kept.items()]
            self._store.put(self._relation, key, (pack(entries),))  # type: ignore[arg-type]
        elif self._store.get(self._relation, key) is not None:
            self._store.put(self._relation, key, None)


class Settled(NamedTuple):
    """The operator columns of the rows of changes."""

    before: list[LazyValues]
    after: list[LazyValues]
    failures: dict[int, OperatorFailure]
    """By offset, why the row of a change cannot be evaluated."""
    matched: dict[str, set[int]]
    """By relation, the numbers of the changes whose row some branch selects, before or after."""
    kept: dict[RowKey, Kept]
    """The results to store with each row."""

    def rows_of(self, relation: Relation) -> list[int]:
        return sorted(self.matched.get(relation.name, ()))


class OperatorColumns:
    """Evaluates operators for the rows of one table."""

    def __init__(
        self, runtime: OperatorRuntime, candidates: Candidates, store: RowStore | None
    ) -> None:
        self._runtime = runtime
        self._candidates = candidates
        self._kept = KeptResults(store, candidates)

    def settle(self, run: Sequence[Delta]) -> Settled:
        """Evaluate the operators that changed rows need, in the order of the changes."""
        settled = Settled([{}] * len(run), [{}] * len(run), {}, {}, {})
        for wave in _waves(run):
            self._settle_wave(run, wave, settled.kept, settled)
        return settled

    def keep(self, settled: Settled, *, silent: bool) -> None:
        """Store the results with their rows. `silent`: a repetition after a restart."""
        for key, kept in settled.kept.items():
            self._kept.write(key, kept)
        if not silent:
            keys = map(pack, settled.kept)
            self._runtime.journal.forget_left_out(self._candidates.table.name, keys)

    def _settle_wave(
        self, run: Sequence[Delta], wave: Sequence[int], current: dict[RowKey, Kept], out: Settled
    ) -> None:
        """Settle changes of pairwise different rows."""
        asked: list[tuple[int, Row]] = []
        known: list[Results] = []
        were: list[tuple[int, Row]] = []
        said: list[Results] = []
        for i in wave:
            _, _, key, old, new = run[i]
            kept = current[key] if key in current else self._kept.read(key)
            current[key] = {}
            if old is not None:
                were.append((i, old))
                said.append(self._said_of(kept, old))
                out.before[i] = self._values(said[-1], old)[0]
            if new is not None:
                asked.append((i, new))
                known.append(self._known_of(kept, new, run[i].offset))
        # Old versions of rows were decided when they were written: nothing is evaluated.
        settled = self._settled([row for _, row in were], said, [None] * len(were), ask=False)
        for (i, _), found in zip(were, settled, strict=True):
            self._note_matches(i, found, out)
        offsets = [run[i].offset for i, _ in asked]
        settled = self._settled([row for _, row in asked], known, offsets)
        for (i, row), found in zip(asked, settled, strict=True):
            self._note_matches(i, found, out)
            out.after[i], failures = self._values(found.known, row)
            for failure in (*found.failed.values(), *failures.values()):
                out.failures.setdefault(run[i].offset, failure)
            current[run[i].key] = self._to_keep(found.known, row, run[i].offset)

    def _note_matches(self, number: int, found: RowResults, out: Settled) -> None:
        for branch in found.matched:
            name = self._candidates.branches[branch].relation.name
            out.matched.setdefault(name, set()).add(number)

    def ask(
        self, keyed: Sequence[tuple[RowKey, Row]], new: Sequence[Point], offset: int | None = None
    ) -> tuple[list[LazyValues], list[LazyValues]]:
        """Evaluate on existing rows what new points need; returns the operator columns of the rows
        before and after. A stored result stays valid until the row changes, whatever version
        computed it, because other contents rely on it. Rows on which operators fail are left out,
        and recorded in the journal."""
        ignored = self._candidates.columns_of(new)
        waiting = {point.id.subscription for point in new}
        left_out: list[LeftOut] = []
        kept = [self._kept.read(key) for key, _ in keyed]
        said = [self._said_of(one, row) for one, (_, row) in zip(kept, keyed, strict=True)]
        settled = self._settled([row for _, row in keyed], said, [offset] * len(keyed))
        before: list[LazyValues] = []
        after: list[LazyValues] = []
        for (key, row), was, known, found in zip(keyed, kept, said, settled, strict=True):
            if len(found.known) > len(known):
                earlier = {one: was[one] for one in known}
                self._kept.write(key, self._to_keep(found.known, row, offset) | earlier)
            values = self._values(known, row)[0]
            before.append({one: value for one, value in values.items() if one not in ignored})
            values, failures = self._values(found.known, row)
            after.append(values)
            if found.failed or failures:
                left_out += self._left_out(key, found, failures, waiting)
        self._runtime.journal.note_left_out(left_out)
        return before, after

    def _left_out(
        self,
        key: RowKey,
        found: RowResults,
        failures: Mapping[Definition, OperatorFailure],
        waiting: Collection[int],
    ) -> Iterator[LeftOut]:
        """The new subscriptions that might select a row if operators did not fail on it."""
        branches, table = self._candidates.branches, self._candidates.table
        left_open = dict(found.left_open)
        for number in found.matched:
            for definition in branches[number].lazy:
                if definition in failures:
                    left_open.setdefault(number, failures[definition])
        by_subscription = {branches[number].subscription: why for number, why in left_open.items()}
        shown = ", ".join(f"{name} = {value}" for name, value in table.show_key(key).items())
        for subscription, failure in by_subscription.items():
            if subscription in waiting:
                why = failure.error()
                reason = shortened(f"{why.primary} ({why.detail})")
                yield LeftOut(subscription, table.name, pack(key), shown, reason)

    def rows(self, keyed: Sequence[tuple[RowKey, Row]]) -> list[LazyValues]:
        """The operator columns of existing rows, which were evaluated for all points."""
        if not self._kept.is_kept:
            return self.ask(keyed, ())[1]
        return [
            self._values(self._said_of(self._kept.read(key), row), row)[0] for key, row in keyed
        ]

    def _values(
        self, results: Results, row: Row
    ) -> tuple[LazyValues, dict[Definition, OperatorFailure]]:
        """The columns that follow from the results of a row; and those that failed, because their
        bindings have too many combinations."""
        values: dict[Definition, bool | None] = {}
        failures: dict[Definition, OperatorFailure] = {}
        for call in results:
            for definition in self._candidates.columns.get(call, ()):
                if definition in values:
                    continue
                value = self._runtime.value(definition, results, self._candidates.table, row)
                if isinstance(value, OperatorFailure):
                    failures[definition], value = value, None
                values[definition] = value
        return values, failures

    def _said_of(self, kept: Kept, row: Row) -> Results:
        """The stored results whose inputs equal the row's, of any version."""
        table = self._candidates.table
        return {
            call: said.result
            for call, said in kept.items()
            if said.inputs == _digest_inputs(call, table, row)
        }

    def _known_of(self, kept: Kept, row: Row, offset: int) -> Results:
        """The stored results that need not be evaluated again."""
        version = self._runtime.version
        current = {c: said for c, said in kept.items() if said.version == version(c, offset)}
        return self._said_of(current, row)

    def _to_keep(self, results: Results, row: Row, offset: int | None) -> Kept:
        table, version = self._candidates.table, self._runtime.version
        return {
            call: Said(version(call, offset), _digest_inputs(call, table, row), result)
            for call, result in results.items()
        }

    def _settled(
        self,
        rows: Sequence[Row],
        known: Sequence[Results],
        offsets: Sequence[int | None],
        *,
        ask: bool = True,
    ) -> list[RowResults]:
        relations = computed_relations(self._candidates.branches.values())
        computed = {}
        if relations and rows:
            values = DerivedValues(relations, rows)
            computed = {one.name: list(values.rows(one)) for one in relations}

        def fulfils(branch: Branch, row: int) -> bool:
            relation = branch.relation
            return not branch.computed or contains(
                branch.computed, relation, computed[relation.name][row]
            )

        return self._runtime.settle(self._candidates, rows, known, fulfils, offsets, ask=ask)


def _waves(run: Sequence[Delta]) -> Iterator[list[int]]:
    """Changes by number, in order, so that no wave has two of one row."""
    counts: dict[RowKey, int] = {}
    waves: list[list[int]] = []
    for i, delta in enumerate(run):
        number = counts[delta.key] = counts.get(delta.key, -1) + 1
        if number == len(waves):
            waves.append([])
        waves[number].append(i)
    return iter(waves)


def _digest_inputs(call: Predicate, table: Relation, row: Row) -> bytes:
    names = (one.name for one in call.arguments if type(one) is ColumnTerm)
    values = [row[table.positions[name.lower()]] for name in names]
    return blake2b(pack(values), digest_size=8).digest()
