"""The two stateful stages that every change passes through.

`RowStage` knows the rows of the tables: it resolves changes, answers subscriptions over one table,
and says which groups a change touches. `JoinStage` knows the rows by join value: it answers
subscriptions over several tables. Neither knows where its state lives: the Hub hands them
dictionaries, the pipeline hands them Spark's state store, partitioned by key.

What happens at one offset is numbered: new subscriptions get their initial content first, then come
the steps of groups (`penstock.flow.group_steps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.catalog import Relation, Row, RowKey
from penstock.flow.changes import Checked, Delta, is_same_row, row_after
from penstock.flow.derived import RowOperators, rows_of
from penstock.flow.group_steps import FIRST_STEP, EdgeSteps, StepCollector
from penstock.flow.index import Index
from penstock.flow.payloads import with_payloads
from penstock.flow.state import GroupStore, RowStore, in_parts
from penstock.joins import GroupStep, GroupSteps, Scheme, SpacePoints, StepsByEdge
from penstock.joins.initial_regions import MANY_NEWCOMERS, newcomer_messages
from penstock.joins.point_arrays import Mask
from penstock.joins.selections import NewSelections, Selections
from penstock.joins.whole_contents import content_messages
from penstock.messages import EVERYONE, INITIAL_STEP, AnyMessage, Message, Position
from penstock.spaces import Edge, JoinValue, Space, joiner


class RowStage:
    def __init__(
        self, store: RowStore, index: Index, operators: RowOperators | None = None
    ) -> None:
        self._store = store
        self._index = index
        self._operators = operators

    def resolve(self, offset: int, checked: Checked) -> Delta | None:
        """Carry out one change on the rows; ChangeError, before anything happens, if it cannot be.

        None if it changes nothing. Everybody is told by `consequences`.
        """
        relation, _, key, _, _ = checked
        old = self._store.get(relation, key)
        new = row_after(checked, old)
        if is_same_row(relation, old, new):
            return None
        self._store.put(relation, key, new)
        return Delta(offset, relation, key, old, new)

    def _rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        return rows_of(self._store, relation, self._operators)

    def seed(self, offset: int, edge: Edge) -> GroupSteps:
        """Steps that bring the rows known so far into the groups of a new edge."""
        groups: GroupSteps = {}
        for relation in self._index.relations(edge):
            rows = self._rows(relation)
            entering = [Delta(offset, relation, key, None, row) for key, row in rows]
            EdgeSteps(relation, edge).add(entering, groups)
        return groups

    def join_values(self, points: SpacePoints) -> list[JoinValue]:
        """By what the base rows are joined, each once, that some of a few points select."""
        side, relation = points.space.base_side, points.base
        of_row, values = joiner(relation, side.columns), dict[JoinValue, None]()
        for part in in_parts(self._rows(relation)):
            for i in np.flatnonzero(points.selected_by_any(part)).tolist():
                value = of_row(part[i][1])
                if value is not None:
                    values[value] = None
        return list(values)

    def initial(self, offset: int, new: NewSelections) -> Iterator[Message]:
        """The current content of new subscriptions over one table, a message for each row."""
        position, space = Position(offset, INITIAL_STEP), Space(new.relation.name).id
        for part in in_parts(self._rows(new.relation)):
            any_match = np.flatnonzero(new.any_match([row for _, row in part]))
            selected = [part[i] for i in any_match.tolist()]
            if new.since is not None and len(new) >= MANY_NEWCOMERS:
                for key, row in selected:
                    yield Message(position, space, key, row, EVERYONE, since=new.since)
            else:
                chosen = new.selecting([row for _, row in selected])
                for (key, row), recipients in zip(selected, chosen, strict=True):
                    yield Message(position, space, key, row, recipients=recipients)

    def contents(self, offset: int, points: SpacePoints) -> Iterator[Message]:
        """The current content of all subscriptions over one table, a message for each row."""
        position, all_of_them = Position(offset, INITIAL_STEP), NewSelections(points)
        for part in in_parts(self._rows(points.base)):
            any_match = np.flatnonzero(all_of_them.any_match([row for _, row in part]))
            for key, row in (part[i] for i in any_match.tolist()):
                yield Message(position, points.space.id, key, row, EVERYONE)


class JoinStage:
    def __init__(self, store: GroupStore, index: Index, scheme: Scheme) -> None:
        self._store = store
        self._index = index
        self._scheme = scheme

    def run(self, steps: StepsByEdge) -> Iterator[AnyMessage]:
        """The messages of many steps, between which no subscription comes or goes.

        Steps of different groups know nothing of each other. So a batch is worked through group by
        group, and a scheme can take many steps of a group at once. Sorted by position, messages are
        those of one step after the other, those of one position in any order.
        """
        for edge, groups in steps.items():
            for value, batch in groups.items():
                yield from self._run_group(edge, value, batch)

    def _run_group(
        self, edge: Edge, value: JoinValue, batch: list[GroupStep]
    ) -> Iterable[AnyMessage]:
        """Bring one group through its steps."""
        group, spaces = self._store.get(edge, value), self._index.on_edge(edge)
        if not spaces:
            self._absorb_group(edge, value, batch)
            return ()
        told = self._scheme.run(group, with_payloads(edge, group, batch), spaces)
        self._store.put(edge, value, group)
        return told

    def absorb(self, steps: StepsByEdge) -> None:
        """Bring groups through steps whose messages were emitted before."""
        for edge, groups in steps.items():
            for value, batch in groups.items():
                self._absorb_group(edge, value, batch)

    def _absorb_group(self, edge: Edge, value: JoinValue, batch: list[GroupStep]) -> None:
        group = self._store.get(edge, value)
        for step in with_payloads(edge, group, batch):
            group.apply(step)
        self._store.put(edge, value, group)

    def seed(self, edge: Edge, groups: GroupSteps) -> None:
        """Take rows in without telling anybody: no subscription uses their edge yet."""
        for value, steps in groups.items():
            group = self._store.get(edge, value)
            for step in steps:
                group.apply(step)
            self._store.put(edge, value, group)

    def initial(
        self,
        offset: int,
        points: SpacePoints,
        since: int | None = None,
        values: Iterable[JoinValue] | None = None,
    ) -> Iterator[Message]:
        """The rows of one base table that new subscriptions need to start with. `since`, if their
        points are all of the space that were recorded from there on; `values`, if it is known which
        groups have base rows that these points select."""
        edge, position = points.space.edge, Position(offset, INITIAL_STEP)
        assert edge is not None
        groups = (group for _, group in self._store.groups(edge))
        if values is not None:
            groups = (self._store.get(edge, value) for value in values)
        if since is not None and len(points) >= MANY_NEWCOMERS:
            for group in groups:
                yield from newcomer_messages(position, group, points, since)
        else:
            yield from self._scheme.initial(position, groups, points)

    def contents(self, offset: int, points: SpacePoints) -> Iterator[Message]:
        """The rows of one base table that all subscriptions need, told by regions."""
        assert points.space.edge is not None
        groups = (group for _, group in self._store.groups(points.space.edge))
        return content_messages(Position(offset, INITIAL_STEP), groups, points)


class Consequences(NamedTuple):
    """What changes of rows lead to."""

    messages: list[Message]
    """To those who subscribe to the changed tables alone."""
    steps: StepsByEdge


def consequences(index: Index, run: Iterable[Delta]) -> Consequences:
    """Whom some changes concern, between which no subscription comes or goes."""
    of_relation = _by_relation(run)
    messages: list[Message] = []
    for mine in of_relation:
        points = index.selections(mine[0].relation)
        if points is not None:
            messages.extend(selection_messages(mine, points))
    return Consequences(messages, _steps_of(index, of_relation))


def steps_of(index: Index, run: Iterable[Delta]) -> StepsByEdge:
    """What some changes do to groups."""
    return _steps_of(index, _by_relation(run))


def _steps_of(index: Index, of_relation: Iterable[list[Delta]]) -> StepsByEdge:
    collected = StepCollector(index)
    for mine in of_relation:
        collected.add(mine[0].relation, mine)
    return collected.in_order()


def _by_relation(run: Iterable[Delta]) -> list[list[Delta]]:
    of_relation: dict[str, list[Delta]] = {}
    for delta in run:
        of_relation.setdefault(delta.relation.name, []).append(delta)
    return list(of_relation.values())


def selection_messages(run: Sequence[Delta], points: Selections) -> Iterator[Message]:
    """The messages that somebody needs among those who subscribe to the changed table alone."""
    taken = _somebody_selects([delta.new for delta in run], points)
    given_up = _somebody_selects([delta.old for delta in run], points)
    for i in np.flatnonzero(taken | given_up).tolist():
        offset, _, key, old, new = run[i]
        yield Message(
            Position(offset, FIRST_STEP),
            points.space.id,
            key,
            row=new if taken[i] else None,
            upsert=EVERYONE if taken[i] else (),
            old=points.mentioned(old) if given_up[i] and old is not None else None,
            remove=EVERYONE if given_up[i] else (),
        )


def _somebody_selects(rows: Sequence[Row | None], points: Selections) -> Mask:
    found = np.zeros(len(rows), np.bool_)
    present = [i for i, row in enumerate(rows) if row is not None]
    found[present] = points.any_match([row for row in rows if row is not None])
    return found
