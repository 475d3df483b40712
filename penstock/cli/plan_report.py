"""Output of `penstock views plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.cli.output import Output, count, size
from penstock.delivery import (
    Selection,
    TreeView,
    read_home_views,
    sample_documents,
    sample_rows,
)
from penstock.documents.document import parse_document
from penstock.errors import PlanError
from penstock.storage import Home
from penstock.views.box_language import BoxLanguage
from penstock.views.plan_limits import PlanLimits
from penstock.views.plan_picture import plan_svg
from penstock.views.rewriting_plan import rewriting_plan
from penstock.views.statistics import DocumentStatistics
from penstock.views.view_planning import PlannedViews, plan_boxes, plan_trees

SHOWN_SITES = 12
SHOWN_VIEWS = 10


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of the views over one column of documents, or over one table."""

    name: str
    views: Sequence[TreeView | Selection]
    found: PlannedViews
    samples: int

    def label(self, place: int) -> str:
        view = self.views[place]
        return f"{view.id} {view.pattern if isinstance(view, TreeView) else view.sql}"


def show_plans(
    out: Output,
    path: Path,
    limits: PlanLimits,
    sites: int,
    documents: str | None,
    *,
    tables: bool,
    explain: bool,
    svg: Path | None,
) -> None:
    home = Home.open(path)
    plans = list(_plans(home, limits, documents, tables=tables))
    if not plans:
        raise PlanError(
            "The home has no views",
            hint="a view is a subscription with XMLTABLE and no further condition; --tables also "
            "plans ordinary subscriptions over one table",
        )
    left_out = read_home_views(home).left_out
    members = [_members(one, sites, explain=explain) for one in plans]
    if svg is not None:
        largest = max(plans, key=lambda one: len(one.views))
        names = [largest.label(place) for place in range(len(largest.views))]
        svg.write_text(plan_svg(largest.found.plan, names), encoding="utf-8")
    out.result({"results": members, "left_out": {str(k): v for k, v in left_out.items()}})
    for one in plans:
        _say(out, one, sites, explain=explain)
    if left_out:
        out.say(f"{count(len(left_out), 'subscription')} left out:")
        for reason, number in Counter(left_out.values()).most_common():
            out.say(f"  {number:,}: {reason}")
    if svg is not None:
        out.say(f"Diagram of levels and feeds: {svg}")


def _plans(
    home: Home, limits: PlanLimits, documents: str | None, *, tables: bool
) -> Iterator[Planned]:
    found = read_home_views(home)
    if documents is not None and documents not in found.documents:
        known = ", ".join(found.documents) or "there are none"
        raise PlanError(f"There are no views over {documents}", hint=f"views are over: {known}")
    for name, views in found.documents.items():
        if documents in (None, name):
            texts = sample_documents(home, views[0])
            statistics = DocumentStatistics.of(map(parse_document, texts))
            mean = float(np.mean([len(one) for one in texts])) if texts else 20_000.0
            plan = plan_trees([one.pattern for one in views], statistics, limits, mean)
            yield Planned(name, views, plan, len(texts))
    for name, selections in found.tables.items() if tables else ():
        rows = sample_rows(home, name)
        language = BoxLanguage(selections[0].relation, rows)
        plan = plan_boxes([one.view for one in selections], language, limits)
        yield Planned(name, selections, plan, len(rows))


def _site_loads(planned: Planned, sites: int) -> list[tuple[int, int, float]]:
    """Per site: its number of views, how many views they feed, and bytes sent per document. Views
    are assigned round-robin, as in a running network."""
    loads, volumes = planned.found.plan.loads(), planned.found.volumes
    found = []
    for site in range(min(sites, len(volumes))):
        mine = range(site, len(volumes), sites)
        sent = sum(float(loads[one]) * volumes[one].bytes for one in mine)
        found.append((len(mine), int(loads[list(mine)].sum()), sent))
    return found


