"""What Li, Hou and Jacobsen say about their experiments, as claims that can turn out wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from penstock.lab.evidence.checks import agrees, line, places, value
from penstock.lab.evidence.model import Check, Claim, Row, Size
from penstock.lab.experiments._li2005_routing import (
    PAPER_COVERED,
    PAPER_TABLE_2,
    RANDOM_ORDER,
    STATES,
)

FULL = frozenset({Size.FULL})
SETS = ("A", "B")


def covers_about(name: str) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        covered = 1 - value(rows, f"set {name}", "covering") / value(rows, f"set {name}", "none")
        return abs(covered - PAPER_COVERED[name]) <= 0.05, f"{covered:.1%} covered"

    return check


def shrinks_from_state_to_state(rows: Sequence[Row]) -> tuple[bool, str]:
    sizes = {name: [value(rows, f"set {name}", state) for state in STATES] for name in SETS}
    falls = all(a > b for found in sizes.values() for a, b in pairwise(found))
    return falls, "; ".join(
        f"set {name} {', '.join(f'{size:,.0f}' for size in found)}" for name, found in sizes.items()
    )


def merges_more_with_fewer_predicates(rows: Sequence[Row]) -> tuple[bool, str]:
    gone = {
        name: 1 - value(rows, f"set {name}", STATES[2]) / value(rows, f"set {name}", STATES[1])
        for name in SETS
    }
    return gone["A"] > gone["B"], ", ".join(
        f"perfect merging removes {share:.1%} of set {name}" for name, share in gone.items()
    )


def leaves_as_published(state: str) -> Check:
    """By Table 2: the naive approach takes time in proportion to the entries."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        times = {n: (PAPER_TABLE_2[n, state][1], PAPER_TABLE_2[n, "none"][1]) for n in SETS}
        published = {name: left / everything for name, (left, everything) in times.items()}
        left = {
            name: value(rows, f"set {name}", state) / value(rows, f"set {name}", "none")
            for name in SETS
        }
        return all(abs(left[n] / published[n] - 1) <= 0.25 for n in SETS), ", ".join(
            f"set {n} {left[n]:.1%} (published {published[n]:.1%})" for n in SETS
        )

    return check


def random_order_leaves_more(rows: Sequence[Row]) -> tuple[bool, str]:
    more = {
        name: value(rows, f"set {name}", RANDOM_ORDER) - value(rows, f"set {name}", STATES[2])
        for name in SETS
    }
    return min(more.values()) > 0, ", ".join(f"set {n} {m:+,.0f}" for n, m in more.items())


def interests_cover_the_same(rows: Sequence[Row]) -> tuple[bool, str]:
    pairs = [
        (value(rows, f"set {name}", "covering"), value(rows, f"set {name}", "interests: covering"))
        for name in SETS
    ]
    return all(a == b for a, b in pairs), ", ".join(f"{a:,.0f} and {b:,.0f}" for a, b in pairs)


def interests_merge_more(rows: Sequence[Row]) -> tuple[bool, str]:
    pairs = [
        (value(rows, f"set {n}", STATES[2]), value(rows, f"set {n}", f"interests: {STATES[2]}"))
        for n in SETS
    ]
    return all(b <= a for a, b in pairs), ", ".join(
        f"{b:,.0f} entries beside {a:,.0f}" for a, b in pairs
    )


