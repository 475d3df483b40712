"""The documents of a table as they change, with the view results that the home has extracted.

Documents come from the log, as far as batches have processed it. Which of the followed views have
rows of a document, and of which nodes, comes from the message log: nothing is matched here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from penstock.catalog import Relation, Row, RowKey, Stored
from penstock.delivery.batches import as_read
from penstock.delivery.home_views import TreeView
from penstock.errors import CompactedError
from penstock.messages import Message, SpaceFilter, decode_message
from penstock.storage import BatchHeader, Home, events_not_applied

if TYPE_CHECKING:
    from penstock.storage import Replay

_READINGS = 10
"""Each reading fails only if another compaction finishes meanwhile, which takes longer."""

DocumentKey: TypeAlias = tuple[Stored, ...]
_Rows: TypeAlias = dict[DocumentKey, dict[str, None]]
"""For each document the nodes of a view's rows."""


class DocumentChange(NamedTuple):
    """A document after a batch; None: deleted."""

    key: DocumentKey
    text: str | None
    cut: int
    found: Mapping[int, frozenset[tuple[int, ...]]]
    """For the followed views the nodes of their rows; views without information are left out."""


class HomeDocuments:
    """Takes no lock: a Hub or a pipeline may process the home meanwhile. Not thread-safe."""

    def __init__(self, home: Home, table: str, column: int) -> None:
        self._home = home
        self._table, self._column = table, column
        self._views: dict[int, TreeView] = {}
        """By space."""
        self._names: dict[int, list[int]] = {}
        """Views of a space: subscriptions with the same XMLTABLE share one."""
        self._rows: dict[int, _Rows] = {}
        """By space."""
        self._replay: Replay | None = None
        self._changed: dict[DocumentKey, str | None] = {}
        self._present: set[DocumentKey] = set()
        self._last: BatchHeader | None = None

    @property
    def cursor(self) -> int:
        return 0 if self._last is None else self._last.end

    def follow(self, views: Iterable[TreeView]) -> None:
        """Follow exactly these views. A new one is looked up in the whole message log."""
        before = self._rows
        self._views, self._names = {}, {}
        for one in views:
            self._views.setdefault(one.point.space, one)
            self._names.setdefault(one.point.space, []).append(one.id)
        self._rows = {space: before.get(space, {}) for space in self._views}
        new = set(self._views) - set(before)
        if new and self._last is not None:
            try:
                for header in self._home.messages.batches():
                    if header > self._last:
                        break
                    self._take_messages(header, new)
            except CompactedError:
                self._last = None  # everything is read again

    def new(self) -> list[DocumentChange]:
        """The changes of the batches since the last call; at first, all documents."""
        for _ in range(_READINGS):
            try:
                return self._read()
            except CompactedError:
                self._last = None
        return self._read()

    def _read(self) -> list[DocumentChange]:
        gone = self._begin() if self._last is None else set[DocumentKey]()
        found: dict[DocumentKey, DocumentChange] = {}
        for header in self._home.messages.batches(self._last):
            self._take_messages(header, self._views.keys())
            self._advance(header)
            for key, text in self._changed.items():
                found[key] = DocumentChange(key, text, header.end, {})
            self._changed.clear()
            self._last = header
        for key in gone - found.keys():
            found[key] = DocumentChange(key, None, self.cursor, {})
        return [self._completed(one) for one in found.values()]

    def _begin(self) -> set[DocumentKey]:
        """Reset; returns the documents known before."""
        gone, self._present = self._present, set()
        self._replay = None
        self._changed.clear()
        self._rows = {space: {} for space in self._views}
        return gone

    def _advance(self, header: BatchHeader) -> None:
        """Apply the records of the batch."""
        from penstock.storage import replay_tables  # lazy: loads an engine

        if self._replay is None or self._replay.end < self._home.log.compacted_to:
            is_first = self._replay is None
            self._replay = replay_tables(self._home, header.end, on_change=self._take_row)
            if not is_first:
                raise CompactedError("the log was compacted meanwhile")
            return
        self._replay.not_applied = events_not_applied(self._home)
        self._replay.advance(self._home.log, header.end)

    def _take_row(self, relation: Relation, key: RowKey, old: Row | None, new: Row | None) -> None:
        if relation.name != self._table:
            return
        before, after = (None if row is None else row[self._column] for row in (old, new))
        if before != after:
            self._changed[key] = None if after is None else str(after)

    def _take_messages(self, header: BatchHeader, spaces: Iterable[int]) -> None:
        wanted = set(spaces)
        may_pass = SpaceFilter(wanted).may_pass
        is_base = header == self._home.messages.base
        messages = [
            as_read(message, is_base=is_base)
            for data in filter(may_pass, self._home.messages.read(header))
            if (message := decode_message(data)).space in wanted
        ]
        for message in sorted(messages, key=lambda one: one.position):
            self._take(message)

    def _take(self, message: Message) -> None:
        view = self._views[message.space]
        rows = self._rows[message.space]
        key, nodes = _split_key(view, message)
        if message.upserts(view.point, view.relation):
            rows.setdefault(key, {})[nodes] = None
        elif message.removes(view.point, view.relation):
            rows.get(key, {}).pop(nodes, None)

    def _completed(self, change: DocumentChange) -> DocumentChange:
        """A change completed with the home's results for the document after the last batch."""
        if change.text is None:
            self._present.discard(change.key)
            return change
        self._present.add(change.key)
        assert self._last is not None
        found = {}
        for space in self._views:
            nodes = self._rows[space].get(change.key, {})
            # A row names the nodes that its pattern returns, in order.
            numbers = frozenset(tuple(map(int, one.split("."))) for one in nodes)
            for name in self._names[space]:
                if name < self._last.active:  # otherwise no batch has had messages for it yet
                    found[name] = numbers
        return change._replace(found=found)


def _split_key(view: TreeView, message: Message) -> tuple[DocumentKey, str]:
    """The key of the document, and the nodes of the row. A stream without a key has both in one."""
    *key, nodes = message.key
    text = str(nodes)
    if view.relation.base.key:
        return tuple(key), text
    offset, _, text = text.partition("/")
    return (int(offset),), text
