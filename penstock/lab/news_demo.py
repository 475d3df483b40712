"""News for a few hundred subscribers that feed each other, and how much that relieves the source.

The home is a Hub's, so every content is compared with what the Hub returns.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from penstock.delivery import HomeDocuments, TreeView, read_home_views, sample_documents
from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate
from penstock.documents.fast_matching import FastMatcher
from penstock.documents.patterns import TreePattern
from penstock.errors import PenstockError
from penstock.hub import Hub
from penstock.lab.memory_sites import MemorySites
from penstock.lab.workloads import news
from penstock.storage import Home
from penstock.views.coordinator import SiteCoordinator
from penstock.views.document_feed import DocumentFeed
from penstock.views.live_plan import LivePlan, LivePolicy
from penstock.views.plan_limits import PlanLimits
from penstock.views.planning_problem import UNLIMITED
from penstock.views.site_frames import encode_site_frame
from penstock.views.site_host import AT_SOURCE, Batch
from penstock.views.statistics import DocumentStatistics
from penstock.views.tree_language import TreeLanguage
from penstock.views.tree_planner import TreePlanner
from penstock.views.view_planning import PlannedViews, plan_trees

BATCH = 10
"""Documents published together."""


class Steps(Protocol):
    def step(self, what: str) -> AbstractContextManager[object]: ...


@dataclass(frozen=True, slots=True)
class Relief:
    """The work of the source per document."""

    views: int
    rows: float
    bytes: float
    milliseconds: float
    """To parse, match and extract: CPU time."""


@dataclass(frozen=True, slots=True)
class NewsDemo:
    documents: int
    document_bytes: float
    sites: int
    alone: Relief
    relieved: Relief
    busiest_site_bytes: float
    """Per document."""
    moved: int
    """Views of the failed site."""
    planned: PlannedViews
    names: Sequence[str]


def run_news_demo(
    path: Path, steps: Steps, *, views: int, documents: int, sites: int, feeds: int, seed: int
) -> NewsDemo:
    texts = news.documents(documents, seed)
    half = documents // 2
    with Hub(path) as hub:
        with steps.step(f"Subscribing {views:,} views, publishing {half:,} documents"):
            hub.execute(news.TABLE)
            for sql in news.views(views, seed):
                hub.subscribe(sql)
            _publish(hub, texts, 0, half)
        with steps.step("Planning who feeds whom"):
            network = _Network(Home.open(path), feeds)
            planned = network.begin(sites)
        with steps.step(f"Passing documents on between {sites} sites, of which one is lost"):
            lost = next(iter(network.sites.hosts))
            network.advance()
            network.sites.fail(lost)
            _publish(hub, texts, half, documents)
            network.advance()
            network.compare(hub)
    with steps.step("Measuring the source alone"):
        found = list(network.views.values())
        parsed = [parse_document(text) for text in texts]
        alone = _alone(found, parsed)
    sent = network.sites.sent
    level_one = [one for one in found if not network.coordinator.plan.feeding[one.id]]
    relieved = Relief(
        len(level_one),
        sent.rows[AT_SOURCE] / documents,
        sent.bytes[AT_SOURCE] / documents,
        _extraction_milliseconds([one.pattern for one in level_one], parsed),
    )
    busiest = max((n for name, n in sent.bytes.items() if name != AT_SOURCE), default=0)
    return NewsDemo(
        *(documents, float(np.mean([len(text) for text in texts])), sites, alone, relieved),
        *(busiest / documents, network.coordinator.moves, planned),
        [f"{one.id} {one.pattern}" for one in found],
    )


def _publish(hub: Hub, texts: Sequence[str], first: int, last: int) -> None:
    for start in range(first, last, BATCH):
        hub.apply(
            {"table": "news", "op": "insert", "row": {"id": number, "doc": texts[number]}}
            for number in range(start, min(last, start + BATCH))
        )


class _Network:
    """The sites of a demonstration, all in this process."""

    def __init__(self, home: Home, feeds: int) -> None:
        self.views: Mapping[int, TreeView] = {
            one.id: one for one in read_home_views(home).documents["news.doc"]
        }
        self._limits = PlanLimits(feeds)
        first = next(iter(self.views.values()))
        self._texts = sample_documents(home, first)
        self._documents = HomeDocuments(home, first.relation.base.name, first.table.document)
        planner = TreePlanner(DocumentStatistics.of(map(parse_document, self._texts)))
        planner.patterns = {number: one.pattern for number, one in self.views.items()}
        self._planner = planner
        self.feed = DocumentFeed()
        plan = LivePlan(TreeLanguage(), LivePolicy(feeds, UNLIMITED), planner.price)
        self.coordinator = SiteCoordinator(plan, lambda: (self.feed.epoch, self.feed.end))
        self.sites = MemorySites(self.feed, self.coordinator, 0)

    def begin(self, sites: int) -> PlannedViews:
        self.sites = MemorySites(self.feed, self.coordinator, sites)
        numbers, patterns = list(self.views), self._planner.patterns
        for number, pattern in patterns.items():
            self.feed.know(number, pattern)
        mean = float(np.mean([len(text) for text in self._texts]))
        planned = plan_trees(list(patterns.values()), self._planner.statistics, self._limits, mean)
        feeding = {
            number: tuple(numbers[one] for one in planned.plan.inputs_of(place))
            for place, number in enumerate(numbers)
        }
        self.coordinator.begin(patterns, lambda _: feeding)
        return planned

    def advance(self) -> None:
        """Read what the home has published, and propagate it to all sites."""
        self._documents.follow(self.views[one] for one in self.coordinator.plan.from_source)
        for change in self._documents.new():
            self.feed.put(change.key, change.text, change.cut, change.found)
        self.sites.settle()

    def compare(self, hub: Hub) -> None:
        """Check that every subscriber has what the Hub returns."""
        for number, cursor in self.sites.read(self.views).items():
            columns = self.views[number].columns
            told = Counter(
                visible
                for key, rows in cursor.contents.items()
                for visible in {
                    tuple(cell.id.pre for cell in row if cell.val is not None): tuple(
                        one.value(key, row) for one in columns
                    )
                    for row in rows
                }.values()
            )
            content = hub.subscription(number).content()
            if told != Counter(tuple(row.values()) for row in content):
                raise PenstockError(f"view {number} differs from what the Hub returns")


def _alone(views: Sequence[TreeView], documents: Sequence[Document]) -> Relief:
    """A source that feeds all views."""
    feed, rows, nbytes = DocumentFeed(), 0, 0
    for number, document in enumerate(documents):
        feed.put((number,), document.canonical.decode(), number)
    for view in views:
        feed.know(view.id, view.pattern)
        results = feed.read(view.id, 0, len(documents))
        rows += sum(len(one.rows or ()) for one in results)
        nbytes += len(encode_site_frame(Batch(0, tuple(results))))
    patterns = [one.pattern for one in views]
    count = len(documents)
    milliseconds = _extraction_milliseconds(patterns, documents)
    return Relief(len(views), rows / count, nbytes / count, milliseconds)


def _extraction_milliseconds(
    patterns: Sequence[TreePattern], documents: Sequence[Document]
) -> float:
    """CPU time per document: all patterns are matched at once, those that match are extracted."""
    matcher = FastMatcher(patterns)
    matcher.matching(documents[0])  # loads kernels
    began = time.process_time()
    for document in documents:
        for place in matcher.matching(document):
            evaluate(patterns[place], document)
    return 1000 * (time.process_time() - began) / len(documents)
