"""The third stage: one bucket of the groups of all edges.

It answers subscriptions over several tables. Rows for new edges come first, then the content of
new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.engine.stages import GroupStore, JoinStage
from penstock.joins import GroupStep, make_scheme
from penstock.pipeline.bodies import decode_steps, step_of
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
    for step in _steps(inbox, RowKind.SEED, view):
        stage.seed(step)
    for points in view.arrivals(span).semijoins(view.index):
        add_messages(bucket, stage.initial(span.start, points), out)
    add_messages(bucket, stage.run(_steps(inbox, RowKind.STEP, view)), out)
    return out


def _steps(inbox: Inbox, kind: RowKind, view: View) -> Iterator[GroupStep]:
    edges = view.edges
    for offset, number, body in inbox.decoded(kind, decode_steps):
        yield step_of(offset, number, body, edges)
