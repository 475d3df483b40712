"""The third stage: one bucket of the groups of all edges.

It answers subscriptions over several tables. Rows for new edges come first, then the content of
new subscriptions, then the steps of the batch in their order.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.stages import GroupStore, JoinStage
from penstock.joins import make_scheme
from penstock.pipeline.bodies import unpack_step
from penstock.pipeline.row_stage import add_message
from penstock.pipeline.rows import RowBuffer, RowKind, Span, StageRow
from penstock.pipeline.view import View


def advance_groups(
    bucket: int, rows: Iterable[StageRow], store: GroupStore, view: View
) -> RowBuffer:
    """Bring one bucket through one batch; returns the rows for the sink."""
    by_kind: dict[int, list[StageRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    (tick,) = by_kind[RowKind.TICK]
    out = RowBuffer()
    if bucket == 0:
        out.add(bucket, RowKind.HEADER, tick.offset, tick.body)
    for kind in (RowKind.MESSAGE, RowKind.BAD):
        for row in by_kind.get(kind, ()):
            out.add(bucket, kind, row.offset, row.body, row.step)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active)
    # What a scheme remembers of groups would be of no use in the next batch, which reads them anew.
    stage = JoinStage(store, view.index, make_scheme())
    for row in by_kind.get(RowKind.SEED, ()):
        stage.seed(unpack_step(row.offset, row.step, row.body, view.edges))
    for points in view.index.parts(view.arrivals(span).points):
        if points.space.edge is not None:
            for message in stage.initial(span.start, points):
                add_message(bucket, message, out)
    steps = by_kind.get(RowKind.STEP, ())
    for messages in stage.run(unpack_step(r.offset, r.step, r.body, view.edges) for r in steps):
        for message in messages:
            add_message(bucket, message, out)
    return out
