"""A reader of one view: asks the source where the view is, and reads from that site.

After a lost connection, or when the view moves, it continues from the same document.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import NamedTuple, TypeAlias

from penstock.delivery import ShownColumn
from penstock.documents.evaluation import ResultRow
from penstock.errors import NetworkError, SubscriptionError
from penstock.service.addresses import Address
from penstock.service.connections import FinalError, connect, greet_listener
from penstock.service.site_peers import OutgoingPeers, receive_frame, send_frame
from penstock.service.tokens import NO_TOKEN
from penstock.views.site_frames import AskState, Locate, Located, SiteFrame, State
from penstock.views.site_host import AT_SOURCE, Batch, Gap, Read
from penstock.views.sites import DocumentKey
from penstock.views.view_cursor import ViewChange, ViewCursor

LOCATE_SECONDS = 0.5
"""Interval of locating the view: it may have moved while its site seems alive."""
ANSWER_SECONDS = 30.0

VisibleRow: TypeAlias = dict[str, object]


class ViewNews(NamedTuple):
    """The changes for the subscriber with one document."""

    cut: int
    key: DocumentKey
    gone: list[VisibleRow]
    come: list[VisibleRow]


class ViewReader:
    """Iterate over `news()`. Use from one event loop."""

    def __init__(
        self,
        source: Address,
        view: int,
        *,
        token: bytes = NO_TOKEN,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = str(source)
        self._cursor = ViewCursor(view)
        self._located: Located | None = None
        self._changes: list[ViewChange] = []
        self._has_moved = asyncio.Event()
        self._name = secrets.token_hex(8)
        self._peers = OutgoingPeers(
            *(self._name, token, self._on_frame, self._on_link, on_trouble), role="reader"
        )

    @property
    def next_document(self) -> int:
        return self._cursor.next_document

    def contents(self) -> dict[DocumentKey, tuple[ResultRow, ...]]:
        """For each document the rows of the view, with the ids of all nodes."""
        return dict(self._cursor.contents)

    def rows(self) -> list[VisibleRow]:
        """The result of the subscription."""
        found = []
        for key, rows in self._cursor.contents.items():
            found += self._visible(key, rows)
        return found

    async def news(self, *, follow: bool = True) -> AsyncGenerator[ViewNews]:
        """The changes of each document; without `follow`, up to the last one available."""
        locating: asyncio.Future[object] = asyncio.ensure_future(self._locate())
        end: int | None = None
        try:
            while True:
                self._has_moved.clear()
                changes, self._changes = self._changes, []
                for change in changes:
                    yield self._shown(change)
                if self._located is not None and self._located.is_known and end is None:
                    end = self._located.end
                if not follow and end is not None and self._cursor.next_document >= end:
                    if not self._changes:
                        return
                    continue
                self._ask()
                await self._wait(locating)
        finally:
            locating.cancel()
            self._peers.close_all_but(set())

    async def _wait(self, locating: asyncio.Future[object]) -> None:
        """Wait until something has arrived, or locating has failed."""
        moved: asyncio.Future[object] = asyncio.ensure_future(self._has_moved.wait())
        await asyncio.wait([moved, locating], return_when=asyncio.FIRST_COMPLETED)
        moved.cancel()
        if locating.done():
            locating.result()

    async def _locate(self) -> None:
        """Keep asking where the view is."""
        while True:
            source = self._peers.connect_to(self._source)
            if source.failure is not None:
                raise source.failure
            source.send(Locate(self._cursor.view))
            located = self._located
            if located is not None and located.is_planned and not located.is_known:
                raise SubscriptionError(
                    f"there is no view {self._cursor.view} in this network",
                    hint="penstock views plan HOME lists them",
                )
            await asyncio.sleep(LOCATE_SECONDS)

    def _ask(self) -> None:
        for address, read in self._cursor.take_reads():
            if not self._send(address, read):
                self._cursor.on_lost(address)

    def _send(self, address: str, read: Read) -> bool:
        return self._peers.connect_to(address or self._source).send(read)

    def _on_frame(self, frame: SiteFrame) -> None:
        if isinstance(frame, Located):
            self._located = frame
            if frame.is_known:
                self._cursor.locate(frame.place, frame.epoch, frame.end)
                used = {self._source, *([frame.place] if frame.place else [])}
                self._peers.close_all_but(used)
        elif isinstance(frame, Batch | Gap):
            self._changes += self._cursor.on_answer(frame)
        else:
            raise NetworkError(f"{type(frame).__name__} from a site")
        self._has_moved.set()

    def _on_link(self, address: str, is_there: bool) -> None:
        if not is_there:
            self._cursor.on_lost(AT_SOURCE if address == self._source else address)
        self._has_moved.set()

    def _shown(self, change: ViewChange) -> ViewNews:
        before, after = (self._keyed(change.key, rows) for rows in (change.before, change.after))
        return ViewNews(
            change.cut,
            change.key,
            [row for one, row in before.items() if after.get(one) != row],
            [row for one, row in after.items() if before.get(one) != row],
        )

    def _visible(self, key: DocumentKey, rows: Iterable[ResultRow]) -> list[VisibleRow]:
        return list(self._keyed(key, rows).values())

    def _keyed(
        self, key: DocumentKey, rows: Iterable[ResultRow]
    ) -> dict[tuple[int, ...], VisibleRow]:
        """One row for each combination of the returned nodes."""
        assert self._located is not None
        columns = [ShownColumn.of_plain(*one) for one in self._located.columns]
        found: dict[tuple[int, ...], VisibleRow] = {}
        for row in rows:
            nodes = tuple(cell.id.pre for cell in row if cell.val is not None or cell.cont)
            if nodes not in found:
                found[nodes] = {one.label: one.value(key, row) for one in columns}
        return found


async def ask_state(source: Address, token: bytes = NO_TOKEN) -> dict[str, object]:
    """The state of a network of views."""
    connection = await connect(source)
    with contextlib.closing(connection):
        try:
            await greet_listener(connection, "reader", secrets.token_hex(8), token)
            send_frame(connection, AskState())
            async with asyncio.timeout(ANSWER_SECONDS):
                while not isinstance(frame := await receive_frame(connection), State):
                    pass
        except FinalError as refused:
            raise refused.error from None
        except (ConnectionError, TimeoutError) as error:
            raise NetworkError(f"{source} does not answer", detail=str(error)) from None
    if not isinstance(frame.members, dict):
        raise NetworkError(f"{source} sent a state that cannot be one")
    return frame.members
