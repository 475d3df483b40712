"""Which view is at which site and who feeds whom, as views and sites are added and removed.

Without sockets or clocks: operations change the plan from a document on, `hosting_of` returns what
a site does now. Until that document the old plan is in use. The plan belongs to the views; when a
site fails, its views are withdrawn (those that they fed get new feeders, at least cost within the
limits) and added again at the remaining sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.documents.patterns import TreePattern
from penstock.errors import PlanError, SubscriptionError
from penstock.views.live_plan import Inputs, LivePlan, ViewId
from penstock.views.site_host import Hosted, Hosting
from penstock.views.sites import Assign

MAX_SITES = 1_000
MAX_CHANGES = 16
"""Maximum number of changes of a view's feeders that are kept until its site has reached them; the
source replaces the feeders of older ones."""


@dataclass(frozen=True, slots=True)
class _Feeding:
    from_document: int
    inputs: Inputs


def _shortened(changes: Sequence[_Feeding]) -> list[_Feeding]:
    kept = list(changes)
    while len(kept) > MAX_CHANGES:
        kept[:2] = [_Feeding(kept[0].from_document, ())]
    return kept


class SiteCoordinator:
    """`documents` returns the epoch and the number of the next document. Not thread-safe."""

    def __init__(
        self,
        plan: LivePlan[TreePattern],
        documents: Callable[[], tuple[int, int]],
        replan: Callable[[], Mapping[ViewId, Inputs]] | None = None,
    ) -> None:
        """`replan` adopts a full plan; it is called when one is due."""
        self.plan = plan
        self.version = 0
        """Incremented by every change that sites must be sent."""
        self.moves = 0
        """Views that were moved because their site failed."""
        self._documents = documents
        self._replan = replan
        self._sites: dict[str, str] = {}
        self._place: dict[ViewId, str] = {}
        self._homeless: dict[ViewId, TreePattern] = {}
        """Views added while there was no site."""
        self._feeding: dict[ViewId, list[_Feeding]] = {}

    @property
    def sites(self) -> list[str]:
        return list(self._sites)

    def place_of(self, view: ViewId) -> str | None:
        """The address of a view's site, if it has one."""
        site = self._place.get(view)
        return None if site is None else self._sites[site]

    def join(self, site: str, address: str) -> None:
        """A site joins, or rejoins at another address."""
        if site not in self._sites and len(self._sites) >= MAX_SITES:
            raise PlanError(f"There are {MAX_SITES:,} sites already")
        if self._sites.get(site) != address:
            self._sites[site] = address
            self.version += 1
        homeless, self._homeless = self._homeless, {}
        for view, pattern in homeless.items():
            self._add(view, pattern)

    def leave(self, site: str) -> None:
        """A site has failed: its views are moved."""
        if self._sites.pop(site, None) is None:
            return
        lost = [view for view, place in self._place.items() if place == site]
        patterns = {view: self.plan.views[view] for view in lost}
        self._withdraw(*lost)
        self.moves += len(lost)
        for view, pattern in patterns.items():
            self._add(view, pattern)
        self.version += 1

    def add(self, view: ViewId, pattern: TreePattern) -> None:
        self._add(view, pattern)
        self._replan_if_due()

    def begin(
        self,
        views: Mapping[ViewId, TreePattern],
        full_plan: Callable[[Mapping[ViewId, TreePattern]], Mapping[ViewId, Inputs]],
    ) -> None:
        """Spread many views over the sites, and plan all of them together."""
        for view in views:
            self._place[view] = self._least_loaded()
        self._adopt(self.plan.load(views, full_plan(views)))

    def withdraw(self, view: ViewId) -> None:
        if self._homeless.pop(view, None) is None:
            self._withdraw(view)
        self._replan_if_due()

    def adopt_plan(self, feeding: Mapping[ViewId, Inputs]) -> None:
        """Adopt a full plan of the current views."""
        self._adopt(self.plan.replan(lambda _views, _policy: feeding))

    def hosting_of(self, site: str) -> Hosting:
        """The current assignment of a site."""
        if site not in self._sites:
            raise SubscriptionError(f"There is no site {site}")
        epoch, _ = self._documents()
        hosted = tuple(
            self._hosted(view) for view, place in sorted(self._place.items()) if place == site
        )
        places = {view: self._sites[place] for view, place in self._place.items()}
        return Hosting(epoch, hosted, places)

    def on_reached(self, site: str, document: int) -> None:
        """All views of a site have computed the documents before this one."""
        for view, place in self._place.items():
            changes = self._feeding[view]
            while place == site and len(changes) > 1 and changes[1].from_document <= document:
                changes.pop(0)

    def start_anew(self) -> None:
        """Documents are renumbered: every site starts with the first."""
        self._feeding = {
            view: [_Feeding(0, changes[-1].inputs)] for view, changes in self._feeding.items()
        }
        self.version += 1

    def _hosted(self, view: ViewId) -> Hosted:
        feeding = tuple(self._assign(one) for one in self._feeding[view])
        return Hosted(view, self.plan.views[view], feeding)

    def _assign(self, feeding: _Feeding) -> Assign:
        """The source replaces feeders that are gone."""
        known = self.plan.views
        inputs = feeding.inputs if known.keys() >= set(feeding.inputs) else ()
        return Assign(feeding.from_document, tuple((one, known[one]) for one in inputs))

    def _add(self, view: ViewId, pattern: TreePattern) -> None:
        if view in self._homeless or view in self._place:
            raise SubscriptionError(f"The view {view} exists already")
        if not self._sites:
            self._homeless[view] = pattern
            return
        self._place[view] = self._least_loaded()
        self._adopt(self.plan.add(view, pattern, is_emergency=True))

    def _withdraw(self, *views: ViewId) -> None:
        changes = self.plan.withdraw(*views)
        for view in views:
            del self._place[view], self._feeding[view]
        self._adopt(changes)

    def _adopt(self, changes: Mapping[ViewId, Inputs]) -> None:
        _, start = self._documents()
        for view, inputs in changes.items():
            earlier = [one for one in self._feeding.get(view, ()) if one.from_document < start]
            self._feeding[view] = _shortened([*earlier, _Feeding(start, inputs)])
        self.version += 1

    def _replan_if_due(self) -> None:
        if self._replan is not None and self.plan.is_replanning_due() and self.plan.views:
            self._adopt(self._replan())

    def _least_loaded(self) -> str:
        """The site with the fewest views."""
        loads = dict.fromkeys(self._sites, 0)
        for place in self._place.values():
            loads[place] += 1
        return min(loads, key=lambda site: (loads[site], site))
