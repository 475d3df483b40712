"""The third stage: the groups of all edges, by join value.

It emits the messages of subscriptions over several tables. Rows for new edges come first, then the
initial content of new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from penstock.flow.exchange import StageInput, StageOutput
from penstock.flow.kinds import Kind, StepsRow
from penstock.flow.plain import JoinStage
from penstock.flow.stage import BatchView, Key
from penstock.flow.state import GroupStore
from penstock.flow.stores import ManyEntries, StoredGroups
from penstock.joins import StepsByEdge
from penstock.spaces import Edge


class StageGroups(GroupStore, Protocol):
    """The groups of one partition: objects, and for the fast gear also packed (`PackedGroups`)."""

    def clear(self, edge: Edge) -> None:
        """Drop all groups of an edge that is not used in this batch yet."""


class Groups:
    name = "groups"
    takes = frozenset({Kind.SEED, Kind.STEP})
    gives = frozenset({Kind.MESSAGE})
    keyed_by: Key | None = Key.GROUP

    def open_store(self, entries: ManyEntries) -> StoredGroups:
        return StoredGroups(entries)

    def advance(self, given: StageInput, store: StageGroups, view: BatchView) -> StageOutput:
        out, bucket, new = StageOutput(view.spread), given.bucket, view.new
        stage = JoinStage(store, view.index, view.scheme())
        # Stale groups may exist if a subscription that used the edge was suspended since.
        for edge in new.edges:
            store.clear(edge)
        for edge, groups in _steps(given.unpacked(Kind.SEED), view.edges).items():
            stage.seed(edge, groups)
        for points, since, values in new.semijoins:
            out.add_messages(bucket, stage.initial(given.span.start, points, since, values))
        others = _run_packed(given, store, view, out)
        steps = _steps(given.unpacked(Kind.STEP), others) if others else {}
        if steps and view.silent:
            stage.absorb(steps)
        elif steps:
            out.add_messages(bucket, stage.run(steps))
        return out


def _run_packed(
    given: StageInput, store: StageGroups, view: BatchView, out: StageOutput
) -> Mapping[str, Edge]:
    """The steps of edges in the fast gear; returns the other edges."""
    if not view.plan.reading().is_fast:
        return view.edges
    from penstock.joins.packed import PackedJoins, SentSteps

    assert isinstance(store, StoredGroups)
    sent, edges, new = SentSteps(given.chunks(Kind.STEP)), view.edges, view.new.edges
    fast = {
        name: edges[name]
        for name in sent.edges
        if view.plan.groups(edges[name], is_new=edges[name] in new).is_fast
    }
    scheme, plan = view.scheme(), view.plan
    joins = PackedJoins(
        scheme,
        plan.forms,
        store,
        view.index.on_edge,
        lambda points: plan.space(points, scheme).is_fast,
    )
    messages = joins.run(sent, fast)
    if messages.packed is not None:
        out.add_packed_messages(given.bucket, *messages.packed)
    out.add_messages(given.bucket, messages.others)
    return {name: edges[name] for name in sent.edges if name not in fast}


def _steps(rows: Iterable[StepsRow], edges: Mapping[str, Edge]) -> StepsByEdge:
    """The steps from all senders for the groups of these edges in this partition."""
    steps: StepsByEdge = {}
    for name, value, mine in rows:
        if name in edges:
            groups = steps.setdefault(edges[name], {})
            known = groups.setdefault(value, mine)
            if known is not mine:
                known += mine
    for groups in steps.values():
        for known in groups.values():
            known.sort()
    return steps
