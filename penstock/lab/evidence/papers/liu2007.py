"""Liu, Parthasarathy, Ranganathan and Yang: expensive predicates, evaluated as rarely as
possible."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import product

from penstock.lab.evidence.model import Claim, Item, Paper, Plot, Report, Row, Size
from penstock.lab.evidence.papers import _liu2007_claims as claims
from penstock.lab.evidence.schedule_runs import (
    ANY_BOUND,
    BOUND,
    Effort,
    bound_if_all_false,
    measure_costs,
    milliseconds_per_event,
)
from penstock.lab.workloads.overlapping import SPREADS, Overlapping
from penstock.operators.schedules import FixedEstimates, make_schedule
from penstock.operators.schedules.optimal import optimum

EFFORT = {Size.SMALL: Effort(30, 2, 3), Size.FULL: Effort(334, 1, 3)}
"""Full: the published 1,000 events, over three draws of the subscriptions."""
SUBSCRIPTIONS = {
    Size.SMALL: (200, 800, 3_200, 8_000),
    Size.FULL: (2_000, 5_000, 10_000, 20_000, 40_000, 80_000),
}
PREDICATES = {Size.SMALL: 4_000, Size.FULL: 40_000}
FIXED_SUBSCRIPTIONS = {Size.SMALL: 2_000, Size.FULL: 20_000}
FIXED_PREDICATES = {Size.SMALL: 500, Size.FULL: 5_000}
PREDICATE_COUNTS = {
    Size.SMALL: (200, 1_000, 3_000),
    Size.FULL: (2_000, 5_000, 10_000, 20_000, 30_000),
}
LENGTHS = (5, 7, 9, 11)
EXPONENTS = (0.0, 0.8, 1.0, 1.2)
COST_RATIO = 10.0
PAPER_FIGURE_4 = {80_000: {"sequential": 7_761.0, "sub-order": 7_037.0}}
PAPER_FIGURE_6 = {30_000: {"naive": 16_251.0, "sequential": 3_267.0, "sub-order": 1_977.0}}
PAPER_FIGURE_7 = {5: {"sequential": 1_593.0}, 11: {"sequential": 1_784.0}}


def _by_subscriptions(
    exponent: float, paper: dict[int, dict[str, float]], size: Size, report: Report
) -> list[Row]:
    rows: list[Row] = []
    for count in SUBSCRIPTIONS[size]:
        settings = Overlapping(count, PREDICATES[size], exponent)
        costs = measure_costs(settings, EFFORT[size], report)
        rows += costs.rows(count, paper.get(count, {}))
    return rows


def figure_4(size: Size, report: Report) -> list[Row]:
    rows = _by_subscriptions(0.0, PAPER_FIGURE_4, size, report)
    largest = SUBSCRIPTIONS[size][-1]
    report("bound without any true predicate")
    least = bound_if_all_false(Overlapping(largest, PREDICATES[size]))
    rows.append({"series": claims.ALL_FALSE, "x": largest, "ours": round(least, 1)})
    return rows


def figure_5(size: Size, report: Report) -> list[Row]:
    return _by_subscriptions(1.0, {}, size, report)


def figure_6(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for count in PREDICATE_COUNTS[size]:
        settings = Overlapping(FIXED_SUBSCRIPTIONS[size], count, 1.0)
        costs = measure_costs(settings, EFFORT[size], report)
        rows += costs.rows(count, PAPER_FIGURE_6.get(count, {}))
        used = {t for chain in settings.draw().chains for t in chain}
        rows.append({"series": claims.DISTINCT, "x": count, "ours": len(used)})
    return rows


def figure_7(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for longest in LENGTHS:
        settings = Overlapping(FIXED_SUBSCRIPTIONS[size], FIXED_PREDICATES[size], 1.0, longest)
        costs = measure_costs(settings, EFFORT[size], report)
        paper = PAPER_FIGURE_7.get(longest, {}) if size is Size.FULL else {}
        rows += costs.rows(longest, paper)
    return rows


def figure_8(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for exponent in EXPONENTS:
        settings = Overlapping(FIXED_SUBSCRIPTIONS[size], FIXED_PREDICATES[size], exponent)
        costs = measure_costs(settings, EFFORT[size], report)
        rows += costs.rows(f"Zipf {exponent:g}" if exponent else "uniform", {})
    return rows


def theorem_2(size: Size, report: Report) -> list[Row]:
    """Every event of every set of up to three of these conjunctions."""
    report("small instances")
    conjunctions = [(0,), (0, 1), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3), (0, 3), (0, 1, 2, 3)]
    if size is Size.FULL:
        conjunctions += [(3, 4), (0, 4), (1, 3, 4)]
    events = list(product((False, True), repeat=5))
    rows: list[Row] = []
    for label, prices in (("equal", (1.0,) * 5), ("different", (1.0, 5.0, 2.0, 3.0, 1.5))):
        estimates, worst = FixedEstimates((0.5,) * 5, prices), dict[int, float]()
        for chosen in product(conjunctions, repeat=3):
            branches = dict(enumerate(chosen))
            schedule = make_schedule("sequential", estimates)
            for branch, chain in branches.items():
                schedule.add(branch, chain)
            d = max(map(len, chosen))
            for truths in events:
                run, spent = schedule.start(), 0.0
                while (predicate := run.next()) is not None:
                    run.tell(predicate, truths[predicate])
                    spent += prices[predicate]
                ratio = spent / optimum(branches, truths, estimates)
                worst[d] = max(worst.get(d, 0.0), ratio)
        for d, ratio in sorted(worst.items()):
            guarantee = d * max(prices) / min(prices)
            rows.append({"series": label, "x": d, "ours": round(ratio, 3), "paper": guarantee})
    return rows


def section_4_3(size: Size, report: Report) -> list[Row]:
    settings = Overlapping(FIXED_SUBSCRIPTIONS[size], FIXED_PREDICATES[size], 1.0)
    costs = measure_costs(settings, EFFORT[size], report, cost_ratio=COST_RATIO)
    return list(costs.rows(f"costs 1 to {COST_RATIO:g}", {}))


def spreads(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for spread in SPREADS:
        count = SUBSCRIPTIONS[size][-1]
        settings = Overlapping(count, PREDICATES[size], spread=spread)
        effort = Effort(20, 2, 3 if size is Size.SMALL else 2, any_bound=True)
        rows += measure_costs(settings, effort, report).rows(spread, {})
    return rows


def scheduling_time(size: Size, report: Report) -> list[Row]:
    rows: list[Row] = []
    for exponent, label in ((0.0, "uniform"), (1.0, "Zipf 1")):
        settings = Overlapping(SUBSCRIPTIONS[size][-1], PREDICATES[size], exponent)
        times = sorted(milliseconds_per_event(settings, 50, report))
        rows.append(
            {
                "series": f"benefit, {label}",
                "x": settings.subscriptions,
                "ours": round(statistics.median(times), 2),
                "fastest": round(times[0], 2),
                "slowest": round(times[-1], 2),
            }
        )
    return rows


def _figure(
    name: str,
    title: str,
    experiment: object,
    x_label: str,
    found: Sequence[Claim],
    seconds: tuple[float, float],
    sizes: tuple[str, str],
    *,
    more_columns: tuple[str, ...] = (),
) -> Item:
    assert callable(experiment)
    return Item(
        name,
        title,
        experiment,
        ("series", "x", "ours", "interval_95", "paper", "of_bound", *more_columns),
        tuple(found),
        Plot("x", "ours", x_label=x_label, y_label="predicates evaluated per event"),
        dict(zip(Size, seconds, strict=True)),
        sizes=dict(zip(Size, sizes, strict=True)),
    )


PAPER = Paper(
    "liu2007",
    "Scalable Event Matching for Overlapping Subscriptions in Pub/Sub Systems",
    "Z. Liu, S. Parthasarathy, A. Ranganathan, H. Yang; DEBS 2007",
    (
        _figure(
            "figure 4",
            "Evaluation cost vs. number of subscriptions (uniform popularity)",
            figure_4,
            "subscriptions",
            claims.FIGURE_4,
            (12, 420),
            ("4K predicates, 200 to 8K subscriptions", "40K predicates, 2K to 80K subscriptions"),
        ),
        _figure(
            "figure 5",
            "Evaluation cost vs. number of subscriptions (Zipf popularity)",
            figure_5,
            "subscriptions",
            claims.FIGURE_5,
            (10, 300),
            ("4K predicates, 200 to 8K subscriptions", "40K predicates, 2K to 80K subscriptions"),
        ),
        _figure(
            "figure 6",
            "Evaluation cost vs. number of predicates",
            figure_6,
            "predicates",
            claims.FIGURE_6,
            (6, 120),
            ("2K subscriptions, 200 to 3K predicates", "20K subscriptions, 2K to 30K predicates"),
        ),
        _figure(
            "figure 7",
            "Evaluation cost vs. maximum length of a subscription",
            figure_7,
            "predicates in a subscription, at most",
            claims.FIGURE_7,
            (8, 120),
            ("2K subscriptions, 500 predicates", "20K subscriptions, 5K predicates"),
        ),
        _figure(
            "figure 8",
            "Evaluation cost by popularity of predicates",
            figure_8,
            "popularity",
            claims.FIGURE_8,
            (8, 120),
            ("2K subscriptions, 500 predicates", "20K subscriptions, 5K predicates"),
        ),
        Item(
            "theorem 2",
            "Sequential costs at most d times the optimum (d Cmax / Cmin if costs differ)",
            theorem_2,
            ("series", "x", "ours", "paper"),
            claims.THEOREM_2,
            seconds={Size.SMALL: 4, Size.FULL: 12},
            sizes=dict.fromkeys(Size, "all sets of three conjunctions, all events"),
        ),
        _figure(
            "section 4.3",
            "Different costs of evaluations",
            section_4_3,
            "",
            claims.SECTION_4_3,
            (3, 40),
            ("2K subscriptions, 500 predicates", "20K subscriptions, 5K predicates"),
        ),
        _figure(
            "spreads",
            "What the spread of probabilities changes, which the paper does not state",
            spreads,
            "spread of probabilities",
            claims.SPREADS,
            (6, 240),
            ("8K subscriptions, 20 events", "80K subscriptions, 20 events"),
            more_columns=("of_any_bound",),
        ),
        Item(
            "scheduling time",
            "Milliseconds of CPU per event, evaluations left out (ours)",
            scheduling_time,
            ("series", "x", "ours", "fastest", "slowest"),
            claims.SCHEDULING_TIME,
            seconds={Size.SMALL: 3, Size.FULL: 30},
            sizes={Size.SMALL: "8K subscriptions", Size.FULL: "80K subscriptions"},
        ),
    ),
    (
        (
            "Predicates are true independently of each other. Their probabilities are u^k for"
            " uniform u (most are rarely true), with k such that 0.2 % of the subscriptions match"
            " in expectation. The paper does not say how they spread. Two other spreads are in"
            " `spreads`: with them `benefit` is not within 1.2 times the clairvoyant bound, and"
            " with equal probabilities hardly any schedule could be (the bound of any schedule)."
        ),
        "The schedules know probabilities and costs exactly.",
        (
            "`sequential` takes subscriptions, and the predicates in them, in the order in which"
            " they were drawn; so does `naive`."
        ),
        (
            "`sub-order` compares each node with at most four others of the same predicate"
            " (penstock/operators/schedules/chain_order.py)."
        ),
        (
            f"`{BOUND}`: what somebody who knows all truths must evaluate at least, by a"
            " Lagrangian relaxation; for the first events of each seed, on which `of bound`"
            " is measured."
        ),
        (
            f"`{ANY_BOUND}`: what every schedule needs on average that cannot see truths before it"
            " pays for them, if predicates are independent: an evaluation finds its predicate"
            " false with probability 1 - p whatever was seen before, so each false one that is"
            " found stands for 1 / (1 - p) evaluations."
        ),
        (
            "Evaluations are counted for every event, and events are the same for all schedules:"
            " at full size 1,002, a third of them for each of three draws of subscriptions."
        ),
    ),
)
