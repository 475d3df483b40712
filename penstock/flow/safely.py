"""Faults in stages: finding the records at fault, so that all others can be processed.

A stage that fails in the fast gear is retried in the plain one. If that fails, too, parts of its
input are tried for some of the subscriptions until the records at fault are known
(`penstock.flow.faults`); these are emitted instead of its output. Such a batch is not published:
the records are set aside, in the log, and the batch is computed again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from penstock.flow.attempts import fault_of
from penstock.flow.exchange import Spread, StageInput, StageOutput
from penstock.flow.faults import SetAside, describe_fault, find_culprits, is_fault
from penstock.flow.index_source import IndexSource
from penstock.flow.kinds import Events, Kind, Span
from penstock.flow.plan import Decision, fastest_gear, plain, prepare_fast_gear
from penstock.flow.row_codec import offsets_of, only_events
from penstock.flow.stage import BatchView, Stage, advance_stage
from penstock.packing import pack

_PLAIN = plain("the fast gear has failed")

FAST_GEAR = -1
"""In place of an offset: no record is at fault, the plain gear succeeded."""


class FaultSource(IndexSource, Protocol):
    """An index source that can be restricted to some of its subscriptions."""

    def attempt(self, only: Collection[int]) -> IndexSource:
        """An independent copy with some of the subscriptions."""

    def subscriptions(self, span: Span) -> list[int]:
        """The subscriptions that are active in a batch."""

    def suspects(self) -> set[int]:
        """Subscriptions that were involved in faults of events."""


class StageState(Protocol):
    """The state of one partition: a map from bytes to bytes that is stored when a batch ends."""

    def aside(self) -> Any:
        """A copy of the state before the batch, for an attempt that may fail."""

    def take(self, other: Any) -> None:
        """Adopt the changes of an attempt."""


Source = TypeVar("Source", bound=IndexSource)
Advance: TypeAlias = Callable[[Stage, StageInput, StageState | None, Source, Spread], StageOutput]


def advance_task(
    stages: Sequence[Stage],
    given: StageInput,
    state: StageState | None,
    source: Source,
    spread: Spread,
    advance: Advance[Source],
) -> StageOutput:
    """Run the stages of a task; all but the first are not keyed, so they run where the first one
    does. `advance` runs one stage: with a search for records at fault (`advance_safely`) or without
    (`advance_gears`)."""
    out = advance(stages[0], given, state, source, spread)
    for stage in stages[1:]:
        rest = StageOutput(spread)
        for part in out.inputs(given.span).values():
            rest.extend(advance(stage, part, None, source, spread))
        out = rest
    return out


def advance_safely(
    stage: Stage, given: StageInput, state: StageState | None, source: FaultSource, spread: Spread
) -> StageOutput:
    """The output of a stage, with messages encoded; or the records at fault if it fails."""
    span = given.span

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        some, known = _only_events(stage, given, set(events)), source.attempt(subscriptions)
        return fault_of(lambda: _advance_aside(stage, some, state, known, spread, _PLAIN))

    def culprits() -> list[SetAside]:
        events = sorted(set(_offsets(stage, given)))
        return find_culprits(events, source.subscriptions(span), attempt, source.suspects())

    try:
        return advance_gears(stage, given, state, source, spread)
    except Exception as error:
        found = culprits() if is_fault(error) else []
        if not found:  # not caused by records; or only the whole input fails, no part of it
            raise
    out = StageOutput(spread)
    for one in found:
        add_fault(out, one)
    # Lets the next stage finish the batch, which is not published.
    out.pass_on(given, (Kind.TICK, Kind.FAULT))
    return out


def advance_gears(
    stage: Stage, given: StageInput, state: StageState | None, source: IndexSource, spread: Spread
) -> StageOutput:
    """The output of a stage in the fast gear or, if that has a fault, in the plain one; with
    messages encoded."""
    gear = fastest_gear()
    prepare_fast_gear(gear, given.size)
    try:
        out, changed = _advance_aside(stage, given, state, source, spread, gear)
    except Exception as error:
        if not is_fault(error) or not gear.is_fast:
            raise
        out, changed = _advance_aside(stage, given, state, source, spread, _PLAIN)
        add_fault(out, SetAside(FAST_GEAR, describe_fault(error)))
    if state is not None:
        state.take(changed)
    return out


def _advance_aside(
    stage: Stage,
    given: StageInput,
    state: StageState | None,
    source: IndexSource,
    spread: Spread,
    gear: Decision,
) -> tuple[StageOutput, Any]:
    """The output of a stage, and its new state, which is not adopted yet."""
    aside = None if state is None else state.aside()
    store = stage.open_store(aside)
    view = BatchView(source, given.span, spread, gear)
    out = advance_stage(stage, given, store, view)
    out.encode_messages()
    if store is not None:
        store.flush()
    return out, aside


def add_fault(out: StageOutput, one: SetAside) -> None:
    body = pack((one.primary, one.detail, one.suspect))
    out.add(out.spread.buckets[0], Kind.FAULT, one.offset, body)


def _offsets(stage: Stage, given: StageInput) -> list[int]:
    """The offsets of all events in the input of a stage."""
    rows = ((kind, row) for kind in _OF_EVENTS & stage.takes for row in given.unpacked(kind))
    return given.events.offsets + [offset for kind, row in rows for offset in offsets_of(kind, row)]


def _only_events(stage: Stage, given: StageInput, events: set[int]) -> StageInput:
    """The input of a stage, restricted to these events."""
    for kind in _OF_EVENTS & stage.takes:
        some = (only_events(kind, row, events) for row in given.unpacked(kind))
        given = given.replace(kind, [row for row in some if row is not None])
    kept = [pair for pair in zip(*given.events, strict=True) if pair[0] in events]
    given = given.replace(Kind.EVENT, [])
    given.events = Events([offset for offset, _ in kept], [body for _, body in kept])
    return given


_OF_EVENTS = frozenset({Kind.CHANGE, Kind.STEP})
"""The kinds whose rows result from single events. (Events of streams are stored unchanged.)"""
