"""The third stage: one bucket of the groups of all edges.

It answers subscriptions over several tables. Rows for new edges come first, then the content of
new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.flow.packed.rows import packed_forms
from penstock.flow.stages import JoinStage
from penstock.joins import StepsByEdge, make_scheme
from penstock.joins.packed import PackedJoins, SentSteps
from penstock.pipeline.row_stage import add_messages
from penstock.pipeline.rows import BUCKETS, RowKind, Span, StageInput, StageOutput
from penstock.pipeline.shuffle_codec import decode_steps
from penstock.pipeline.state.stores import StoredGroups
from penstock.pipeline.worker_index import WorkerIndex
from penstock.spaces import Edge

SCHEME = "ref-sj-gap"
"""Describes regions as the kernels do, so that messages are the same bytes whichever way is taken:
a run that starts over fills its groups anew, and then takes another way for a batch."""


def advance_groups(
    bucket: int, inbox: StageInput, store: StoredGroups, view: WorkerIndex, *, plain: bool = False
) -> StageOutput:
    """Bring one bucket through one batch; returns the rows for the sink. `plain`: all steps are
    taken one by one."""
    (tick,) = inbox.rows(RowKind.TICK)
    out = StageOutput()
    if bucket == BUCKETS[0]:
        out.add(bucket, RowKind.HEADER, tick.offset, tick.body)
    out.forward(bucket, inbox, RowKind.MESSAGE, RowKind.BAD, RowKind.SKIPPED, RowKind.FAULT)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active, span.end)
    # What a scheme remembers of groups would be of no use in the next batch, which reads them anew.
    stage = JoinStage(store, view.index, make_scheme(SCHEME))
    # There may be groups of a time when a subscription needed the edge that is suspended since.
    arrivals = view.arrivals(span)
    for edge in arrivals.edges:
        store.clear(edge)
    for edge, groups in _steps(inbox, RowKind.SEED, view.edges).items():
        stage.seed(edge, groups)
    for points, since in arrivals.semijoins:
        add_messages(bucket, stage.initial(span.start, points, since), out)
    if plain:
        steps = _steps(inbox, RowKind.STEP, view.edges)
        add_messages(bucket, stage.run(steps), out)
        return out
    rows = packed_forms(view.catalog(span.end))
    packed = PackedJoins(make_scheme(SCHEME), rows, store, view.index.on_edge)
    _run(bucket, inbox, stage, packed, view.edges, arrivals.edges, out)
    return out


def _run(
    bucket: int,
    inbox: StageInput,
    stage: JoinStage,
    packed: PackedJoins,
    edges: Mapping[str, Edge],
    new: Collection[Edge],
    out: StageOutput,
) -> None:
    """Take the steps of the batch: nearly all as they are packed, the others one by one."""
    sent = SentSteps(inbox.chunks(RowKind.STEP))
    # The groups of new edges are not in the state yet.
    usual = {
        name: edges[name]
        for name in sent.edges
        if edges[name] not in new and packed.can_run(edges[name])
    }
    told = packed.run(sent, usual)
    if told.packed is not None:
        out.tell(bucket, *told.packed)
    add_messages(bucket, told.others, out)
    others = {name: edges[name] for name in sent.edges if name not in usual}
    if others:
        add_messages(bucket, stage.run(_steps(inbox, RowKind.STEP, others)), out)


def _steps(inbox: StageInput, kind: RowKind, edges: Mapping[str, Edge]) -> StepsByEdge:
    """The steps that all senders have for the groups of these edges in this bucket."""
    steps: StepsByEdge = {}
    for name, value, mine in inbox.unpacked(kind, decode_steps):
        if name in edges:
            groups = steps.setdefault(edges[name], {})
            known = groups.setdefault(value, mine)
            if known is not mine:
                known += mine
    for groups in steps.values():
        for known in groups.values():
            known.sort()
    return steps
