"""Checks of rows for the claims of Karanasos et al. (2013) and ours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise

from penstock.lab.evidence.model import Check, Row
from penstock.lab.evidence.view_runs import LOGA, NONE, OPTIMAL, PUBLISHED_TIES, SPREADING

MAX_GAP = 1e-4


def by_x(rows: Sequence[Row], series: str) -> dict[object, float]:
    """The values of a series by x."""
    found = {
        row["x"]: float(str(row["ours"]))
        for row in rows
        if row["series"] == series and row["ours"] is not None
    }
    assert found, series
    return found


def _listed(found: dict[object, float], form: str = ".3g") -> str:
    return ", ".join(f"{x}: {value:{form}}" for x, value in found.items())


def all_of(series: str, holds: Callable[[float], bool], form: str = ".3g") -> Check:
    """A check that a condition holds for every value of a series."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        found = by_x(rows, series)
        return all(map(holds, found.values())), f"{series.replace('_', ' ')} {_listed(found, form)}"

    return check


def agrees(*series: str, within: float) -> Check:
    """A check that series are within this distance of the published numbers."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        pairs = [
            (str(row["series"]), float(str(row["ours"])), float(str(row["paper"])))
            for row in rows
            if row["series"] in series and row.get("paper") is not None
        ]
        texts = [f"{name.replace('_', ' ')} {a:.4g}, published {b:.4g}" for name, a, b in pairs]
        return bool(pairs) and all(abs(a / b - 1) <= within for _, a, b in pairs), "; ".join(texts)

    return check


def rises(series: str, sign: int, slack: float = 0.0) -> Check:
    """A check that a series rises (or falls) with the bound, also from end to end."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        found = by_x(rows, series)
        values = [sign * value for value in found.values()]
        steps = all(b >= a - slack for a, b in pairwise(values))
        text = f"{series.replace('_', ' ')} {_listed(found, '.4g')}"
        return steps and values[-1] > values[0], text

    return check


def is_faster(series: str) -> Check:
    """A check that less CPU was used than the paper's seconds."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        row = next(row for row in rows if row["series"] == series)
        ours, paper = float(str(row["ours"])), float(str(row["paper"]))
        return ours < paper, f"{ours:.1f} s of CPU, published {paper:.0f} s"

    return check


def solvers_agree(rows: Sequence[Row]) -> tuple[bool, str]:
    published, found = by_x(rows, "published program"), by_x(rows, "column generation")
    off = max(abs(found[x] / published[x] - 1) for x in published)
    return off < MAX_GAP, f"{len(published)} instances, at most {off:.1e} apart"


def bound_is_below(rows: Sequence[Row]) -> tuple[bool, str]:
    published, bound = by_x(rows, "published program"), by_x(rows, "its lower bound")
    most = max(bound[x] / published[x] for x in published)
    return most <= 1 + 1e-9, f"at most {most:.9f} of the optimum"


def levels(rows: Sequence[Row], plan: str) -> dict[object, float]:
    """How many levels a plan has, by bound."""
    found: dict[object, float] = {}
    for row in rows:
        name, _, bound = str(row["series"]).partition(", bound ")
        if name == plan:
            found[bound] = max(found.get(bound, 0.0), float(str(row["x"])))
    return found


def fewer_levels(share: float, *, everywhere: bool) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        before, after = levels(rows, OPTIMAL), levels(rows, LOGA)
        ratios = {x: after[x] / before[x] for x in before}
        worst = max(ratios.values()) if everywhere else min(ratios.values())
        text = ", ".join(f"{x}: {before[x]:.0f} to {after[x]:.0f}" for x in before)
        return worst < share, f"levels by bound {text}"

    return check


def views_beyond(level: int, most: float) -> Check:
    """A check that after LOGA at most this many views are beyond a level."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        total: dict[object, float] = {}
        deep: dict[object, float] = {}
        for row in rows:
            name, _, bound = str(row["series"]).partition(", bound ")
            if name == LOGA:
                views, at = float(str(row["ours"])), float(str(row["x"]))
                total[bound] = total.get(bound, 0.0) + views
                deep[bound] = deep.get(bound, 0.0) + views * (at > level)
        shares: dict[object, float] = {x: deep[x] / total[x] for x in total}
        return max(shares.values()) <= most, f"share behind level {level}: {_listed(shares, '.1%')}"

    return check


