"""The third stage: one bucket of the groups of all edges.

It answers subscriptions over several tables. Rows for new edges come first, then the content of
new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from penstock.engine.stages import GroupStore, JoinStage
from penstock.joins import StepsByEdge, make_scheme
from penstock.pipeline.bodies import decode_steps
from penstock.pipeline.row_stage import add_messages
from penstock.pipeline.rows import BUCKETS, Inbox, RowBuffer, RowKind, Span
from penstock.pipeline.view import View


def advance_groups(bucket: int, inbox: Inbox, store: GroupStore, view: View) -> RowBuffer:
    """Bring one bucket through one batch; returns the rows for the sink."""
    (tick,) = inbox.rows(RowKind.TICK)
    out = RowBuffer()
    if bucket == BUCKETS[0]:
        out.add(bucket, RowKind.HEADER, tick.offset, tick.body)
    out.forward(bucket, inbox, RowKind.MESSAGE, RowKind.BAD)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active, span.end)
    # What a scheme remembers of groups would be of no use in the next batch, which reads them anew.
    stage = JoinStage(store, view.index, make_scheme())
    for edge, groups in _steps(inbox, RowKind.SEED, view).items():
        stage.seed(edge, groups)
    for points, since in view.arrivals(span).semijoins:
        add_messages(bucket, stage.initial(span.start, points, since), out)
    add_messages(bucket, stage.run(_steps(inbox, RowKind.STEP, view)), out)
    return out


def _steps(inbox: Inbox, kind: RowKind, view: View) -> StepsByEdge:
    """The steps that all senders have for the groups of this bucket."""
    steps: StepsByEdge = {}
    for name, value, mine in inbox.unpacked(kind, decode_steps):
        groups = steps.setdefault(view.edges[name], {})
        known = groups.setdefault(value, mine)
        if known is not mine:
            known += mine
    for groups in steps.values():
        for known in groups.values():
            known.sort()
    return steps
