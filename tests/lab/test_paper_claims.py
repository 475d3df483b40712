"""Claims of two papers: none fails at the small size, and each can turn out wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest

from penstock.lab.evidence import checks, multiway_runs, scheme_runs
from penstock.lab.evidence.model import Check, Claim, Item, Row, Size
from penstock.lab.evidence.papers import _chandramouli2008_claims as joins
from penstock.lab.evidence.papers import _chandramouli2008_network_claims as networks
from penstock.lab.evidence.papers import _chandramouli2008_runs as join_runs
from penstock.lab.evidence.papers import _li2005_claims as diagrams
from penstock.lab.evidence.papers import li2005
from penstock.lab.evidence.registry import find_paper
from penstock.lab.evidence.running import run_item
from penstock.lab.experiments import _li2005_routing as routing
from penstock.lab.experiments.joins_decomposition import preferring
from penstock.network.payloads import PayloadCache
from penstock.routing.diagrams import DiagramTable
from penstock.routing.diagrams.merging import TABLE_1
from penstock.routing.diagrams.table import Relations
from penstock.routing.merging.measures import Measured, UniformMeasure

# In one process, which measures everything once without a mutant.
pytestmark = pytest.mark.xdist_group("joins and diagrams as published")


def quiet(_: str) -> None:
    pass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["li2005", "chandramouli2008"])
def test_no_claim_fails(name: str) -> None:
    """At the small size."""
    held = 0
    for item in find_paper(name).items:
        finding = run_item(item, Size.SMALL, quiet)
        assert finding.rows, item.name
        verdicts = [judgement for _, judgement in finding.judgements]
        assert [one.text for one in verdicts if one.verdict == "fails"] == [], item.name
        held += sum(one.verdict == "holds" for one in verdicts)
    assert held >= {"li2005": 10, "chandramouli2008": 60}[name]


def test_items_by_name() -> None:
    paper = find_paper("chandramouli2008")
    assert {item.name for item in paper.only(["figure 1"]).items} == set()
    assert [item.name for item in paper.only(["figure 18", "table 4"]).items] == [
        "table 4",
        "figure 18, CAN",
        "figure 18, CBN",
    ]
    assert all(item.experiment for item in paper.items), "nothing is missing"
    assert all(item.claims for item in paper.items)


def rows_of(claim: Claim, item: Item) -> Sequence[Row]:
    assert item.experiment is not None
    assert Size.SMALL in claim.sizes
    return item.experiment(Size.SMALL, quiet)


def item_of(paper: str, name: str) -> Item:
    return next(item for item in find_paper(paper).items if item.name == name)


def long_skylines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ref-SJ-Clu+ describes every joining row."""
    monkeypatch.setitem(scheme_runs.SEMIJOINS, "Ref-SJ-Clu+", "ref-sj-tup")


def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories forget at once."""
    monkeypatch.setattr(PayloadCache, "set_bit", lambda *_: None)


def any_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """`greedy` prefers U, then R."""

    def decompose(queries: dict[int, object], _: object) -> dict[int, object]:
        return {n: preferring(q, "urt") for n, q in queries.items()}  # type: ignore[arg-type]

    monkeypatch.setattr(multiway_runs, "decompose", decompose)


def nothing_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every subscription is kept."""
    monkeypatch.setattr(DiagramTable, "relations", lambda *_: Relations(None, []))


def nothing_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "merge_diagrams", lambda *_, **__: 0)


def everything_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imperfect mergers seem to let nothing through that is not wanted."""
    monkeypatch.setattr(UniformMeasure, "measured", lambda *_: Measured(0.0, 0.0))


def nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping predicates is not among the rules."""
    *others, dropping = routing.MERGING_KINDS
    kinds = (*others, replace(dropping, rules=TABLE_1))
    monkeypatch.setattr(routing, "MERGING_KINDS", kinds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "claim", "paper", "figure"),
    [
        (long_skylines, joins.LOWEST_OF_SKYLINES, "chandramouli2008", "figure 6, CAN"),
        (nothing_is_known, networks.FIGURE_11[1], "chandramouli2008", "figure 11, CAN"),
        (any_decomposition, networks.FIGURE_13[0], "chandramouli2008", "figure 13, CBN"),
        (nothing_covers, diagrams.FIGURE_12[0], "li2005", "figure 12"),
        (nothing_merges, diagrams.FIGURE_12[2], "li2005", "figure 12"),
        (nothing_is_dropped, diagrams.FIGURE_14[3], "li2005", "figure 14"),
        (everything_is_free, diagrams.FIGURE_15[2], "li2005", "figure 15"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_mutants_make_claims_fail(
    mutant: Callable[[pytest.MonkeyPatch], None],
    claim: Claim,
    paper: str,
    figure: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    item = item_of(paper, figure)
    assert claim.check(rows_of(claim, item))[0]
    for module, names in CACHED.items():
        for name in names:  # what others have measured is kept for others
            monkeypatch.setattr(module, name, cache(getattr(module, name).__wrapped__))
    mutant(monkeypatch)
    assert not claim.check(rows_of(claim, item))[0]


CACHED = {
    join_runs: ("by_payload", "by_subscriptions", "by_repository", "by_mix"),
    li2005: ("_states", "_merging"),
}


def line(**series: Sequence[float]) -> list[Row]:
    """Rows of series over x = 1, 2, …"""
    return [
        {"series": name, "x": i + 1, "ours": y, "paper": None}
        for name, values in series.items()
        for i, y in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.is_lowest("a", ["b"]), line(a=[1, 2], b=[2, 2]), line(a=[1, 3], b=[2, 2])),
        (
            checks.is_times_better("a", ["b"], 10),
            line(a=[1, 2], b=[10, 20]),
            line(a=[1, 2], b=[10, 19]),
        ),
        (
            checks.is_times_better("a", ["b"], 10, last_only=True),
            line(a=[1, 2], b=[1, 20]),
            line(a=[1, 2], b=[10, 19]),
        ),
        (checks.all_grow(["a"], 2), line(a=[1, 3]), line(a=[1, 2])),
        (checks.all_shrink(["a"]), line(a=[2, 1]), line(a=[2, 2])),
        (checks.is_steady("a", 0.1), line(a=[20, 21]), line(a=[20, 23])),
        (
            checks.agrees(0.1),
            [{"series": "a", "x": 1, "ours": 21, "paper": 20}],
            [{"series": "a", "x": 1, "ours": 23, "paper": 20}],
        ),
        (checks.agrees(0.1), [{"series": "a", "x": 1, "ours": 1, "paper": 1}], line(a=[1])),
        (
            networks.greedy_is_best,
            line(greedy=[2.0], S=[2.0]),
            line(greedy=[2.1], S=[2.0]),
        ),
        (
            networks.five_nine_127,
            line(greedy=[1.0], **{"Rel-Sel": [5], "Ref-J": [9], "Enum-J": [127]}),
            line(greedy=[1.0], **{"Rel-Sel": [5], "Ref-J": [9], "Enum-J": [12]}),
        ),
    ],
)
def test_checks_can_turn_out_wrong(check: Check, good: list[Row], bad: list[Row]) -> None:
    assert check(good)[0]
    assert not check(bad)[0]