def stabilises(rows: Sequence[Row]) -> tuple[bool, str]:
    """The last pass changes almost nothing compared with the first one."""
    texts, stable = [], True
    for name in dict.fromkeys(str(row["series"]) for row in rows):
        curve = list(by_x(rows, name).values())
        last = abs(curve[-1] - curve[-2])
        stable &= last <= 0.01 * (curve[0] - curve[-1])
        texts.append(f"{name}: {len(curve) - 1} passes to {curve[-1]:.2f}")
    return stable, ", ".join(texts)


def source_keeps_bound(rows: Sequence[Row]) -> tuple[bool, str]:
    bounds, bare = by_x(rows, "source_bound"), by_x(rows, "unrewritable")
    paper = next(float(str(row["paper"])) for row in rows if row["series"] == "source_bound")
    text = f"source feeds {_listed(bounds, '.0f')}; unrewritable {next(iter(bare.values())):.0f}"
    return max(bounds.values()) <= paper, text


def source_keeps_bound_as_published(rows: Sequence[Row]) -> tuple[bool, str]:
    bare = next(iter(by_x(rows, "unrewritable_without_navigation").values()))
    return bare <= 72, f"{bare:.0f} views cannot be rewritten without navigation"


def loga_helps_at_five(rows: Sequence[Row]) -> tuple[bool, str]:
    saved = _saved(rows)
    return saved["5"] >= 0.1, f"mean latency lower by {_listed(saved, '.0%')}"


def loga_always_helps(rows: Sequence[Row]) -> tuple[bool, str]:
    saved = _saved(rows)
    return min(saved.values()) > 0, f"mean latency lower by {_listed(saved, '.0%')}"


def _saved(rows: Sequence[Row]) -> dict[object, float]:
    before = by_x(rows, f"{OPTIMAL}, mean_latency_s")
    after = by_x(rows, f"{LOGA}, mean_latency_s")
    return {x: 1 - after[x] / before[x] for x in before}


def unlimited_is_overloaded(rows: Sequence[Row]) -> tuple[bool, str]:
    """For the plans after LOGA, whose views use their whole capacity."""
    slowest = by_x(rows, f"{LOGA}, slowest_s")
    others = [value for x, value in slowest.items() if x not in ("5", NONE)]
    return slowest[NONE] > max(others), f"slowest view after LOGA {_listed(slowest, '.2f')} s"


def optimal_unlimited_is_overloaded(rows: Sequence[Row]) -> tuple[bool, str]:
    slowest = by_x(rows, f"{OPTIMAL}, slowest_s")
    others = [value for x, value in slowest.items() if x not in ("5", NONE)]
    return slowest[NONE] > max(others), f"slowest view {_listed(slowest, '.2f')} s"


def near_and_far(rows: Sequence[Row]) -> tuple[bool, str]:
    fast, slow = by_x(rows, f"{OPTIMAL}, fastest_s")["5"], by_x(rows, f"{OPTIMAL}, slowest_s")["5"]
    return slow > 20 * fast, f"{1000 * fast:.0f} ms to {slow:.2f} s"


def extremes_are_slowest(rows: Sequence[Row]) -> tuple[bool, str]:
    """Both are slower than most bounds in between."""
    found = by_x(rows, f"{OPTIMAL}, delivery_s")
    between = statistics.median(value for x, value in found.items() if x not in ("5", NONE))
    text = f"mean delivery {_listed(found, '.2f')} s"
    return min(found["5"], found[NONE]) > between, text


def spreading_relieves(rows: Sequence[Row]) -> tuple[bool, str]:
    published, spread = by_x(rows, PUBLISHED_TIES), by_x(rows, SPREADING)
    text = "; ".join(f"{x}: {published[x]:,.0f} and {spread[x]:,.0f}" for x in published)
    fewer = spread["views at the source"] < published["views at the source"]
    return fewer and spread["views that feed"] > published["views that feed"], text


def estimates_are_near(rows: Sequence[Row]) -> tuple[bool, str]:
    low, middle, high = (
        next(iter(by_x(rows, name).values())) for name in ("first decile", "median", "last decile")
    )
    text = f"estimated over measured rows: {low:.2f}, {middle:.2f}, {high:.2f}"
    return low > 0.3 and 2 / 3 < middle < 1.5 and high < 4, text


def mean_latency_is_near(rows: Sequence[Row]) -> tuple[bool, str]:
    found = by_x(rows, f"{OPTIMAL}, mean_latency_s")
    average = sum(found.values()) / len(found)
    return 0.8 <= average <= 3.2, f"{average:.2f} s over all bounds: {_listed(found, '.2f')}"
