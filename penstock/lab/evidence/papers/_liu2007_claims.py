"""What Liu et al. (2007) say about their figures, and what we say about ours, as checks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.lab.evidence.checks import growth_exponent, is_always_less, line, places, value
from penstock.lab.evidence.model import Claim, Row, Size

ALL_FALSE = "bound if nothing is true"
DISTINCT = "distinct predicates"
FULL = frozenset({Size.FULL})

NAIVE_GAP = (
    "the published naive algorithm seems to evaluate nearly every predicate that a subscription"
    " has; one that stops at the first false predicate, as described, cannot with 0.2 % matching"
)


def is_sublinear(rows: Sequence[Row]) -> tuple[bool, str]:
    found = {series: growth_exponent(rows, series) for series in ("sequential", "sub-order")}
    return max(found.values()) < 0.9, _grown(found)


def naive_is_linear(rows: Sequence[Row]) -> tuple[bool, str]:
    grown = growth_exponent(rows, "naive")
    return grown > 0.95, _grown({"naive": grown})


def grows_slower_than_naive(rows: Sequence[Row]) -> tuple[bool, str]:
    names = ("naive", "sequential", "sub-order")
    first, last = places(rows)[0], places(rows)[-1]
    grown = {name: value(rows, name, last) - value(rows, name, first) for name in names}
    return 2 * max(grown["sequential"], grown["sub-order"]) < grown["naive"], ", ".join(
        f"{name} grows by {more:,.0f}" for name, more in grown.items()
    )


def _grown(found: dict[str, float]) -> str:
    return ", ".join(f"{name} grows like N^{exponent:.2f}" for name, exponent in found.items())


def saves_80_percent(rows: Sequence[Row]) -> tuple[bool, str]:
    last = places(rows)[-1]
    naive = value(rows, "naive", last)
    saved = {name: 1 - value(rows, name, last) / naive for name in ("sequential", "sub-order")}
    return min(saved.values()) > 0.75, ", ".join(
        f"{name} saves {share:.0%}" for name, share in saved.items()
    )


def agrees_with_paper(rows: Sequence[Row]) -> tuple[bool, str]:
    """Within 20 % of every published number."""
    pairs = [
        (str(row["series"]), float(str(row["ours"])), float(str(row["paper"])))
        for row in rows
        if row.get("paper") is not None
    ]
    close = bool(pairs) and all(abs(ours / theirs - 1) <= 0.2 for _, ours, theirs in pairs)
    texts = [f"{name} {ours:,.0f}, published {theirs:,.0f}" for name, ours, theirs in pairs]
    bounds = [row for row in rows if row["series"] == ALL_FALSE]
    texts += [f"{ALL_FALSE}: {float(str(row['ours'])):,.0f}" for row in bounds]
    return close, ", ".join(texts)


def benefit_saves_15_percent(rows: Sequence[Row]) -> tuple[bool, str]:
    last = [row["x"] for row in rows if row["series"] == "benefit"][-1]
    saved = 1 - value(rows, "benefit", last) / value(rows, "sub-order", last)
    return saved >= 0.15, f"{saved:.1%} fewer than sub-order at {last:,}"


def benefit_is_near_the_bound(rows: Sequence[Row]) -> tuple[bool, str]:
    ratios = [float(str(row["of_bound"])) for row in rows if row["series"] == "benefit"]
    figures = f"{ratios[-1]:.3f} times the bound, {min(ratios):.3f} to {max(ratios):.3f} in all"
    return ratios[-1] <= 1.2, figures


BENEFIT_IS_NEAR = Claim(
    "benefit evaluates at most 1.2 times the clairvoyant bound (at the last point).",
    benefit_is_near_the_bound,
    gap="it depends on how probabilities spread, which the paper does not say, and on the size",
    is_ours=True,
)
BENEFIT_SAVES = Claim(
    "benefit needs at least 15 % fewer evaluations than sub-order, with the most subscriptions.",
    benefit_saves_15_percent,
    is_ours=True,
)
SUB_ORDER_IS_BETTER = Claim(
    "Sub-Order performs consistently better than Sequential.",
    lambda rows: is_always_less(_common(rows), "sub-order", "sequential"),
)
SEQUENTIAL_BEATS_NAIVE = Claim(
    "Sequential performs better than naive in all scenarios.",
    lambda rows: is_always_less(_common(rows), "sequential", "naive"),
)
SUBLINEAR = Claim("The cost of Sequential and Sub-Order is sub-linear.", is_sublinear)


def _common(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["series"] not in (ALL_FALSE, DISTINCT)]


FIGURE_4 = (
    SEQUENTIAL_BEATS_NAIVE,
    SUB_ORDER_IS_BETTER,
    SUBLINEAR,
    Claim(
        "The cost of naive increases linearly with the number of subscriptions.",
        naive_is_linear,
        gap="naive remembers results, and there are only so many predicates",
    ),
    Claim(
        "With the most subscriptions both save almost 80 % of naive's evaluations.",
        saves_80_percent,
        gap=NAIVE_GAP,
    ),
    Claim(
        "With 80K subscriptions Sequential evaluates 7,761 predicates and Sub-Order 7,037.",
        agrees_with_paper,
        gap="the workload as described does not admit it: even if no predicate were true, whoever "
        "knows that would have to evaluate more",
        sizes=FULL,
    ),
    BENEFIT_SAVES,
    BENEFIT_IS_NEAR,
)
FIGURE_5 = (
    SEQUENTIAL_BEATS_NAIVE,
    replace(
        SUB_ORDER_IS_BETTER,
        gap="with Zipf's law a few popular predicates decide most subscriptions, whichever chain"
        " comes first",
    ),
    SUBLINEAR,
    BENEFIT_IS_NEAR,
)
FIGURE_6 = (
    Claim(
        "The cost of Sequential and Sub-Order increases much slower than naive's.",
        grows_slower_than_naive,
    ),
    Claim(
        "With 30K predicates naive evaluates 16,251, Sequential 3,267 and Sub-Order 1,977.",
        agrees_with_paper,
        gap=NAIVE_GAP + "; ours need fewer throughout",
        sizes=FULL,
    ),
    SUB_ORDER_IS_BETTER,
    BENEFIT_IS_NEAR,
)


def sequential_hardly_depends_on_length(rows: Sequence[Row]) -> tuple[bool, str]:
    costs = [cost for _, cost in line(rows, "sequential")]
    return max(costs) < 1.25 * min(costs), f"from {costs[0]:,.0f} to {costs[-1]:,.0f}"


def lead_shrinks(rows: Sequence[Row]) -> tuple[bool, str]:
    leads = [
        value(rows, "sequential", x) - value(rows, "sub-order", x)
        for x in (places(rows)[0], places(rows)[-1])
    ]
    return leads[1] < leads[0], f"from {leads[0]:,.0f} to {leads[1]:,.0f} evaluations"


def naive_evaluates_all(rows: Sequence[Row]) -> tuple[bool, str]:
    costs = [cost for _, cost in line(rows, "naive")]
    return max(costs) < 1.1 * min(costs), f"{min(costs):,.0f} to {max(costs):,.0f}"


FIGURE_7 = (
    Claim(
        "Sequential is not sensitive to the length of subscriptions: 1,593 to 1,784.",
        sequential_hardly_depends_on_length,
        gap="its cost falls here: longer subscriptions are easier to refute if as many match",
    ),
    Claim(
        "The gap between Sequential and Sub-Order shrinks with the length.",
        lead_shrinks,
        gap="Sub-Order's lead is small here at every length: a few popular predicates decide most"
        " subscriptions, whichever chain comes first; so with all spreads of probabilities tried",
    ),
    Claim("Naive is insensitive to the length of subscriptions.", naive_evaluates_all),
    Claim(
        "Sequential evaluates 1,593 predicates for a maximum of 5, and 1,784 for 11.",
        agrees_with_paper,
        gap="longer subscriptions are easier to refute if as many match",
        sizes=FULL,
    ),
    BENEFIT_IS_NEAR,
)


def zipf_helps(rows: Sequence[Row]) -> tuple[bool, str]:
    texts, holds = [], True
    for name in ("sequential", "sub-order"):
        costs = [float(str(row["ours"])) for row in rows if row["series"] == name]
        holds &= costs == sorted(costs, reverse=True)
        texts.append(f"{name} " + ", ".join(f"{cost:,.0f}" for cost in costs))
    return holds, "; ".join(texts)


FIGURE_8 = (
    Claim(
        "Sequential and Sub-Order are better with Zipf's law, and the more so the larger its "
        "exponent is.",
        zipf_helps,
    ),
    BENEFIT_IS_NEAR,
)


def is_within_guarantee(rows: Sequence[Row]) -> tuple[bool, str]:
    shares = [float(str(row["ours"])) / float(str(row["paper"])) for row in rows]
    return max(shares) <= 1, f"at most {max(shares):.0%} of the guarantee"


THEOREM_2 = (
    Claim(
        "Sequential evaluates at most d times the optimum; d Cmax / Cmin if costs differ.",
        is_within_guarantee,
    ),
)


def benefit_is_cheapest(rows: Sequence[Row]) -> tuple[bool, str]:
    return is_always_less(rows, "benefit", "sub-order")


SECTION_4_3 = (
    Claim("Sub-Order, extended for costs, is cheaper than Sequential.", SUB_ORDER_IS_BETTER.check),
    Claim("benefit is cheaper than Sub-Order.", benefit_is_cheapest, is_ours=True),
)


def benefit_is_near_any_bound(rows: Sequence[Row]) -> tuple[bool, str]:
    mine = [row for row in rows if row["series"] == "benefit"]
    ratios = {str(row["x"]): float(str(row["of_any_bound"])) for row in mine}
    return max(ratios.values()) <= 1.15, ", ".join(
        f"{spread} {ratio:.3f}" for spread, ratio in ratios.items()
    )


def is_within_1_2_of_clairvoyant(rows: Sequence[Row]) -> tuple[bool, str]:
    mine = [row for row in rows if row["series"] == "benefit"]
    ratios = {str(row["x"]): float(str(row["of_bound"])) for row in mine}
    return max(ratios.values()) <= 1.2, ", ".join(
        f"{spread} {ratio:.3f}" for spread, ratio in ratios.items()
    )


SPREADS = (
    Claim(
        "benefit is better than Sub-Order whatever the spread.", benefit_is_cheapest, is_ours=True
    ),
    Claim(
        "benefit evaluates at most 1.2 times the clairvoyant bound whatever the spread.",
        is_within_1_2_of_clairvoyant,
        gap="an evaluation that turns out true is wasted, and only a clairvoyant avoids it",
        is_ours=True,
    ),
    Claim(
        "benefit evaluates at most 1.15 times what every schedule must that is not clairvoyant.",
        benefit_is_near_any_bound,
        is_ours=True,
    ),
)


def schedules_within_5_ms(rows: Sequence[Row]) -> tuple[bool, str]:
    fastest = [float(str(row["fastest"])) for row in rows]
    medians = [float(str(row["ours"])) for row in rows]
    return max(medians) < 5, f"fastest {max(fastest):.1f} ms, median {max(medians):.1f} ms"


SCHEDULING_TIME = (
    Claim(
        "Scheduling takes less than 5 ms of CPU per event with 80K subscriptions.",
        schedules_within_5_ms,
        is_ours=True,
        sizes=FULL,
    ),
)
