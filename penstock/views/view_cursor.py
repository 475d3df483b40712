"""A subscriber of a view: reads its results from the view's site, document by document.

When the view moves, or its site no longer has the next results, the reader continues from the same
document elsewhere; so nothing is lost or repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.documents.evaluation import ResultRow
from penstock.views.site_host import AT_SOURCE, Answer, Gap, Read
from penstock.views.sites import DocumentKey, NodeName, Results

READ_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The rows of one document before and after it changed."""

    cut: int
    key: DocumentKey
    before: tuple[ResultRow, ...]
    after: tuple[ResultRow, ...]


class ViewCursor:
    """The content of a view, without sockets. Not thread-safe."""

    def __init__(self, view: NodeName) -> None:
        self.view = view
        self.next_document = 0
        self.contents: dict[DocumentKey, tuple[ResultRow, ...]] = {}
        """For each document its rows, if there are any."""
        self._epoch: int | None = None
        self._place: str | None = None
        self._gap = 0
        self._asked: tuple[str, Read] | None = None
        self._tag = 0
        self._unconfirmed: set[DocumentKey] = set()
        """Documents of an earlier epoch that have not been read in this one."""
        self._epoch_began_with = 0

    def locate(self, place: str | None, epoch: int, end: int) -> None:
        """Set where the view is now (None: at no site, so the source serves), and the number of
        documents."""
        if epoch != self._epoch:
            self._epoch, self.next_document = epoch, 0
            self._unconfirmed, self._epoch_began_with = set(self.contents), end
            self._asked, self._gap = None, 0
        if place != self._place:
            self._place, self._gap = place, 0
            if self._asked is not None and self._asked[0] != AT_SOURCE:
                self._asked = None

    def take_reads(self) -> list[tuple[str, Read]]:
        """The reads to send, and to whom."""
        if self._asked is not None or self._epoch is None:
            return []
        most, address = READ_DOCUMENTS, AT_SOURCE
        if self._place is not None and self.next_document >= self._gap:
            address = self._place
        elif self._gap:
            most = min(most, self._gap - self.next_document)
        self._tag += 1
        read = Read(self._tag, self._epoch, self.view, self.next_document, most)
        self._asked = (address, read)
        return [self._asked]

    def on_lost(self, address: str) -> None:
        """A connection is lost: its outstanding reads are repeated."""
        if self._asked is not None and self._asked[0] == address:
            self._asked = None

    def on_answer(self, answer: Answer) -> list[ViewChange]:
        """The changes; answers to cancelled reads change nothing."""
        if self._asked is None or answer.tag != self._asked[1].tag:
            return []
        self._asked = None
        if isinstance(answer, Gap):
            self._gap = answer.first
            return []
        changes = [one for results in answer.results for one in self._take(results)]
        if self._unconfirmed and self.next_document >= self._epoch_began_with:
            gone, self._unconfirmed = self._unconfirmed, set()
            changes += [
                ViewChange(0, key, self.contents.pop(key), ()) for key in sorted(gone, key=repr)
            ]
        return changes

    def _take(self, results: Results) -> list[ViewChange]:
        if results.document != self.next_document:
            return []
        self.next_document += 1
        if results.is_superseded:
            return []
        self._unconfirmed.discard(results.key)
        before, after = self.contents.pop(results.key, ()), results.rows or ()
        if after:
            self.contents[results.key] = after
        if before == after:
            return []
        return [ViewChange(results.cut, results.key, before, after)]
