"""Faults in the stages: a worker finds the records to blame, the sink has them set aside.

A stage that fails is tried again without its fast path. If that fails, too, the worker tries parts
of its input for some of the subscriptions until it knows the culprits (`penstock.flow.faults`),
and sends these on instead of its output. Such a batch is not published: the culprits are set aside,
in the log, and it is computed again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from penstock.flow.attempts import fault_of
from penstock.flow.faults import Attempt, SetAside, describe_fault, find_culprits, is_fault
from penstock.pipeline.decode import Events, decode
from penstock.pipeline.fault_rows import FAST_PATH, add_fault
from penstock.pipeline.join_stage import advance_groups
from penstock.pipeline.row_stage import advance_rows
from penstock.pipeline.rows import AnyRow, RowKind, Span, StageInput, StageOutput
from penstock.pipeline.shuffle_codec import decode_changes, decode_steps
from penstock.pipeline.state import BucketState, StoredGroups, StoredRows
from penstock.pipeline.worker_index import WorkerIndex


class BucketStage(NamedTuple):
    """A stage with state: what its state is seen as, and what it does with one bucket."""

    open_store: Callable[[BucketState], Any]
    advance: Callable[..., StageOutput]


ROWS = BucketStage(StoredRows, advance_rows)
GROUPS = BucketStage(StoredGroups, advance_groups)


def decode_safely(events: Events, span: Span, view: WorkerIndex) -> StageOutput:
    """`decode`, or what is to blame if it fails."""
    bodies = dict(zip(events.offsets, events.bodies, strict=True))

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        some = Events(list(events), [bodies[one] for one in events])
        return fault_of(lambda: decode(some, span, view.attempt(subscriptions), plain=True))

    return _first_success(
        lambda plain: decode(events, span, view, plain=plain),
        lambda: _culprits(events.offsets, span, view, attempt),
        view,
    )


def advance_safely(
    stage: BucketStage, bucket: int, inbox: StageInput, state: BucketState, view: WorkerIndex
) -> StageOutput:
    """What a stage makes of its input, or what is to blame if it fails."""
    (tick,) = inbox.rows(RowKind.TICK)
    span = Span.from_bytes(tick.body)

    def advance(
        inbox: StageInput, view: WorkerIndex, plain: bool
    ) -> tuple[StageOutput, BucketState]:
        aside = state.aside()
        store = stage.open_store(aside)
        out = stage.advance(bucket, inbox, store, view, plain=plain)
        store.flush()
        return out, aside

    def take(plain: bool) -> StageOutput:
        out, changed = advance(inbox, view, plain)
        state.take(changed)
        return out

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        some = _only_events(inbox, set(events))
        return fault_of(lambda: advance(some, view.attempt(subscriptions), True))

    out = _first_success(
        take, lambda: _culprits(list(_offsets_of(inbox)), span, view, attempt), view
    )
    if not out.has_tick:  # the next stage is to get through the batch, which is not published
        out.forward(bucket, inbox, RowKind.TICK, RowKind.FAULT)
    return out


def _first_success(
    advance: Callable[[bool], StageOutput],
    culprits: Callable[[], list[SetAside]],
    view: WorkerIndex,
) -> StageOutput:
    """The output of the fast path, or of the plain one, or culprits."""
    failures: list[Exception] = []
    for plain in (False, True):
        try:
            out = advance(plain)
        except Exception as error:
            if not is_fault(error):
                raise
            failures.append(error)
        else:
            for failure in failures:
                add_fault(out, SetAside(FAST_PATH, describe_fault(failure)))
            return out
    found = culprits()
    if not found:  # it fails as a whole, and every part of it succeeds
        raise failures[-1]
    out = StageOutput(view.buckets)
    for one in found:
        add_fault(out, one)
    return out


def _culprits(
    events: Sequence[int], span: Span, view: WorkerIndex, attempt: Attempt
) -> list[SetAside]:
    return find_culprits(sorted(set(events)), view.subscriptions(span), attempt, view.suspects())


def _offsets_of(inbox: StageInput) -> Iterator[int]:
    """The events that a stage gets something of."""
    for offset, *_ in inbox.unpacked(RowKind.CHANGE, decode_changes):
        yield offset
    for _, _, steps in inbox.unpacked(RowKind.STEP, decode_steps):
        for step in steps:
            yield step.offset


def _only_events(inbox: StageInput, events: Collection[int]) -> StageInput:
    """The input of a stage, as if there were no other events."""
    changes: list[AnyRow] = [
        change for change in inbox.unpacked(RowKind.CHANGE, decode_changes) if change[0] in events
    ]
    steps: list[AnyRow] = []
    for edge, value, mine in inbox.unpacked(RowKind.STEP, decode_steps):
        some = [step for step in mine if step.offset in events]
        steps += [(edge, value, some)] if some else []
    return inbox.replaced(RowKind.CHANGE, changes).replaced(RowKind.STEP, steps)
