"""Evaluating operators for the rows of a batch, each predicate at most once per row, on a schedule.

Every row has a run of the schedule over its candidates. Runs advance together: in each round, the
next predicates of all runs are evaluated in one call per operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.catalog import Relation, Row, Stored
from penstock.catalog.derived import Definition
from penstock.errors import ChangeError
from penstock.flow.candidates import Branch, Candidates
from penstock.operators.evaluation import Evaluator
from penstock.operators.failures import FailureKind, OperatorFailure
from penstock.operators.groups import Predicate
from penstock.operators.interface import Argument, Operator, Result, StoredRow
from penstock.operators.journal import Journal, MemoryJournal
from penstock.operators.lazy_columns import Literal, lazy_column
from penstock.operators.schedules import DEFAULT_SCHEDULE, Run, make_schedule
from penstock.operators.statistics import PredicateStatistics
from penstock.operators.terms import ColumnTerm, Constant, Variable

REFRESH_EVERY = 10_000
"""Evaluations after which a schedule is refreshed from the statistics."""
FEW_LITERALS = 1_000

Results = dict[Predicate, Result]
"""The known results of a row."""
Recall: TypeAlias = Callable[[Operator, str, Sequence[StoredRow]], dict[int, Result]]
"""The recorded results of a version of an operator for rows, by row number."""


@dataclass
class RowResults:
    """The operator results of a row."""

    known: Results = field(default_factory=dict)
    failed: dict[Predicate, OperatorFailure] = field(default_factory=dict)
    """Calls that failed."""
    matched: list[int] = field(default_factory=list)
    """The branches whose literals all hold."""
    left_open: dict[int, OperatorFailure] = field(default_factory=dict)
    """The branches that only a failure leaves undecided."""


class OperatorRuntime:
    """What a process needs to evaluate operators. For one thread."""

    def __init__(
        self,
        operators: MutableMapping[str, Operator],
        evaluator: Evaluator,
        schedule: str = DEFAULT_SCHEDULE,
        *,
        journal: Journal | None = None,
        recall: Recall | None = None,
    ) -> None:
        """`recall` finds results of earlier versions."""
        self.operators = operators
        self.evaluator = evaluator
        self.journal: Journal = MemoryJournal() if journal is None else journal
        self._recall = recall
        self._schedule = schedule
        self._tables: dict[str, TableSchedule] = {}
        self.evaluated = 0
        """The number of rows for which operators were called, without cache hits."""

    def forget(self, name: str) -> None:
        """Drop an operator, so that its new version is looked up."""
        self.operators.pop(name.lower(), None)

    def value(
        self, definition: Definition, results: Results, table: Relation, row: Row
    ) -> bool | OperatorFailure | None:
        """The value of a column from the operator results of a row."""
        return lazy_column(definition).value(results, self.operators, table, row)

    def values_of(
        self, definitions: Iterable[Definition], table: Relation, rows: Sequence[Row]
    ) -> list[tuple[dict[Definition, bool | None], dict[Definition, OperatorFailure]]]:
        """All of these columns, for explanations; and those that cannot be computed."""
        wanted = list(definitions)
        results: list[Results] = [{} for _ in rows]
        failed: list[dict[Predicate, OperatorFailure]] = [{} for _ in rows]
        for call in dict.fromkeys(call for one in wanted for call in lazy_column(one).calls):
            asked = [(row, call) for row in rows]
            outcomes, _ = self._outcomes(self.operators[call.operator], table, asked)
            for known, failures, outcome in zip(results, failed, outcomes, strict=True):
                if isinstance(outcome, OperatorFailure):
                    failures[call] = outcome
                else:
                    known[call] = outcome
        return [
            self._columns_of(wanted, known, failures, table, row)
            for row, known, failures in zip(rows, results, failed, strict=True)
        ]

    def _columns_of(
        self,
        wanted: Iterable[Definition],
        known: Results,
        failures: Mapping[Predicate, OperatorFailure],
        table: Relation,
        row: Row,
    ) -> tuple[dict[Definition, bool | None], dict[Definition, OperatorFailure]]:
        values: dict[Definition, bool | None] = {}
        failed: dict[Definition, OperatorFailure] = {}
        for one in wanted:
            of_calls = [failures[call] for call in lazy_column(one).calls if call in failures]
            value = of_calls[0] if of_calls else self.value(one, known, table, row)
            if isinstance(value, OperatorFailure):
                failed[one] = value
            else:
                values[one] = value
        return values, failed

    def version(self, predicate: Predicate, offset: int | None = None) -> str:
        """The version of the operator at an offset, for replaying a log; otherwise the current
        one."""
        earlier = None if offset is None else self.journal.version_at(predicate.operator, offset)
        return earlier or self.operators[predicate.operator].version

    def settle(
        self,
        candidates: Candidates,
        rows: Sequence[Row],
        known: Sequence[Results],
        computed: Callable[[Branch, int], bool],
        offsets: Sequence[int | None],
        *,
        ask: bool = True,
    ) -> list[RowResults]:
        """Evaluate what is needed to decide every branch for these rows of a table.

        `known` are earlier results, row by row. `computed` tests whether a row (by number)
        satisfies the conditions of a branch on expressions. `offsets` are the log offsets at which
        rows are evaluated. Without `ask`, nothing is evaluated and only `known` counts.
        """
        schedule = self._tables.get(candidates.table.name)
        if schedule is None or schedule.candidates is not candidates or schedule.is_littered:
            schedule = TableSchedule(candidates, self._schedule, self.operators)
            self._tables[candidates.table.name] = schedule
        schedule.follow()
        works = []
        for number, (row, wanting) in enumerate(zip(rows, candidates.of_rows(rows), strict=True)):
            mine = [n for n in wanting if computed(candidates.branches[n], number)]
            found = RowResults(dict(known[number]))
            run = schedule.start(mine, found.known)
            works.append(_Work(row, mine, found, run, offsets[number]))
        if ask:
            self._run(candidates.table, schedule, works)
        for work in works:
            work.found.matched = work.run.matched
            if work.found.failed:
                work.found.left_open = _left_open(work, candidates)
        return [work.found for work in works]

    def _run(self, table: Relation, schedule: TableSchedule, works: list[_Work]) -> None:
        waiting = works
        while waiting:
            asked = [(work, one) for work in waiting for one in schedule.asked(work.run)]
            self._evaluate(table, schedule, asked)
            waiting = [work for work in waiting if work.run.next() is not None]

    def _evaluate(
        self, table: Relation, schedule: TableSchedule, asked: Iterable[tuple[_Work, Predicate]]
    ) -> None:
        by_operator: dict[tuple[str, str], list[tuple[_Work, Predicate]]] = {}
        for work, predicate in asked:
            who = predicate.operator, self.version(predicate, work.offset)
            by_operator.setdefault(who, []).append((work, predicate))
        for (name, version), pairs in by_operator.items():
            asked_of = [(work.row, predicate) for work, predicate in pairs]
            outcomes, seconds = self._outcomes(self.operators[name], table, asked_of, version)
            for (work, predicate), outcome in zip(pairs, outcomes, strict=True):
                result: Result = None
                if isinstance(outcome, OperatorFailure):
                    work.found.failed[predicate] = outcome
                else:
                    work.found.known[predicate] = result = outcome
                schedule.tell(work.run, predicate, result, seconds)

    def _outcomes(
        self,
        operator: Operator,
        table: Relation,
        pairs: Sequence[tuple[Row, Predicate]],
        version: str | None = None,
    ) -> tuple[list[Result | OperatorFailure], float | None]:
        """The results of an operator, and the seconds per row for which it was called. It is not
        called with arguments that do not fit, or with NULL unless it takes NULLs. Results of an
        earlier version are looked up; where there is no record, the current version is called."""
        outcomes: list[Result | OperatorFailure] = [None] * len(pairs)
        readers: dict[Predicate, Callable[[Row], StoredRow]] = {}
        wanted: list[int] = []
        arguments: list[StoredRow] = []
        for i, (row, predicate) in enumerate(pairs):
            if predicate not in readers:
                readers[predicate] = argument_reader(predicate, operator, table)
            try:
                given = readers[predicate](row)
            except ChangeError as error:
                outcomes[i] = OperatorFailure(
                    operator.name, operator.version, FailureKind.RAISED, str(error)
                )
                continue
            if operator.takes_null or None not in given:
                wanted.append(i)
                arguments.append(given)
        if not wanted:
            return outcomes, None
        if self._recall is not None and version not in (None, operator.version):
            recalled = self._recall(operator, version, arguments)
            for n, result in recalled.items():
                outcomes[wanted[n]] = result
            rest = [n for n in range(len(wanted)) if n not in recalled]
            wanted, arguments = [wanted[n] for n in rest], [arguments[n] for n in rest]
        done = self.evaluator.evaluate(operator, arguments)
        self.evaluated += done.evaluated_rows
        for i, outcome in zip(wanted, done.outcomes, strict=True):
            outcomes[i] = outcome
        return outcomes, done.seconds / done.evaluated_rows if done.evaluated_rows else None


@dataclass
class _Work:
    """A row, its known results, and its run of the schedule."""

    row: Row
    candidates: Sequence[int]
    found: RowResults
    run: Run
    offset: int | None


def _left_open(work: _Work, candidates: Candidates) -> dict[int, OperatorFailure]:
    """The branches of a row that might match if no operator had failed."""
    found: dict[int, OperatorFailure] = {}
    known, failed = work.found.known, work.found.failed
    for number in work.candidates:
        literals = candidates.branches[number].literals
        failures = [failed[one.call] for one in literals if one.call in failed]
        if failures and all(one.holds(known[one.call]) for one in literals if one.call in known):
            found[number] = failures[0]
    return found


class TableSchedule:
    """A schedule over the branches of one table. Literals are its predicates, by number."""

    def __init__(
        self, candidates: Candidates, schedule: str, operators: Mapping[str, Operator]
    ) -> None:
        self.candidates = candidates
        self.statistics = PredicateStatistics()
        self._schedule = make_schedule(schedule, self.statistics)
        self._operators = operators
        self._observed = 0
        self._held: set[int] = set()
        self._version = -1
        self._literals: dict[Literal, int] = {}
        self._by_number: list[Literal] = []
        self._of_predicate: dict[Predicate, list[int]] = {}

    def follow(self) -> None:
        """Update the schedule to the current branches."""
        if self._version == self.candidates.version:
            return
        self._version = self.candidates.version
        branches = self.candidates.branches
        for gone in self._held - branches.keys():
            self._schedule.remove(gone)
        for number in branches.keys() - self._held:
            self._schedule.add(number, [self._number(one) for one in branches[number].literals])
        self._held = set(branches)

    @property
    def is_littered(self) -> bool:
        """Whether most of its literals belong to removed branches: it should be replaced."""
        return len(self._by_number) > FEW_LITERALS + 4 * len(self.candidates.calls)

    def start(self, branches: Sequence[int], known: Results) -> Run:
        truths: dict[int, bool] = {}
        for predicate, result in known.items():
            for number in self._of_predicate.get(predicate, ()):
                truths[number] = self._by_number[number].holds(result)
        return self._schedule.start(branches, truths)

    def asked(self, run: Run) -> list[Predicate]:
        """The predicates that a run asks for now."""
        return list(dict.fromkeys(self._by_number[n].call for n in run.batch()))

    def tell(self, run: Run, predicate: Predicate, result: Result, seconds: float | None) -> None:
        """Record the result of an evaluation, and its duration if the operator was called."""
        for number in self._of_predicate[predicate]:
            truth = self._by_number[number].holds(result)
            self.statistics.observe(number, truth, seconds)
            run.tell(number, truth)
        self._observed += 1
        if self._observed % REFRESH_EVERY == 0:
            self._schedule.refresh()

    def _number(self, literal: Literal) -> int:
        number = self._literals.get(literal)
        if number is None:
            number = self._literals[literal] = len(self._by_number)
            self._by_number.append(literal)
            operator = self._operators[literal.call.operator]
            kind = (operator.name, literal.wanted)
            self.statistics.declare(number, kind, operator.cost_seconds)
            self._of_predicate.setdefault(literal.call, []).append(number)
        return number


def argument_reader(
    call: Predicate, operator: Operator, table: Relation
) -> Callable[[Row], StoredRow]:
    """A function that reads the arguments of a call from rows of a table; it raises ChangeError if
    a value does not fit."""
    readers = [
        _value_reader(one, taken, table)
        for one, taken in zip(call.arguments, operator.arguments, strict=True)
    ]
    return lambda row: tuple([read(row) for read in readers])


def _value_reader(
    one: ColumnTerm | Constant | Variable, taken: Argument, table: Relation
) -> Callable[[Row], Stored]:
    if isinstance(one, Constant):
        constant = taken.type.store(one.value)
        return lambda _: constant
    assert isinstance(one, ColumnTerm)  # variables come after all arguments
    column = table.positions[one.name.lower()]
    given = table.columns[column].type
    return lambda row: taken.convert(row[column], given)
