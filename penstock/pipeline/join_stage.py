"""The third stage: one bucket of the groups of all edges.

It answers subscriptions over several tables. Rows for new edges come first, then the content of
new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from penstock.engine.stages import GroupStore, JoinStage
from penstock.joins import make_scheme
from penstock.pipeline.bodies import unpack_step
from penstock.pipeline.row_stage import add_message
from penstock.pipeline.rows import Inbox, RowBuffer, RowKind, Span
from penstock.pipeline.view import View


def advance_groups(bucket: int, inbox: Inbox, store: GroupStore, view: View) -> RowBuffer:
    """Bring one bucket through one batch; returns the rows for the sink."""
    (tick,) = inbox.rows(RowKind.TICK)
    out = RowBuffer()
    if bucket == 0:
        out.add(bucket, RowKind.HEADER, tick.offset, tick.body)
    out.forward(bucket, inbox, RowKind.MESSAGE, RowKind.BAD)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active, span.end)
    # What a scheme remembers of groups would be of no use in the next batch, which reads them anew.
    stage = JoinStage(store, view.index, make_scheme())
    for row in inbox.rows(RowKind.SEED):
        stage.seed(unpack_step(row.offset, row.step, row.body, view.edges))
    for points in view.index.parts(view.arrivals(span).points):
        if points.space.edge is not None:
            for message in stage.initial(span.start, points):
                add_message(bucket, message, out)
    steps = inbox.rows(RowKind.STEP)
    for messages in stage.run(unpack_step(r.offset, r.step, r.body, view.edges) for r in steps):
        for message in messages:
            add_message(bucket, message, out)
    return out
