"""Faults in stages: the records to blame are found, so that all others can be processed.

A stage that fails in the fast gear is tried again in the plain one. If that fails, too, parts of
its input are tried for some of the subscriptions until the culprits are known
(`penstock.flow.faults`); these leave the stage in place of its output. Such a batch is not
published: the culprits are set aside, in the log, and it is computed again without them.
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
"""In place of an offset: no record is to blame, the plain gear succeeded."""


class FaultSource(IndexSource, Protocol):
    """An index that can also be asked for some of its subscriptions."""

    def attempt(self, only: Collection[int]) -> IndexSource:
        """The same with some of the subscriptions, by itself."""

    def subscriptions(self, span: Span) -> list[int]:
        """Those that take part in a batch."""

    def suspects(self) -> set[int]:
        """Subscriptions that took part in faults of events."""


class StageState(Protocol):
    """The state of one partition: a map from bytes to bytes that is stored when a batch ends."""

    def aside(self) -> Any:
        """As it was before the batch, for an attempt that may fail."""

    def take(self, other: Any) -> None:
        """Go on with what an attempt has changed."""


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
    """What some stages make of the input of the first of them; the others are not keyed, so they
    run where the first one does. `advance` brings one stage through: with a search for culprits
    (`advance_safely`) or without (`advance_gears`)."""
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
    """What a stage makes of its input, with messages encoded; or what is to blame if it fails."""
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
        if not found:  # not of records; or it fails as a whole, and every part of it succeeds
            raise
    out = StageOutput(spread)
    for one in found:
        add_fault(out, one)
    # The next stage is to get through the batch, which is not published.
    out.pass_on(given, (Kind.TICK, Kind.FAULT))
    return out


def advance_gears(
    stage: Stage, given: StageInput, state: StageState | None, source: IndexSource, spread: Spread
) -> StageOutput:
    """What a stage makes of its input in the fast gear, or, if that has a fault, in the plain one;
    with messages encoded."""
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
    """What a stage makes of its input, and the state that it leaves, which counts nowhere yet."""
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
    """The events that a stage gets something of."""
    rows = ((kind, row) for kind in _OF_EVENTS & stage.takes for row in given.unpacked(kind))
    return given.events.offsets + [offset for kind, row in rows for offset in offsets_of(kind, row)]


def _only_events(stage: Stage, given: StageInput, events: set[int]) -> StageInput:
    """The input of a stage, as if there were no other events."""
    for kind in _OF_EVENTS & stage.takes:
        some = (only_events(kind, row, events) for row in given.unpacked(kind))
        given = given.replace(kind, [row for row in some if row is not None])
    kept = [pair for pair in zip(*given.events, strict=True) if pair[0] in events]
    given = given.replace(Kind.EVENT, [])
    given.events = Events([offset for offset, _ in kept], [body for _, body in kept])
    return given


_OF_EVENTS = frozenset({Kind.CHANGE, Kind.STEP})
"""The kinds whose rows follow from single events. (Events of streams are kept as they are.)"""