def _members(planned: Planned, sites: int, *, explain: bool) -> dict[str, object]:
    plan, optimal = planned.found.plan, planned.found.optimal
    levels, latencies = plan.levels(), plan.latencies()
    members: dict[str, object] = {
        "documents": planned.name,
        "views": plan.problem.views,
        "sampled": planned.samples,
        "embedding_edges": planned.found.edges,
        "rewritings": plan.problem.graph.rewritings,
        "fed_by_source": int(plan.is_from_source.sum()),
        "source_limit": planned.found.source_limit,
        "levels": {str(k): v for k, v in sorted(Counter(levels.tolist()).items())},
        "utilisation": plan.utilisation(),
        "latency_mean_seconds": float(latencies.mean()),
        "latency_largest_seconds": float(latencies.max()),
        "method": planned.found.method,
        "gap": optimal.gap(),
        "plan": planned.found.chosen,
        "sites": [
            {"views": views, "feeds": feeds, "bytes_per_document": sent}
            for views, feeds, sent in _site_loads(planned, sites)
        ],
    }
    if explain:
        loads = plan.loads()
        members["feeding"] = [
            {
                "view": one.id,
                "level": int(levels[place]),
                "fed_by": [planned.views[k].id for k in plan.inputs_of(place)],
                "feeds": int(loads[place]),
                "latency_seconds": float(latencies[place]),
                "steps": _steps(planned, place),
            }
            for place, one in enumerate(planned.views)
        ]
    return members


def _steps(planned: Planned, place: int) -> list[str]:
    """The steps that compute a view from those that feed it."""
    inputs = [planned.views[one] for one in planned.found.plan.inputs_of(place)]
    if not inputs:
        return ["the source extracts it from each document"]
    own = planned.views[place]
    if isinstance(own, TreeView):
        patterns = [one.pattern for one in inputs if isinstance(one, TreeView)]
        return rewriting_plan(own.pattern, patterns).explain()
    return [f"join {', '.join(str(one.id) for one in inputs)} on the key, then select"]


def _say(out: Output, planned: Planned, sites: int, *, explain: bool) -> None:
    plan, found = planned.found.plan, planned.found
    levels, loads, latencies = plan.levels(), plan.loads(), plan.latencies()
    from_source = int(plan.is_from_source.sum())
    views = plan.problem.views
    out.say(
        f"{planned.name}: {count(views, 'view')}, {from_source:,} fed by the source (limit "
        f"{found.source_limit:,}), {views - from_source:,} by others; "
        f"{count(plan.problem.graph.rewritings, 'rewriting')}, "
        f"sizes measured on {count(planned.samples, 'sample')}"
    )
    out.say(
        f"{found.method}, proven gap {100 * found.optimal.gap():.4f} %; cheapest plan: "
        f"{found.chosen}; latency {latencies.mean():.3f} s on average, at most "
        f"{latencies.max():.3f} s"
    )
    rows = []
    for level, number in sorted(Counter(levels.tolist()).items()):
        here = levels == level
        mean, most = latencies[here].mean(), int(loads[here].max())
        rows.append((level, f"{number:,}", f"{int(loads[here].sum()):,}", most, f"{mean:.3f}"))
    columns = ("level", "views", "feeds", "max feeds", "latency s")
    out.table(columns, rows, columns)
    out.table(
        ("site", "views", "feeds", "sent per document"),
        [
            (place + 1, views_, feeds, size(round(sent)))
            for place, (views_, feeds, sent) in enumerate(_site_loads(planned, sites)[:SHOWN_SITES])
        ],
        ("site", "views", "feeds", "sent per document"),
    )
    if explain:
        _say_feeding(out, planned)
        return
    busiest = sorted(range(views), key=lambda one: (-loads[one], one))[:SHOWN_VIEWS]
    for view in busiest:
        if loads[view]:
            out.say(f"feeds {loads[view]}: {planned.label(view)}")


def _say_feeding(out: Output, planned: Planned) -> None:
    plan = planned.found.plan
    levels = plan.levels()
    for place in np.argsort(levels, kind="stable").tolist():
        feeders = ", ".join(str(planned.views[one].id) for one in plan.inputs_of(place))
        out.say(f"level {levels[place]}: {planned.label(place)}  <- {feeders or 'the source'}")
        if feeders:
            for step in _steps(planned, place):
                out.say(f"    {step}")