FIGURE_12 = (
    Claim("About 75 % of the subscriptions of set A are covered (fitted).", covers_about("A")),
    Claim(
        "About 45 % of the subscriptions of set B are covered (fitted).",
        covers_about("B"),
        "the number of ranges was fitted at 200,000 subscriptions; with few values a range covers"
        " a coarser share",
    ),
    Claim(
        "Perfect merging further reduces the table, imperfect even more.",
        shrinks_from_state_to_state,
    ),
    Claim(
        "The fewer distinct predicates, the more subscriptions can be merged.",
        merges_more_with_fewer_predicates,
    ),
    Claim(
        "Perfect merging leaves 16.6 % of set A and 50.6 % of set B (by Table 2's naive times),"
        " within a quarter.",
        leaves_as_published(STATES[2]),
        "how often values are neighbours is not in the paper",
        sizes=FULL,
    ),
    Claim(
        "Imperfect merging leaves 14.6 % of set A and 46.9 % of set B (by Table 2's naive times),"
        " within a quarter.",
        leaves_as_published(STATES[3]),
        "how often values are neighbours is not in the paper",
        sizes=FULL,
    ),
    Claim(
        "With a random order of attributes perfect merging leaves more entries (6,076).",
        random_order_leaves_more,
        "all attributes are equally frequent and spread here, so that no order is better than"
        " another",
    ),
    Claim(
        "Covering on interests leaves the same entries.",
        interests_cover_the_same,
        is_ours=True,
        sizes=frozenset({Size.SMALL}),
    ),
    Claim(
        "Perfect merging on interests, along all attributes, leaves no more than on diagrams.",
        interests_merge_more,
        is_ours=True,
    ),
)


def reduced(name: str, published: float) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        series = f"set {name}, diagrams"
        saved = 1 - value(rows, series, STATES[3]) / value(rows, series, "none")
        return abs(saved - published) <= 0.1, f"by {saved:.1%}"

    return check


def diagrams_are_faster(rows: Sequence[Row]) -> tuple[bool, str]:
    ratios = [
        value(rows, f"set {n}, naive", state) / value(rows, f"set {n}, diagrams", state)
        for n in SETS
        for state in STATES
    ]
    return min(ratios) >= 3, f"{min(ratios):.0f} to {max(ratios):.0f} times (published 3.4 to 5.3)"


def distinct_once(rows: Sequence[Row]) -> tuple[bool, str]:
    looked = {(row["series"], row["x"]): row["looked_at"] for row in rows if row["looked_at"]}
    shares = [
        float(str(looked[f"set {n}, diagrams", s])) / float(str(looked[f"set {n}, naive", s]))
        for n in SETS
        for s in STATES
    ]
    return max(shares) < 1, f"{min(shares):.2f} to {max(shares):.2f} nodes for each predicate held"


def b_is_slower(rows: Sequence[Row]) -> tuple[bool, str]:
    nodes = [
        next(
            float(str(row["looked_at"]))
            for row in rows
            if row["series"] == f"set {n}, diagrams" and row["x"] == "none"
        )
        for n in SETS
    ]
    return nodes[1] > nodes[0], f"{nodes[0]:,.0f} nodes in set A, {nodes[1]:,.0f} in set B"


TABLE_2 = (
    Claim(
        "The matching time of set A is reduced by 85.7 % by covering and merging.",
        reduced("A", 0.857),
        "a batch of publications is matched at once, so that what is saved depends on what a batch"
        " costs whatever the table is",
        sizes=FULL,
    ),
    Claim("Diagrams are much faster than the naive approach.", diagrams_are_faster, sizes=FULL),
    Claim(
        "Distinct predicates are evaluated once: fewer nodes than the naive approach has tests.",
        distinct_once,
    ),
    Claim("Without covering set B needs more evaluations than set A.", b_is_slower),
    Claim(
        "The published milliseconds, within 30 %.",
        agrees(0.3),
        "machines and languages differ, and here 64 publications are evaluated at once",
        sizes=FULL,
    ),
)


def last(rows: Sequence[Row], series: str) -> float:
    return line(rows, series)[-1][1]


def one_pass_is_faster(rows: Sequence[Row]) -> tuple[bool, str]:
    saved = 1 - last(rows, "with cache") / last(rows, "two passes")
    return saved > 0, f"{saved:.1%} less at the end (published 45.8 %)"


def cache_pays_in_the_end(rows: Sequence[Row]) -> tuple[bool, str]:
    ratio = last(rows, "index without cache") / last(rows, "index with cache")
    return ratio > 1, f"{ratio:.1f} times (published 9.5)"


def cache_costs_at_first(rows: Sequence[Row]) -> tuple[bool, str]:
    first = places(rows)[0]
    ratio = value(rows, "with cache", first) / value(rows, "without cache", first)
    return ratio > 1, f"{ratio:.2f} times, in the first block"


