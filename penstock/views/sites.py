"""Sites as sans-IO nodes: results come in, the site's own results go out. No sockets, no clocks.

Documents are numbered. A site computes its view one document after the other, each when all inputs
have arrived. The feeders of a site may change at a document: from there on it waits for the new
ones. Sites keep the results of the last documents for late orders; what a site missed when a feeder
failed comes from the source. So nothing is lost, and since a site computes each document once,
nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from penstock.catalog import Stored
from penstock.documents.document import Document
from penstock.documents.evaluation import MAX_CELLS_BYTES, MAX_RESULT_ROWS, ResultRow, evaluate
from penstock.documents.patterns import TreePattern
from penstock.errors import PlanError
from penstock.views.rewriting_plan import RewritingPlan, rewriting_plan

if TYPE_CHECKING:
    from penstock.documents.fast_matching import FastMatcher

NodeName: TypeAlias = int
"""The number of a view, which also names its site."""
SOURCE_NODE: NodeName = -1
RETAINED_DOCUMENTS = 1_000
"""Maximum number of results that a site keeps for late orders."""
RETAINED_BYTES = 16 << 20
"""Maximum bytes of the results that a site keeps for one view."""

DocumentKey: TypeAlias = tuple[Stored, ...]
"""The primary key of the document's row."""


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a view for one document; empty ones are sent too: they show that it is
    done."""

    view: NodeName
    document: int
    rows: tuple[ResultRow, ...] | None
    """None: more rows than a view may have, or the document is superseded."""
    key: DocumentKey = ()
    cut: int = 0
    """The cursor of the home after which the document was published."""
    is_superseded: bool = False
    """A later document has the same key, so this one no longer matters."""

    @property
    def nbytes(self) -> int:
        """Approximate size."""
        return 32 + sum(
            24 + len(cell.val or "") + len(cell.cont or b"")
            for row in self.rows or ()
            for cell in row
        )


class Wanted(NamedTuple):
    """Results that a site needs for its next documents."""

    feeder: NodeName
    from_document: int
    most: int


@dataclass(frozen=True, slots=True)
class Assign:
    """From a document on, compute the view from these inputs; none: the source sends results."""

    from_document: int
    inputs: tuple[tuple[NodeName, TreePattern], ...]


@dataclass(frozen=True, slots=True)
class Serve:
    """From a document on, send results to a site."""

    to: NodeName
    from_document: int


@dataclass(frozen=True, slots=True)
class Stop:
    """From a document on, no longer send results to a site."""

    to: NodeName
    from_document: int


Message: TypeAlias = Results | Assign | Serve | Stop
Outgoing: TypeAlias = list[tuple[NodeName, Message]]


class _Links:
    """The receivers of a node, and their documents."""

    def __init__(self) -> None:
        self.spans: dict[NodeName, list[list[int | None]]] = {}

    def serve(self, order: Serve) -> None:
        self.spans.setdefault(order.to, []).append([order.from_document, None])

    def stop(self, order: Stop) -> None:
        for span in self.spans.get(order.to, []):
            if span[1] is None:
                span[1] = max(span[0] or 0, order.from_document)

    def wanting(self, document: int) -> list[NodeName]:
        return [to for to in self.spans if self.wants(to, document)]

    def wants(self, to: NodeName, document: int) -> bool:
        return any(
            (first or 0) <= document and (last is None or document < last)
            for first, last in self.spans.get(to, ())
        )


@dataclass(frozen=True, slots=True)
class _Span:
    """How documents from one on are computed; without a plan, the source sends results."""

    first: int
    names: tuple[NodeName, ...]
    plan: RewritingPlan | None


class SiteNode:
    """The site of one view."""

    def __init__(
        self,
        name: NodeName,
        pattern: TreePattern,
        first_document: int,
        retained: int = RETAINED_DOCUMENTS,
    ) -> None:
        self.name = name
        self.pattern = pattern
        self.next_document = first_document
        self.delivered: list[Results] = []
        """Results for the subscriber since the last `take_delivered`."""
        self._retained = retained
        self._spans: list[_Span] = []
        self._from_source: set[int] = set()
        """Documents for which a feeder has too many results."""
        self._waiting: dict[int, dict[NodeName, Results]] = {}
        self._kept: dict[int, Results] = {}
        self._kept_bytes = 0
        self._links = _Links()

    def on_message(self, message: Message) -> Outgoing:
        """The messages to send, and to whom."""
        if isinstance(message, Results):
            if message.document >= self.next_document:
                self._waiting.setdefault(message.document, {})[message.view] = message
            return self._advance()
        if isinstance(message, Assign):
            self._assign(message)
            return self._advance()
        if isinstance(message, Serve):
            self._links.serve(message)
            return [
                (message.to, results)
                for document, results in self._kept.items()
                if document >= message.from_document
            ]
        self._links.stop(message)
        return []

    def take_delivered(self) -> list[Results]:
        taken, self.delivered = self.delivered, []
        return taken

    @property
    def first_kept(self) -> int:
        """Results before this document are no longer here, or never were."""
        return next(iter(self._kept), self.next_document)

    def kept_from(self, document: int, most: int, most_bytes: int) -> list[Results]:
        """Available results from a document on; at least one, if that document is available."""
        found: list[Results] = []
        nbytes = 0
        while len(found) < most and (results := self._kept.get(document + len(found))) is not None:
            nbytes += results.nbytes
            if found and nbytes > most_bytes:
                break
            found.append(results)
        return found

    def wanted(self, window: int) -> list[Wanted]:
        """What is missing for the next documents, as one range per feeder."""
        runs: dict[NodeName, list[int]] = {}
        for document in range(self.next_document, self.next_document + window):
            arrived = self._waiting.get(document, {})
            for name in self._feeders_at(document):
                run = runs.setdefault(name, [document, document])
                if name not in arrived and run[1] == document:
                    run[1] += 1
                elif run[0] == run[1] == document:
                    run[0] = run[1] = document + 1
        return [
            Wanted(name, first, end - first) for name, (first, end) in runs.items() if first < end
        ]

    def _assign(self, message: Assign) -> None:
        names = tuple(name for name, _ in message.inputs)
        plan = None
        if message.inputs:
            plan = rewriting_plan(self.pattern, [pattern for _, pattern in message.inputs])
        self._spans = [one for one in self._spans if one.first < message.from_document]
        self._spans.append(_Span(message.from_document, names, plan))
        while len(self._spans) > 1 and self._spans[1].first <= self.next_document:
            self._spans.pop(0)

    def _span_at(self, document: int) -> _Span | None:
        reached = [one for one in self._spans if one.first <= document]
        return reached[-1] if reached else None

    def _feeders_at(self, document: int) -> tuple[NodeName, ...]:
        span = self._span_at(document)
        if span is None:
            return ()
        if span.plan is None or document in self._from_source:
            return (SOURCE_NODE,)
        return span.names

    def _advance(self) -> Outgoing:
        sent: Outgoing = []
        while (results := self._computed(self.next_document)) is not None:
            self._waiting.pop(self.next_document, None)
            self._from_source.discard(self.next_document)
            self._keep(results)
            self.delivered.append(results)
            sent += [(to, results) for to in self._links.wanting(self.next_document)]
            self.next_document += 1
        return sent

    def _keep(self, results: Results) -> None:
        self._kept[results.document] = results
        self._kept_bytes += results.nbytes
        while len(self._kept) > self._retained or self._kept_bytes > RETAINED_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._kept_bytes -= oldest.nbytes

    def _computed(self, document: int) -> Results | None:
        """The view's results for a document; None while something is missing."""
        span, arrived = self._span_at(document), self._waiting.get(document, {})
        names = self._feeders_at(document)
        if span is None or any(name not in arrived for name in names):
            return None
        inputs = [arrived[name] for name in names]
        mine = replace(inputs[0], view=self.name)
        if span.plan is None or document in self._from_source:
            return mine
        if any(one.is_superseded for one in inputs):
            return replace(mine, rows=None, is_superseded=True)
        tables = [one.rows for one in inputs if one.rows is not None]
        if len(tables) < len(inputs):
            self._from_source.add(document)
            return self._computed(document)
        rows = span.plan.run(tables)
        mine = replace(mine, rows=tuple(rows))
        is_too_much = len(rows) > MAX_RESULT_ROWS or mine.nbytes > MAX_CELLS_BYTES
        return replace(mine, rows=None) if is_too_much else mine


