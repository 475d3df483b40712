"""The views at one site, without sockets or clocks: reads go out, answers come in.

Sites *pull*. A site requests the results of a feeder from a document on, and requests more when it
has them, so a slow site blocks nobody and a broken connection costs one request. A feeder keeps
only the last results; what it no longer has, the source computes again from its documents. A site
always gets its complete assignment (`Hosting`), so nothing depends on earlier ones.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from penstock.documents.patterns import TreePattern
from penstock.views.sites import (
    RETAINED_DOCUMENTS,
    SOURCE_NODE,
    Assign,
    NodeName,
    Results,
    SiteNode,
)

WINDOW_DOCUMENTS = 64
"""How far a site reads ahead of the document it computes: bounds what waits for a slow feeder."""
ANSWER_BYTES = 4 << 20
"""Maximum of one answer; a single document may take more."""
MAX_PARKED_READS = 100_000

AT_SOURCE = ""
"""The address of the source, to which every site is connected."""


class Read(NamedTuple):
    """Requests results of a view from a document on, at most `most`, as soon as there are some."""

    tag: int
    epoch: int
    view: NodeName
    from_document: int
    most: int


class Batch(NamedTuple):
    """The answer to a read: results of consecutive documents."""

    tag: int
    results: tuple[Results, ...]


class Gap(NamedTuple):
    """The answer to a read of results that are no longer here: they begin at `first`."""

    tag: int
    first: int


Answer: TypeAlias = Batch | Gap


@dataclass(frozen=True, slots=True)
class Hosted:
    """A view at a site, and its feeders. All sites must agree on the plan of every document, or
    they might wait for each other in a cycle; so changes that may not have been reached are
    included."""

    view: NodeName
    pattern: TreePattern
    feeding: tuple[Assign, ...]
    """In the order of documents."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """The complete assignment of a site from now on."""

    epoch: int
    """Documents are renumbered in each epoch."""
    hosted: tuple[Hosted, ...]
    places: Mapping[NodeName, str]
    """The address of the site of every view."""


@dataclass(slots=True)
class _Asked:
    address: str
    consumer: NodeName
    feeder: NodeName
    read: Read


@dataclass(slots=True)
class _Hosted:
    node: SiteNode
    told: Hosted | None = None
    gaps: dict[NodeName, int] = field(default_factory=dict)
    """Results that a feeder does not have, up to a document; they come from the source."""


class SiteHost:
    """Call `take_reads` and `take_answers` after every event. Not thread-safe."""

    def __init__(self, window: int = WINDOW_DOCUMENTS, retained: int = RETAINED_DOCUMENTS) -> None:
        self.address = ""
        """The address of this site; its views feed each other without a connection."""
        self.epoch: int | None = None
        self._window = window
        self._retained = retained
        self._hosted: dict[NodeName, _Hosted] = {}
        self._places: Mapping[NodeName, str] = {}
        self._asked: dict[int, _Asked] = {}
        self._next_tag = 1
        self._parked: list[tuple[str, Read]] = []

    @property
    def views(self) -> list[NodeName]:
        return list(self._hosted)

    @property
    def reached(self) -> int | None:
        """The document that the slowest view computes next."""
        return min((one.node.next_document for one in self._hosted.values()), default=None)

    @property
    def parked_reads(self) -> int:
        """Reads by others that wait for results."""
        return len(self._parked)

    def on_hosting(self, hosting: Hosting) -> None:
        if hosting.epoch != self.epoch:
            self.epoch = hosting.epoch
            self._hosted.clear()
            self._asked.clear()
        self._places = hosting.places
        wanted = {one.view: one for one in hosting.hosted}
        for view in [one for one in self._hosted if one not in wanted]:
            del self._hosted[view]
        for view, one in wanted.items():
            self._host(view, one)
        for asked in list(self._asked.values()):
            moved = asked.address not in (AT_SOURCE, self._places.get(asked.feeder))
            if moved or asked.consumer not in self._hosted:
                del self._asked[asked.read.tag]

    def on_answer(self, answer: Answer) -> None:
        """Unexpected answers are ignored."""
        asked = self._asked.pop(answer.tag, None)
        hosted = None if asked is None else self._hosted.get(asked.consumer)
        if asked is None or hosted is None:
            return
        if isinstance(answer, Gap):
            hosted.gaps[asked.feeder] = answer.first
            return
        for results in answer.results:
            hosted.node.on_message(replace(results, view=asked.feeder))
        hosted.node.take_delivered()

    def on_lost(self, address: str) -> None:
        """The connection to a site is lost: its outstanding reads are repeated."""
        for asked in list(self._asked.values()):
            if asked.address == address:
                del self._asked[asked.read.tag]

    def take_reads(self, unreachable: Container[str] = ()) -> list[tuple[str, Read]]:
        """The reads to send, and to whom. None is repeated while its answer is outstanding."""
        while self._feed_each_other():
            pass
        reads = []
        asked_already = {(one.consumer, one.feeder) for one in self._asked.values()}
        for view, hosted in self._hosted.items():
            for address, feeder, read in self._lacking(hosted):
                is_busy = (view, feeder) in asked_already or address in unreachable
                if is_busy or address == self.address:
                    continue
                self._asked[read.tag] = _Asked(address, view, feeder, read)
                reads.append((address, read))
        return reads

    def on_read(self, reader: str, read: Read) -> None:
        """A read by another site or reader; answered in `take_answers` when there are results.
        Reads of a view that is not here wait as well: it may be on its way, and the reader is
        informed if it is not. Above the limit the oldest reads are dropped."""
        self._parked.append((reader, read))
        if len(self._parked) > MAX_PARKED_READS:
            self._parked.pop(0)

    def drop_reader(self, reader: str) -> None:
        self._parked = [one for one in self._parked if one[0] != reader]

    def take_answers(self) -> list[tuple[str, Answer]]:
        answers: list[tuple[str, Answer]] = []
        parked: list[tuple[str, Read]] = []
        for reader, read in self._parked:
            answer = self._answer(read)
            if answer is None:
                parked.append((reader, read))
            else:
                answers.append((reader, answer))
        self._parked = parked
        return answers

    def _host(self, view: NodeName, wanted: Hosted) -> None:
        hosted = self._hosted.get(view)
        if hosted is None:
            first = wanted.feeding[0].from_document
            node = SiteNode(view, wanted.pattern, first, self._retained)
            hosted = self._hosted[view] = _Hosted(node)
        if hosted.told != wanted:
            hosted.told = wanted
            for assign in wanted.feeding:
                hosted.node.on_message(assign)
        hosted.gaps.clear()

    def _lacking(self, hosted: _Hosted) -> Iterator[tuple[str, NodeName, Read]]:
        for feeder, first, most in hosted.node.wanted(self._window):
            view, address = feeder, self._places.get(feeder, AT_SOURCE)
            if feeder == SOURCE_NODE:
                view, address = hosted.node.name, AT_SOURCE
            elif first < (gap := hosted.gaps.get(feeder, 0)):
                address, most = AT_SOURCE, min(most, gap - first)
            assert self.epoch is not None
            yield address, feeder, Read(self._next_tag, self.epoch, view, first, most)
            self._next_tag += 1

    def _feed_each_other(self) -> bool:
        """Answer reads between views of this site; returns whether there were any."""
        has_moved = False
        for view, hosted in list(self._hosted.items()):
            for address, feeder, read in list(self._lacking(hosted)):
                if address != self.address or address == AT_SOURCE:
                    continue
                answer = self._answer(read)
                if answer is not None:
                    self._asked[read.tag] = _Asked(address, view, feeder, read)
                    self.on_answer(answer)
                    has_moved = True
        return has_moved

    def _answer(self, read: Read) -> Answer | None:
        hosted = self._hosted.get(read.view)
        if hosted is None or read.epoch != self.epoch:
            return None
        if read.from_document < hosted.node.first_kept:
            return Gap(read.tag, hosted.node.first_kept)
        found = hosted.node.kept_from(read.from_document, read.most, ANSWER_BYTES)
        return Batch(read.tag, tuple(found)) if found else None
