"""Li, Hou and Jacobsen: routing, covering and merging on decision diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from penstock.lab.evidence.existing import ExistingExperiment
from penstock.lab.evidence.model import Claim, Item, Paper, Plot, Report, Row, Size
from penstock.lab.evidence.papers import _li2005_claims as claims
from penstock.lab.experiments import _li2005_routing as routing
from penstock.lab.experiments._li2005_workload import SETS, Workload


@dataclass(frozen=True, slots=True)
class Extent:
    subscriptions: int
    publications: int
    naive: int
    """Number of publications matched naively, and by the index over interests."""
    block: int
    """Subscriptions per point of figure 13."""


EXTENTS = {
    Size.SMALL: Extent(2_000, 1_000, 20, 400),
    Size.FULL: Extent(200_000, 50_000, 50, 10_000),
}


@cache
def _states(size: Size, name: str) -> routing.States:
    return routing.states_of(Workload(name, EXTENTS[size].subscriptions))


def figure_12(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for name in SETS:
        report(f"set {name}")
        rows += routing.figure_12(_states(size, name))
    return rows


def table_2(size: Size, report: Report) -> list[Row]:
    extent, rows = EXTENTS[size], list[Row]()
    for name in SETS:
        report(f"publications against set {name}")
        rows += routing.table_2(_states(size, name), extent.publications, extent.naive)
    return rows if size is Size.FULL else [row | {"paper": None} for row in rows]


def figure_13(size: Size, report: Report) -> list[Row]:
    extent = EXTENTS[size]
    report("insertion")
    return list(routing.figure_13(Workload("B", extent.subscriptions), extent.block))


@cache
def _merging(size: Size) -> list[Row]:
    extent = EXTENTS[size]
    half = Workload("A", extent.subscriptions // 2, of=extent.subscriptions)
    return list(routing.figures_14_and_15(half, extent.publications))


def figure_14(size: Size, report: Report) -> list[Row]:
    report("imperfect merging")
    return _merging(size)


def figure_15(size: Size, report: Report) -> list[Row]:
    report("imperfect merging")
    return [row | {"entries": row["ours"], "paper": None} for row in _merging(size)]


def _item(
    name: str,
    title: str,
    experiment: Callable[[Size, Report], Sequence[Row]],
    columns: tuple[str, ...],
    found: Sequence[Claim],
    plot: Plot,
    seconds: tuple[float, float],
) -> Item:
    texts = {
        size: f"{extent.subscriptions:,} subscriptions, {extent.publications:,} publications"
        for size, extent in EXTENTS.items()
    }
    return Item(
        name,
        title,
        experiment,
        columns,
        tuple(found),
        plot,
        dict(zip(Size, seconds, strict=True)),
        sizes=texts,
    )


_ORDER = ExistingExperiment(
    "diagram-order",
    {
        Size.SMALL: {"subscriptions": 500, "random_orders": 1, "repetitions": 1},
        Size.FULL: {"subscriptions": 200_000},
    },
    {Size.SMALL: 4, Size.FULL: 900},
)

PAPER = Paper(
    "li2005",
    "A Unified Approach to Routing, Covering and Merging in Publish/Subscribe Systems based on"
    " Modified Binary Decision Diagrams",
    "G. Li, S. Hou, H.-A. Jacobsen; ICDCS 2005",
    (
        _item(
            "figure 12",
            "Routing table size",
            figure_12,
            ("series", "x", "ours", "share", "paper"),
            claims.FIGURE_12,
            Plot("x", "ours", x_label="state of the table", y_label="entries"),
            (4, 600),
        ),
        _item(
            "table 2",
            "Publication routing time (ms)",
            table_2,
            ("series", "x", "ours", "paper", "entries", "looked_at"),
            claims.TABLE_2,
            Plot("x", "ours", x_label="state of the table", y_label="ms", log_y=True),
            (2, 300),
        ),
        _item(
            "figure 13",
            "Subscription insertion time (ms)",
            figure_13,
            ("series", "x", "ours", "paper"),
            claims.FIGURE_13,
            Plot("x", "ours", x_label="subscriptions", y_label="ms", log_y=True),
            (3, 400),
        ),
        _item(
            "figure 14",
            "Imperfect merging threshold",
            figure_14,
            ("series", "x", "ours", "share", "paper"),
            claims.FIGURE_14,
            Plot("x", "ours", x_label="IMT", y_label="entries"),
            (3, 400),
        ),
        _item(
            "figure 15",
            "False positives by threshold",
            figure_15,
            ("series", "x", "false_positive_share", "wanted_share", "entries"),
            claims.FIGURE_15,
            Plot("x", "false_positive_share", x_label="IMT", y_label="of matched publications"),
            (0, 0),
        ),
        replace(
            _ORDER.item("order", "The order of attributes and the size of diagrams (section 3.2)"),
            claims=claims.ORDER,
        ),
    ),
    (
        (
            "Lengths of subscriptions, operators, values and advertisements are not in the paper:"
            " see penstock/lab/experiments/_li2005_workload.py for what was chosen. The numbers of"
            " range predicates are fitted to the covered shares of figure 12, nothing else is."
        ),
        (
            "One draw of each set: a seed changes covered shares by two points or so, and a full"
            " run takes minutes."
        ),
        (
            "Times are CPU milliseconds of Python with compiled kernels; the naive approach and the"
            " index over interests are timed on a part of the publications, one by one."
        ),
        (
            "Ours on interests: covering and merging of figure 12, the index over interests in"
            " Table 2, insertion in figure 13 up to"
            f" {routing.MOST_INTERESTS:,} subscriptions."
        ),
    ),
)
