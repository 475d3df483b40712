"""Karanasos, Katsifodimos and Manolescu: views that feed views under capacity limits."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lab.evidence.model import Claim, Item, Paper, Plot, Report, Row, Size
from penstock.lab.evidence.papers import _karanasos2013_claims as claims
from penstock.lab.evidence.view_runs import (
    DeploymentSetting,
    PlanSetting,
    estimate_rows,
    measured_rows,
    small_problems,
    solver_rows,
    tie_rows,
)
from penstock.lab.workloads import xmark

DENSE = xmark.ViewParameters(shortest_walk=1, single=True, same_structure=0.3, within=("people",))
"""For the small set: views of one part of the site, so that 2,000 of them rewrite each other nearly
as much as 100,000 of the whole."""
PLANS = {
    Size.SMALL: PlanSetting(2_000, (10, 20, 40, 0), 3, 300_000, DENSE),
    Size.FULL: PlanSetting(100_000, (30, 50, 100, 0), 3, 5_000_000, is_published=True),
}
DEPLOYMENTS = {
    Size.SMALL: DeploymentSetting(1_500, 10, 72, (5, 10, 30, 0), 3),
    Size.FULL: DeploymentSetting(10_000, 200, 72, (5, 10, 30, 50, 100, 0), 3),
}
SOLVED = {Size.SMALL: (3, 300), Size.FULL: (10, 500)}
"""Instances, and views of each."""
TIED = {Size.SMALL: 1_000, Size.FULL: 5_000}
ESTIMATED = {Size.SMALL: (300, 10, 3), Size.FULL: (2_000, 20, 3)}
"""Views, documents and seeds."""

PLAN_SIZES = {
    Size.SMALL: "2,000 unique views about people, bounds 10, 20, 40 and none, 3 seeds",
    Size.FULL: "100,000 unique views, bounds 30, 50, 100 and none, 3 seeds",
}
DEPLOYMENT_SIZES = {
    Size.SMALL: "1,500 views, 10 documents, 3 seeds",
    Size.FULL: "10,000 views, 200 documents, 3 seeds",
}
COLUMNS = ("series", "x", "ours", "interval_95", "paper")


def _measured(
    settings: Mapping[Size, PlanSetting] | Mapping[Size, DeploymentSetting],
    name: str,
    title: str,
    found: tuple[Claim, ...],
    sizes: Mapping[Size, str],
    seconds: Mapping[Size, float],
    plot: Plot | None = None,
) -> Item:
    def experiment(size: Size, report: Report) -> list[Row]:
        return measured_rows(settings[size], name, report)

    return Item(name, title, experiment, COLUMNS, found, plot, seconds, sizes=sizes)


def _plans(
    name: str,
    title: str,
    found: tuple[Claim, ...],
    plot: Plot | None = None,
    seconds: Mapping[Size, float] | None = None,
) -> Item:
    return _measured(PLANS, name, title, found, PLAN_SIZES, seconds or {}, plot)


def _deployed(
    name: str,
    title: str,
    found: tuple[Claim, ...],
    plot: Plot | None = None,
    seconds: Mapping[Size, float] | None = None,
) -> Item:
    return _measured(DEPLOYMENTS, name, title, found, DEPLOYMENT_SIZES, seconds or {}, plot)


def table_1(size: Size, report: Report) -> list[Row]:
    report("small instances")
    return solver_rows(small_problems(*SOLVED[size]))


def ties(size: Size, report: Report) -> list[Row]:
    report("two sets of rewritings")
    return tie_rows(TIED[size], 3)


def statistics(size: Size, report: Report) -> list[Row]:
    report("documents")
    return estimate_rows(*ESTIMATED[size])


_LEVELS = Plot("x", "ours", x_label="level", y_label="views", log_y=True)
_SECONDS = Plot("x", "ours", x_label="views that a view may feed", y_label="seconds")

PAPER = Paper(
    "karanasos2013",
    "Delta: Scalable Data Dissemination under Capacity Constraints",
    "K. Karanasos, A. Katsifodimos, I. Manolescu; PVLDB 7(4), 2013",
    (
        Item(
            "table 1",
            "The published integer program beside column generation and the quick plan",
            table_1,
            ("series", "x", "ours"),
            claims.TABLE_1,
            seconds={Size.SMALL: 2, Size.FULL: 20},
            sizes={
                Size.SMALL: "3 instances of 300 views",
                Size.FULL: "10 instances of 500 views",
            },
        ),
        _plans(
            "table 2",
            "Views, embedding graph and rewritability graph",
            claims.TABLE_2,
            seconds={Size.SMALL: 8, Size.FULL: 600},
        ),
        _plans("table 3", "Impact of the bound on the chosen plans", claims.TABLE_3),
        _plans(
            "figure 5",
            "Latency reduction while running LOGA",
            claims.FIGURE_5,
            Plot("x", "ours", x_label="CPU seconds", y_label="latency, as a share of the plan's"),
        ),
        _plans("section 5.4", "Latency and utilisation after LOGA", claims.SECTION_5_4),
        _plans("figure 6", "Distribution of views across levels", claims.FIGURE_6, _LEVELS),
        _plans("resources", "CPU time and memory of everything together", claims.RESOURCES),
        _deployed(
            "source bound",
            "What the source must feed in the deployment",
            claims.SOURCE_BOUND,
            seconds={Size.SMALL: 8, Size.FULL: 200},
        ),
        _deployed(
            "figure 7", "Distribution of deployed views across levels", claims.FIGURE_7, _LEVELS
        ),
        _deployed("figure 8", "Latency of views, simulated", claims.FIGURE_8, _SECONDS),
        _deployed("figure 9", "Document delivery time, simulated", claims.FIGURE_9, _SECONDS),
        Item(
            "ties",
            "Two ways to break ties between views in Algorithm 4, under a bound of 10 (ours)",
            ties,
            ("series", "x", "ours", "interval_95"),
            claims.TIES,
            seconds={Size.SMALL: 3, Size.FULL: 60},
            sizes={
                Size.SMALL: "1,000 drawn views, 3 seeds",
                Size.FULL: "5,000 drawn views, 3 seeds",
            },
        ),
        Item(
            "statistics",
            "Estimated beside measured sizes of results (ours)",
            statistics,
            COLUMNS,
            claims.STATISTICS,
            seconds={Size.SMALL: 3, Size.FULL: 60},
            sizes={
                Size.SMALL: "300 views, 10 documents, 3 seeds",
                Size.FULL: "2,000 views, 20 documents, 3 seeds",
            },
        ),
    ),
    (
        (
            "The view generator walks the XMark DTD as YFilter's does; its parameters were chosen"
            " by the views' statistics in Table 2 alone. Table 2's second line on predicates (0.11)"
            " is taken for descendant edges and not used."
        ),
        (
            "A view's predicate must be the query's, and a query's predicate must be covered: the"
            " published rules would lose results."
        ),
        (
            "What a rewriting uses is its result sizes, measured on 20 documents, weighted: a row"
            " joined counts as 50 bytes. The paper gives no costs. Sites lie at random in a square."
        ),
        (
            "Ties between views are broken at random by the query's number: with published ties the"
            " same few views feed everybody."
        ),
        (
            "The deployed views are drawn with repetition by a generator with popular labels and"
            " single-node views until 10,000 match at least 9 of 10 documents; its branching was"
            " chosen so that some 3,000 are different. Contents are navigated"
            " (`v[//c]//b`, section 4.1)."
        ),
        (
            "Bandwidth, delays and the time of a send are assumed: `Network` in"
            " penstock/lab/view_deployment.py; the time of a row is measured."
        ),
        "Figure 5 is of the first seed; all other numbers are means over seeds.",
    ),
)
