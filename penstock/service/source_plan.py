"""The home as seen by the source of a network of views: views, plan and documents.

No sockets here; the process calls `advance` regularly and queries the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from penstock.delivery import (
    DocumentChange,
    HomeDocuments,
    TreeView,
    read_home_views,
    sample_documents,
)
from penstock.documents.document import parse_document
from penstock.documents.patterns import TreePattern
from penstock.errors import NetworkError, PlanError
from penstock.registry import Registry
from penstock.storage import Home
from penstock.views.coordinator import SiteCoordinator
from penstock.views.document_feed import DocumentFeed
from penstock.views.live_plan import Feeding, LivePlan, LivePolicy, ViewId
from penstock.views.plan_limits import PlanLimits
from penstock.views.planning_problem import UNLIMITED
from penstock.views.rewritings import spreading_limits
from penstock.views.statistics import DocumentStatistics
from penstock.views.tree_language import TreeLanguage
from penstock.views.tree_planner import TreePlanner
from penstock.views.view_planning import plan_trees

REPLAN_AFTER_ADDITIONS = 50
MAX_DOCUMENT_BYTES = 4 << 30
"""Maximum of all documents together: the source has them in memory."""


class SourcePlan:
    """The views over one column of documents. Not thread-safe."""

    def __init__(self, home: Home, documents: str | None, limits: PlanLimits) -> None:
        self._home = home
        self._column, view = _chosen_column(home, documents)
        self._place = (view.relation.base.name, view.table.document)
        self._limits = limits
        self._registry = Registry(home)
        self._seen_to = self._registry.applied
        self._documents: HomeDocuments | None = None
        self._nbytes = 0
        self._put_off_to = 0
        self.feed = DocumentFeed()
        self.views: dict[ViewId, TreeView] = {}
        self.feeds: dict[str, int] = {}
        """How many others a view may feed, by the address of its site."""
        self.is_planned = False
        self._planner = TreePlanner(DocumentStatistics())
        self._mean_bytes = self._planner.model.document_bytes
        policy = LivePolicy(
            UNLIMITED if limits.feeds is None else limits.feeds,
            UNLIMITED if limits.source is None else limits.source,
            spreading_limits(limits.rewritings),
            REPLAN_AFTER_ADDITIONS,
        )
        plan = LivePlan(TreeLanguage(), policy, self._planner.price, self._capacity_of)
        self.coordinator = SiteCoordinator(plan, lambda: (self.feed.epoch, self.feed.end))

    def begin(self) -> None:
        """Read views and documents, and plan."""
        found = read_home_views(self._home).documents.get(self._column, [])
        self._measure(found)
        for one in found:
            self._know(one)
        self.coordinator.begin({one.id: one.pattern for one in found}, self.full_plan)
        self._documents = HomeDocuments(self._home, *self._place)
        self._documents.follow(self._level_one())
        for change in self._documents.new():
            self._put(change)
        # No site has got anything so far, so everything begins with the first document.
        self.coordinator.start_anew()
        self.is_planned = True

    def advance(self) -> None:
        """Look for new documents and views."""
        assert self._documents is not None
        epoch = self.feed.epoch
        for change in self._documents.new():
            self._put(change)
        self._follow_registry()
        self._documents.follow(self._level_one())
        if self.feed.epoch != epoch:
            self.coordinator.start_anew()

    @property
    def is_replanning_due(self) -> bool:
        plan = self.coordinator.plan
        return plan.is_replanning_due() and plan.additions >= self._put_off_to

    def put_off_replanning(self) -> None:
        """No full plan exists within the limits: try again when there are more views."""
        self._put_off_to = self.coordinator.plan.additions + REPLAN_AFTER_ADDITIONS

    def full_plan(self, views: Mapping[ViewId, TreePattern]) -> Feeding:
        """The best plan for some views; PlanError if there is none within the limits."""
        numbers = list(views)
        planned = plan_trees(
            *(list(views.values()), self._planner.statistics, self._limits, self._mean_bytes),
            np.array([self._capacity_of(one) for one in numbers], np.int64),
        )
        return {
            number: tuple(numbers[one] for one in planned.plan.inputs_of(place))
            for place, number in enumerate(numbers)
        }

    def adopt(self, feeding: Feeding) -> None:
        """Adopt a full plan, unless views were added or removed since it was requested."""
        if feeding.keys() == self.coordinator.plan.views.keys():
            self.coordinator.adopt_plan(feeding)
            self._put_off_to = 0

    def state(self) -> dict[str, object]:
        plan = self.coordinator.plan
        return {
            "is_planned": self.is_planned,
            "views": len(plan.views),
            "fed_by_source": len(plan.from_source),
            "documents": self.feed.end,
            "moves": self.coordinator.moves,
            "extracted_by_home": self.feed.extracted_by_home,
            "extracted_here": self.feed.extracted_here,
        }

    def close(self) -> None:
        self._registry.close()

    def _capacity_of(self, view: ViewId) -> int:
        """The limit of the view's site, if it is lower than the general one."""
        own = self.feeds.get(self.coordinator.place_of(view) or "", UNLIMITED)
        return min(own, self.coordinator.plan.policy.capacity)

    def _measure(self, views: list[TreeView]) -> None:
        texts = sample_documents(self._home, views[0]) if views else []
        for text in texts:
            self._planner.statistics.add(parse_document(text))
        if texts:
            self._mean_bytes = sum(map(len, texts)) / len(texts)

    def _know(self, view: TreeView) -> None:
        self.views[view.id] = view
        self.feed.know(view.id, view.pattern)
        self._planner.patterns[view.id] = view.pattern

    def _level_one(self) -> Iterable[TreeView]:
        return [self.views[one] for one in self.coordinator.plan.from_source if one in self.views]

    def _put(self, change: DocumentChange) -> None:
        before = self.feed.text_of(change.key)
        if before == change.text:
            return  # as after a compaction, when everything is read again
        self._nbytes += len(change.text or "") - len(before or "")
        if self._nbytes > MAX_DOCUMENT_BYTES:
            raise NetworkError(
                "the documents of the home do not fit into the memory of a source",
                detail=f"limit: {MAX_DOCUMENT_BYTES:,} bytes",
            )
        self.feed.put(change.key, change.text, change.cut, change.found)

    def _follow_registry(self) -> None:
        """Add new views of the home, and remove withdrawn ones."""
        self._registry.catch_up()
        high = self._registry.applied
        if high == self._seen_to:
            return
        changes = self._registry.changes_between(self._seen_to, high)
        self._seen_to = high
        for one in changes.withdrawn:
            if self.views.pop(one.id, None) is not None:
                self.coordinator.withdraw(one.id)
                self.feed.forget(one.id)
        if changes.added:
            for view in read_home_views(self._home).documents.get(self._column, []):
                if view.id not in self.views:
                    self._add(view)

    def _add(self, view: TreeView) -> None:
        self._know(view)
        self.coordinator.add(view.id, view.pattern)


def _chosen_column(home: Home, wanted: str | None) -> tuple[str, TreeView]:
    """TABLE.COLUMN, and one of the views over it."""
    columns = read_home_views(home).documents
    chosen = next(iter(columns)) if wanted is None and len(columns) == 1 else wanted
    if chosen in columns:
        return chosen, columns[chosen][0]
    if not columns:
        raise PlanError(
            "The home has no views",
            hint="a view is a subscription with XMLTABLE and no further condition",
        )
    raise PlanError(
        "Which documents?" if wanted is None else f"There are no views over {wanted}",
        hint=f"give --documents {' or '.join(columns)}",
    )
