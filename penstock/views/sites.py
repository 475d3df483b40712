"""Sites as sans-IO nodes: results come in, the site's own results go out. No sockets, no clocks.

Documents are numbered. A site computes its view for one document after the other, each when all
that feeds it has arrived. Who feeds a site may change at a document: from there on it waits for the
new feeders. Sites keep the results of the last documents for orders that come late; what a site
missed when a feeder failed comes from the source. So nothing is lost, and as a site computes each
document once, nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import PlanError
from penstock.views.documents import Document
from penstock.views.evaluation import ResultRow, evaluate
from penstock.views.fast_matching import FastMatcher
from penstock.views.patterns import TreePattern
from penstock.views.rewriting_plan import RewritingPlan, rewriting_plan

NodeName: TypeAlias = int
"""The number of a view, which is the name of its site."""
SOURCE_NODE: NodeName = -1
RETAINED_DOCUMENTS = 1_000
"""Results that a site keeps for orders that come late."""


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a view for one document; empty ones are sent too: they say that it is done."""

    view: NodeName
    document: int
    rows: tuple[ResultRow, ...]


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
    """Whom a node sends to, and for which documents."""

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


class SiteNode:
    """The site of one view."""

    def __init__(self, name: NodeName, pattern: TreePattern, first_document: int) -> None:
        self.name = name
        self.pattern = pattern
        self.next_document = first_document
        self.delivered: list[Results] = []
        """What the subscriber was told since somebody last took it (`take_delivered`)."""
        self._assigned: list[tuple[int, tuple[NodeName, ...], RewritingPlan | None]] = []
        self._waiting: dict[int, dict[NodeName, tuple[ResultRow, ...]]] = {}
        self._kept: dict[int, Results] = {}
        self._links = _Links()

    def on_message(self, message: Message) -> Outgoing:
        """What to send, and to whom."""
        if isinstance(message, Results):
            if message.document >= self.next_document:
                self._waiting.setdefault(message.document, {})[message.view] = message.rows
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

    def _assign(self, message: Assign) -> None:
        names = tuple(name for name, _ in message.inputs)
        plan = None
        if message.inputs:
            plan = rewriting_plan(self.pattern, [pattern for _, pattern in message.inputs])
        self._assigned = [one for one in self._assigned if one[0] < message.from_document]
        self._assigned.append((message.from_document, names, plan))

    def _advance(self) -> Outgoing:
        sent: Outgoing = []
        while (rows := self._computed(self.next_document)) is not None:
            results = Results(self.name, self.next_document, tuple(rows))
            self._waiting.pop(self.next_document, None)
            self._kept[self.next_document] = results
            self._kept.pop(self.next_document - RETAINED_DOCUMENTS, None)
            self.delivered.append(results)
            sent += [(to, results) for to in self._links.wanting(self.next_document)]
            self.next_document += 1
        return sent

    def _computed(self, document: int) -> Iterable[ResultRow] | None:
        """The view's rows for a document; None while something is missing."""
        current = [one for one in self._assigned if one[0] <= document]
        if not current:
            return None
        _, names, plan = current[-1]
        arrived = self._waiting.get(document, {})
        if plan is None:
            return arrived.get(SOURCE_NODE)
        if any(name not in arrived for name in names):
            return None
        return plan.run([arrived[name] for name in names])


class SourceNode:
    """Where documents are published: it extracts the results of the views that it feeds."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self._patterns: dict[NodeName, TreePattern] = {}
        self._links = _Links()
        self._matcher: tuple[list[NodeName], FastMatcher] | None = None

    def enter(self, name: NodeName, pattern: TreePattern) -> None:
        """Make a view known, whoever feeds it."""
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
    """The orders that bring a change of the plan about, from a document on.

    `behind`: sites that lost a feeder and have not got that far, with the document they wait for.
    The source, which has all documents, feeds them until there.
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