class SourceNode:
    """Where documents are published: it extracts the results of the views that it feeds."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self._patterns: dict[NodeName, TreePattern] = {}
        self._links = _Links()
        self._matcher: tuple[list[NodeName], FastMatcher] | None = None

    def enter(self, name: NodeName, pattern: TreePattern) -> None:
        """Register a view, whatever feeds it."""
        self._patterns[name] = pattern
        self._matcher = None

    def on_document(self, document: Document) -> Outgoing:
        number = len(self.documents)
        self.documents.append(document)
        wanting = self._links.wanting(number)
        matching = self._matching(document, wanting)
        return [(to, self._results(to, number, to in matching)) for to in wanting]

    def on_message(self, message: Message) -> Outgoing:
        if isinstance(message, Serve):
            self._links.serve(message)
            self._matcher = None
            return [
                (message.to, self._results(message.to, number, True))
                for number in range(message.from_document, len(self.documents))
            ]
        if isinstance(message, Stop):
            self._links.stop(message)
            self._matcher = None
            return []
        raise PlanError("The source is told whom to serve, and nothing else")

    def _results(self, to: NodeName, number: int, matches: bool) -> Results:
        rows = evaluate(self._patterns[to], self.documents[number]) if matches else []
        return Results(SOURCE_NODE, number, tuple(rows))

    def _matching(self, document: Document, wanting: list[NodeName]) -> set[NodeName]:
        """All served views at once; only those that match are extracted."""
        from penstock.documents.fast_matching import FastMatcher  # lazy: a site needs no kernels

        if self._matcher is None or self._matcher[0] != wanting:
            self._matcher = (wanting, FastMatcher([self._patterns[name] for name in wanting]))
        names, matcher = self._matcher
        return {names[place] for place in matcher.matching(document)}


def changeover(
    old: Mapping[NodeName, tuple[NodeName, ...]],
    changes: Mapping[NodeName, tuple[NodeName, ...]],
    patterns: Mapping[NodeName, TreePattern],
    from_document: int,
    behind: Mapping[NodeName, int] | None = None,
) -> Outgoing:
    """The orders that implement a change of the plan, from a document on.

    `behind`: sites that lost a feeder and are not that far yet, with the document they wait for.
    The source, which has all documents, feeds them until then.
    """
    orders: Outgoing = []
    for site, inputs in changes.items():
        start = (behind or {}).get(site, from_document)
        for feeder in _feeders(old[site]) if site in old else ():
            orders.append((feeder, Stop(site, start)))
        if start < from_document:
            orders.append((SOURCE_NODE, Serve(site, start)))
            orders.append((SOURCE_NODE, Stop(site, from_document)))
            orders.append((site, Assign(start, ())))
        for feeder in _feeders(inputs):
            orders.append((feeder, Serve(site, from_document)))
        assigned = tuple((feeder, patterns[feeder]) for feeder in inputs)
        orders.append((site, Assign(from_document, assigned)))
    return orders


def _feeders(inputs: tuple[NodeName, ...]) -> tuple[NodeName, ...]:
    return inputs or (SOURCE_NODE,)
