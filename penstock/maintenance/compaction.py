"""Compaction: `docs/notes/compaction.md` says how, and why it is safe.

Every step is one rename, after which the old files are no longer read; any later holder of the
processing lock can delete them. So a crash at any point leaves a valid home that is compacted a
little less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import filterfalse, islice

from penstock.catalog.derived import is_extended, mentions_derived
from penstock.catalog.unnested import is_unnested, mentions_unnested
from penstock.client import BEGINNING, Initial
from penstock.delivery import CursorState, DurableCursors
from penstock.errors import HomeError, SubscriptionError
from penstock.flow.changes import Change, Op
from penstock.flow.engine import Engine
from penstock.flow.events import encode_change
from penstock.garbage import without_garbage
from penstock.joins import Family
from penstock.joins.scheme_registry import compacting_scheme
from penstock.maintenance.file_sizes import files_below, total_bytes
from penstock.maintenance.findings import Step
from penstock.messages import (
    EVERYONE,
    Message,
    Position,
    SpaceFilter,
    decode_message,
    encode_messages,
    has_partner,
    may_reach_anyone,
)
from penstock.pipeline.checkpoint import check_home, replayed_from
from penstock.registry import HomeOperators, Registry
from penstock.spaces import Space
from penstock.storage import (
    BatchHeader,
    Home,
    Replay,
    compacted_segment,
    events_not_applied,
    home_family,
)

EVENTS_AT_ONCE = 10_000

_BEFORE_ALL = -1


@dataclass(frozen=True, slots=True)
class Compaction:
    """What was done."""

    offset: int
    """Clients that start from nothing start with the content here."""
    log_offset: int
    """The log is compacted up to here: the start of the last segment not beyond `offset`."""
    bytes_before: int
    bytes_after: int
    held_back_by: str
    """What prevented further compaction; empty if nothing did."""


def compact(
    home: Home, step: Step, *, to: int | None = None, past_cursors: bool = False
) -> Compaction:
    """Compact everything before offset `to`, or as much as possible: without what durable cursors
    still need, unless `past_cursors`.

    LockedError while a Hub or a pipeline processes the home. Publishers and readers are not
    blocked.
    """
    with home.processing_lock("compact"):
        check_home(home)
        before = _size(home)
        header, held_back_by = _last_batch(home, to, past_cursors=past_cursors)
        if header is not None:
            with without_garbage():
                _compact(home, header, step)
        base = home.messages.base
        return Compaction(
            0 if base is None else base.end,
            home.log.compacted_to,
            before,
            _size(home),
            held_back_by,
        )


def _last_batch(
    home: Home, to: int | None, *, past_cursors: bool
) -> tuple[BatchHeader | None, str]:
    """The last batch that can be compacted, and what keeps the next one."""
    frontier = home.messages.frontier
    if frontier is None:
        return None, "nothing has been processed"
    limit, held_back_by = frontier.end, ""
    replayed = replayed_from(home.checkpoint)
    if replayed is not None and replayed < limit:
        limit = replayed
        held_back_by = f"the pipeline goes on at offset {replayed}: run it first"
    if to is not None and to < limit:
        limit, held_back_by = to, f"only up to offset {to} was asked for"
    slowest = None if past_cursors else _slowest_cursor(home)
    if slowest is not None and _needed_from(slowest) < limit:
        limit = _needed_from(slowest)
        held_back_by = (
            f"cursor {slowest.name} of subscription {slowest.subscription} is at {slowest.cursor}: "
            "deliver it, remove it (penstock cursors), or compact with --past-cursors"
        )
    # A batch without records may switch decompositions after its own messages; a base may not.
    found = None
    for header in home.messages.batches():
        if header.start < header.end <= limit:
            found = header
    return found, held_back_by


def _slowest_cursor(home: Home) -> CursorState | None:
    """The durable cursor that needs most. Cursors of ended subscriptions need nothing; those of
    subscriptions with content and without deliveries so far start from the base."""
    needed = []
    states = DurableCursors(home).all()
    with Registry(home) as registry:
        for state in states:
            try:
                stored = registry.subscription(state.subscription)
            except SubscriptionError:
                continue
            if state.cursor != BEGINNING or stored.initial is not Initial.CONTENT:
                needed.append(state)
    return min(needed, key=_needed_from, default=None)


def _needed_from(state: CursorState) -> int:
    """A subscription needs nothing from before its own record."""
    return max(state.cursor, state.subscription)


def _compact(home: Home, header: BatchHeader, step: Step) -> None:
    """Replace everything up to a batch. The log is replayed once, for the log and the messages."""
    family = home_family(home)
    replay, segment = Replay(not_applied=events_not_applied(home)), None
    log_end = _last_segment(home, header)
    with step("replaying the log") as advance:
        if log_end > home.log.compacted_to:
            replay.advance(home.log, log_end, lambda end: advance(end, header.end))
            segment = compacted_segment(home.log, replay)
        if home.messages.base != header:
            replay.advance(home.log, header.end, lambda end: advance(end, header.end))
    if home.messages.base != header:
        with step("reading messages") as advance:
            tables = {Space(relation.name).id for relation in replay.engine.catalog}
            _check_messages(home, header, family, tables, lambda end: advance(end, header.end))
        with (
            step("writing contents as messages"),
            Registry(home) as registry,
            closing(HomeOperators(registry.catalog, home.path)) as operators,
        ):
            replay.engine.operators = lambda: operators.runtime
            messages = base_messages(registry, replay.engine, header, family)
            home.messages.write_base(header, messages)
    home.messages.sweep(home.log.compacted_to)
    if segment is not None:
        home.log.replace_beginning(segment)


def _last_segment(home: Home, header: BatchHeader) -> int:
    """The start of the last segment that is not beyond the batch: what is before it can be
    rewritten."""
    if home.log.end == header.end:
        home.log.roll()
    return max(first for first in home.log.segment_firsts() if first <= header.end)


def _check_messages(
    home: Home,
    last: BatchHeader,
    family: Family,
    tables: Collection[int],
    on_end: Callable[[int], None],
) -> None:
    """Batches must be intact before they are replaced, and of the family of schemes recorded in the
    home: releases that did not record it let any scheme process a home. `tables`: the spaces of
    tables, which are the same in all families."""
    derived: set[int] | None = None  # the same for derived columns: slow to compute
    for header in home.messages.batches():
        if header > last:
            return
        for data in _without_spaces(home.messages.read(header), tables):
            if not _tells_other_family(data, family, tables):
                continue
            if derived is None:
                derived = _derived_spaces(home, last)
            if decode_message(data).space not in derived:
                raise HomeError(
                    f"batch {header} was not made by a scheme that sends {family}",
                    detail="several schemes have processed the home, or it does not say which, and "
                    "clients of one cannot start from a base of another",
                    hint="it cannot be compacted: publish its tables into a new home",
                )
        on_end(header.end)


def _derived_spaces(home: Home, header: BatchHeader) -> set[int]:
    """The spaces of subscriptions, withdrawn ones included, with derived columns of one table or
    rows extracted from its documents."""
    with Registry(home) as registry:
        catalog = registry.catalog()
        stored = registry.changes_between(0, header.end).added
        may_be = (
            one for one in stored if mentions_derived(one.plan) or mentions_unnested(one.plan)
        )
        queries = [one.query(catalog) for one in may_be]
    names = {query.nodes[0].relation.name for query in queries if len(query.nodes) == 1}
    return {Space(name).id for name in names if is_extended(name) or is_unnested(name)}


def _without_spaces(messages: Iterable[bytes], spaces: Collection[int]) -> Iterator[bytes]:
    """Messages without those of some spaces, and possibly without a few others."""
    return filterfalse(SpaceFilter(spaces).may_pass, messages)


def _tells_other_family(data: bytes, family: Family, tables: Collection[int]) -> bool:
    """Whether only a scheme of another family sends such a message to subscriptions over several
    tables."""
    if not has_partner(data) and not may_reach_anyone(data):
        return False
    message = decode_message(data)
    if message.space in tables:
        return False
    if message.partner is not None:
        return family is not Family.JOIN_ROWS
    if EVERYONE in (message.upsert, message.remove):
        return family is not Family.SELECTIONS
    return False


def base_messages(
    registry: Registry, tables: Engine, header: BatchHeader, family: Family
) -> list[bytes]:
    """Messages that lead every client from nothing to its content at the end of a batch.

    They are the initial contents of all active subscriptions as of now, by regions (if the family
    of schemes describes them so), else the messages of inserting all rows now; so their number
    depends on the rows, not on the subscribers. They have the last offset of the batch, and no
    subscription in it began later.
    """
    is_by_regions = family is Family.SEMIJOINS
    engine = tables if is_by_regions else _without_rows(tables, family)
    changes = registry.changes_between(0, header.active)
    moved = {replan.subscription: replan.decomposition for replan in changes.replanned}
    for stored in registry.subscriptions(header.active):
        if stored.initial is not Initial.NONE:  # others have no content
            chosen = moved.get(stored.id, stored.decomposition)
            engine.enrol(stored.id, stored.query(engine.catalog), chosen)
    found = engine.contents(header.end - 1) if is_by_regions else _inserted(engine, tables, header)
    numbered = (
        message._replace(position=Position(header.end - 1, number))
        for number, message in enumerate(found)
    )
    return [data for _, _, encoded in encode_messages(numbered) for data in encoded]


def _without_rows(tables: Engine, family: Family) -> Engine:
    """An engine with the same tables, but empty."""
    engine = Engine(compacting_scheme(family))
    engine.operators = tables.operators
    for declared in (*tables.catalog, *tables.catalog.operators.values()):
        engine.catalog.add(declared, _BEFORE_ALL)
    return engine


def _inserted(engine: Engine, tables: Engine, header: BatchHeader) -> Iterator[Message]:
    """The messages of an engine if all rows of the tables are inserted into it."""
    inserts = _inserts(tables, header.end)
    while some := list(islice(inserts, EVENTS_AT_ONCE)):
        yield from engine.events(some).messages


def _inserts(tables: Engine, offset: int) -> Iterator[tuple[int, bytes]]:
    for relation in tables.catalog:
        for key, row in tables.rows.rows(relation):
            body = encode_change(Change(relation.name, Op.INSERT, relation.show_row(row)))
            # A row of a stream without a key is identified by the offset of its event.
            yield offset if relation.key else int(key[0]), body


def _size(home: Home) -> int:
    directories = (home.log.directory, home.messages.directory)
    return sum(total_bytes(files_below(directory)) for directory in directories)
