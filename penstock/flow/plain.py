"""The two stateful stages that every change passes through.

`RowStage` has the rows of the tables: it resolves changes, serves subscriptions over one table, and
computes which groups a change touches. `JoinStage` has the rows by join value: it serves
subscriptions over several tables. Neither knows where its state is stored: the Hub passes
dictionaries, the pipeline Spark's state store, partitioned by key.

Steps are numbered within one offset: the initial content of new subscriptions comes first, then the
steps of groups (`penstock.flow.group_steps`).
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
        """Apply one change to the rows; ChangeError, with no effect, if it cannot be applied.

        None if it changes nothing. `consequences` computes the messages.
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
        """Steps that insert the existing rows into the groups of a new edge."""
        groups: GroupSteps = {}
        for relation in self._index.relations(edge):
            rows = self._rows(relation)
            entering = [Delta(offset, relation, key, None, row) for key, row in rows]
            EdgeSteps(relation, edge).add(entering, groups)
        return groups

    def join_values(self, points: SpacePoints) -> list[JoinValue]:
        """The distinct join values of base rows that some point selects; for few points."""
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
        """The messages of a batch of steps, during which no subscription is added or removed.

        Steps of different groups are independent. So a batch is processed group by group, and a
        scheme gets all steps of a group at once. Sorted by position, the messages are the same as
        those of one step after the other, up to the order within one position.
        """
        for edge, groups in steps.items():
            for value, batch in groups.items():
                yield from self._run_group(edge, value, batch)

    def _run_group(
        self, edge: Edge, value: JoinValue, batch: list[GroupStep]
    ) -> Iterable[AnyMessage]:
        """Run the steps of one group."""
        group, spaces = self._store.get(edge, value), self._index.on_edge(edge)
        if not spaces:
            self._absorb_group(edge, value, batch)
            return ()
        told = self._scheme.run(group, with_payloads(edge, group, batch), spaces)
        self._store.put(edge, value, group)
        return told

    def absorb(self, steps: StepsByEdge) -> None:
        """Apply steps whose messages were emitted before."""
        for edge, groups in steps.items():
            for value, batch in groups.items():
                self._absorb_group(edge, value, batch)

    def _absorb_group(self, edge: Edge, value: JoinValue, batch: list[GroupStep]) -> None:
        group = self._store.get(edge, value)
        for step in with_payloads(edge, group, batch):
            group.apply(step)
        self._store.put(edge, value, group)

    def seed(self, edge: Edge, groups: GroupSteps) -> None:
        """Insert rows without messages: no subscription uses their edge yet."""
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
        """The initial content of new subscriptions from one base table. `since` is set if `points`
        are all points of the space recorded from that offset on; `values` are the groups with base
        rows that these points select, if known."""
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
        """The rows of one base table that all subscriptions need, addressed by regions."""
        assert points.space.edge is not None
        groups = (group for _, group in self._store.groups(points.space.edge))
        return content_messages(Position(offset, INITIAL_STEP), groups, points)


class Consequences(NamedTuple):
    """The consequences of changes of rows."""

    messages: list[Message]
    """Messages for subscriptions over one of the changed tables only."""
    steps: StepsByEdge


def consequences(index: Index, run: Iterable[Delta]) -> Consequences:
    """The messages and steps of changes, during which no subscription is added or removed."""
    of_relation = _by_relation(run)
    messages: list[Message] = []
    for mine in of_relation:
        points = index.selections(mine[0].relation)
        if points is not None:
            messages.extend(selection_messages(mine, points))
    return Consequences(messages, _steps_of(index, of_relation))


def steps_of(index: Index, run: Iterable[Delta]) -> StepsByEdge:
    """The steps of changes."""
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
    """The messages that some subscription over the changed table only needs."""
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