FIGURE_13 = (
    Claim(
        "One pass is faster than two separate covering algorithms (by 45.8 %).",
        one_pass_is_faster,
        sizes=FULL,
    ),
    Claim(
        "Once the index is built, the cache finds covering predicates faster (2.46 for 23.41 ms).",
        cache_pays_in_the_end,
        sizes=FULL,
    ),
    Claim(
        "While predicates are new, insertion with the cache costs more.",
        cache_costs_at_first,
        "a new predicate finds its place in the table along the table's own edges, which is less"
        " work than the comparison with every predicate that the cache saves",
        sizes=FULL,
    ),
)


def most_mergers_below(limit: float) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        entries = dict(line(rows, "entries"))
        first, there, end = entries[0.0], entries[limit], entries[max(entries)]
        share = (first - there) / max(1.0, first - end)
        return share > 0.5, f"{share:.0%} of what imperfect merging removes"

    return check


def false_positives_below(series: str, limit: float) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        shares = [
            float(str(row["false_positive_share"]))
            for row in rows
            if row["series"] == series and float(str(row["x"])) < limit
        ]
        return max(shares) <= 0.025, f"at most {max(shares):.2%}"

    return check


def nothing_in_vain_at_zero(rows: Sequence[Row]) -> tuple[bool, str]:
    shares = [float(str(row["false_positive_share"])) for row in rows if not row["x"]]
    return max(shares) == 0, f"{max(shares):.2%} false positives"


def advertisements_help(rows: Sequence[Row]) -> tuple[bool, str]:
    pairs = [
        (value(rows, "entries", x), value(rows, "entries, advertised", x)) for x in places(rows)
    ]
    return sum(b for _, b in pairs) < sum(a for a, _ in pairs), ", ".join(
        f"{b:,.0f} for {a:,.0f}" for a, b in pairs
    )


def dropping_merges_more(rows: Sequence[Row]) -> tuple[bool, str]:
    pairs = [
        (value(rows, "entries", x), value(rows, "entries, predicates dropped", x))
        for x in places(rows)
        if x
    ]
    return all(b < a for a, b in pairs), ", ".join(f"{b:,.0f} for {a:,.0f}" for a, b in pairs)


FIGURE_14 = (
    Claim(
        "Covering and perfect merging leave about 32,852 of 100,000 subscriptions, within 25 %.",
        agrees(0.25),
        "how often values are neighbours is not in the paper",
        sizes=FULL,
    ),
    Claim(
        "Most mergers are generated with an IMT of at most 0.15.",
        most_mergers_below(0.15),
    ),
    Claim("With advertisements more subscriptions can be merged.", advertisements_help),
    Claim(
        "Dropping predicates that differ leaves fewer entries at every threshold.",
        dropping_merges_more,
        is_ours=True,
    ),
)
FIGURE_15 = (
    Claim(
        "Below an IMT of 0.1 there are at most 2.5 % false positives.",
        false_positives_below("entries", 0.1),
        "how many attributes a publication has is not in the paper: with three, a quarter of all"
        " publications is wanted by nobody, and the threshold limits each merger, not their sum",
    ),
    Claim(
        "The same with publications of six attributes.",
        false_positives_below("entries, publications of 6", 0.1),
        sizes=FULL,
    ),
    Claim(
        "At an IMT of 0 nothing is sent in vain, with and without advertisements.",
        nothing_in_vain_at_zero,
        is_ours=True,
    ),
)


def learnt_needs_fewer(rows: Sequence[Row]) -> tuple[bool, str]:
    nodes: dict[object, dict[str, float]] = {}
    for row in rows:
        nodes.setdefault(row["set"], {})[str(row["order"])] = float(str(row["nodes"]))
    texts, holds = [], True
    for name, found in nodes.items():
        others = [count for order, count in found.items() if order.startswith("random")]
        holds &= found["learnt"] < min(others)
        texts.append(f"set {name} {found['learnt']:,.0f} for {min(others):,.0f} and more")
    return holds, ", ".join(texts)


ORDER = (
    Claim(
        "A learnt order of attributes needs fewer nodes than random ones.",
        learnt_needs_fewer,
    ),
)
