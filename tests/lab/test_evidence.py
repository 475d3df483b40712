"""The papers, run again: registry, verdicts, pages, and the claims of Liu et al. (2007)."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import PenstockError
from penstock.lab.evidence.existing import ExistingExperiment, Options, not_built
from penstock.lab.evidence.model import Claim, Finding, Item, Paper, Plot, Row, Size, Verdict
from penstock.lab.evidence.pages import Setting, save_findings, write_index, write_paper
from penstock.lab.evidence.papers import _liu2007_claims as claims
from penstock.lab.evidence.plots import COLOURS, MARKERS, draw_plot
from penstock.lab.evidence.registry import PAPERS, find_paper, find_papers
from penstock.lab.evidence.running import TimeLeft, run_item
from penstock.lab.evidence.schedule_runs import Effort, measure_costs
from penstock.lab.evidence.summaries import interval_95
from penstock.lab.workloads.overlapping import MATCHING_SHARE, SPREADS, Overlapping
from penstock.operators.schedules import benefit, sub_order
from penstock.operators.schedules.chain_order import greedy_path
from penstock.operators.schedules.packed import Packed
from penstock.operators.schedules.rounds import Floats, Prepared, Weights, prepare_rounds

SETTING = Setting(Size.SMALL, "a machine", "abc123")


def quiet(_: str) -> None: ...


def test_papers_are_found_by_name() -> None:
    assert [paper.name for paper in find_papers("all")] == list(PAPERS)
    for paper in find_papers("all"):
        names = [item.name for item in paper.items]
        assert len(set(names)) == len(names)
        assert all(item.experiment is None or item.sizes for item in paper.items)
    with pytest.raises(PenstockError, match="no paper is called 'liu'"):
        find_paper("liu")


def a_claim(holds: bool, gap: str = "") -> Claim:
    return Claim("It is so.", lambda rows: (holds, f"{len(rows)} rows"), gap)


def an_item(*found: Claim) -> Item:
    rows: list[Row] = [
        {"series": name, "x": x, "ours": x * 2.0, "paper": 5.0 if x == 2 else None}
        for name in ("a", "<b>")
        for x in (1, 2, 3)
    ]
    return Item("figure 1", "A < B", lambda *_: rows, (), found, Plot("x", "ours"))


def test_verdicts() -> None:
    item = an_item(a_claim(True), a_claim(False), a_claim(False, "why"), a_claim(True, "why"))
    finding = run_item(item, Size.SMALL, quiet)
    assert [judgement.text for _, judgement in finding.judgements] == [
        "holds: 6 rows",
        "fails: 6 rows",
        "not reproduced: because why (6 rows)",
        "holds: 6 rows",
    ]
    missing = run_item(not_built("figure 2", "Other"), Size.SMALL, quiet)
    assert missing.count(Verdict.NOT_BUILT) == 1


def test_claims_about_the_published_size_are_not_checked_at_another() -> None:
    claim = Claim("At 80K", lambda _: (False, ""), sizes=frozenset({Size.FULL}))
    assert not run_item(an_item(claim), Size.SMALL, quiet).judgements
    assert run_item(an_item(claim), Size.FULL, quiet).count(Verdict.FAILS) == 1


def test_pages_hold_everything_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    paper = Paper("liu2007", "Title & more", "Somebody", (an_item(a_claim(True)),), ("An `x`.",))
    findings = [run_item(item, Size.SMALL, quiet) for item in paper.items]
    page = write_paper(paper, findings, SETTING, tmp_path).read_text(encoding="utf-8")
    for part in ("Title &amp; more", "a machine", "abc123", "&lt;b&gt;", "<svg", "holds: 6 rows"):
        assert part in page
    assert "penstock lab paper liu2007</code>" in page
    assert "<code>x</code>" in page
    assert not re.findall(r'(?:src|href)="(?!#)[^"]', page.replace('xlink:href="#', ""))
    assert (tmp_path / "liu2007-figure-1.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "liu2007-figure-1.svg").read_text(encoding="utf-8")
    data = save_findings(paper, findings, SETTING, tmp_path)
    assert json.loads((tmp_path / "liu2007.json").read_text(encoding="utf-8")) == data
    index = write_index(tmp_path, PAPERS).read_text(encoding="utf-8")
    assert 'href="liu2007.html"' in index
    assert "li2005.html" not in index  # it has no page


@pytest.mark.slow
def test_plots_have_a_colour_and_a_marker_for_each_of_13_series() -> None:
    assert len(set(COLOURS)) == len(set(MARKERS)) == 13
    rows: list[Row] = [
        {"series": f"series {n}", "x": x, "ours": n + x} for n in range(13) for x in (1, 2)
    ]
    picture = draw_plot(Plot("x", "ours", log_x=True, log_y=True), rows, "lines")
    assert picture.svg == draw_plot(Plot("x", "ours", log_x=True, log_y=True), rows, "lines").svg
    assert all(colour in picture.svg for colour in COLOURS)
    bars = draw_plot(Plot("x", "ours"), [row for row in rows if row["x"] == 1], "bars")
    assert all(colour in bars.svg for colour in COLOURS)


def test_an_existing_experiment_is_run_once_for_all_of_its_items() -> None:
    small: Options = {"most": 5, "star": True, "bound": [3, 0]}
    options: dict[Size, Options] = {Size.SMALL: small, Size.FULL: {}}
    experiment = ExistingExperiment("some-thing", options, {Size.SMALL: 4.0})
    experiment._rows[Size.SMALL] = [{"item": "table 1", "n": 1}, {"item": "table 2", "n": 2}]
    first, second = experiment.item("t1", "", "table 1"), experiment.item("t2", "", "table 2")
    assert [row["n"] for row in run_item(first, Size.SMALL, quiet).rows] == [1]
    assert [row["n"] for row in run_item(second, Size.SMALL, quiet).rows] == [2]
    assert first.commands[Size.SMALL] == (
        "penstock lab run some-thing --most 5 --star --bound 3 --bound 0"
    )
    assert (first.seconds, second.seconds) == ({Size.SMALL: 4.0}, {})


def test_existing_experiments_take_the_options_they_are_given() -> None:
    for paper in find_papers("all"):
        for command in {c for item in paper.items for c in item.commands.values()}:
            name = command.split()[3].replace("-", "_")
            function = getattr(import_module(f"penstock.lab.experiments.{name}"), name)
            given = {word[2:].replace("-", "_") for word in command.split() if word[:2] == "--"}
            assert given <= set(inspect.signature(function).parameters)


def test_the_time_left_follows_how_long_items_took() -> None:
    items = [Item(str(n), "", lambda *_: [], seconds={Size.SMALL: 10.0}) for n in range(3)]
    left = TimeLeft(items, Size.SMALL)
    assert left.seconds == 30.0
    left.add(Finding(items[0], seconds=20.0))
    assert left.seconds == 40.0  # twenty expected, and twice as slow


def test_intervals() -> None:
    assert interval_95([5.0]) is None
    assert interval_95([1.0, 3.0]) == pytest.approx(12.71)


@pytest.mark.parametrize("spread", SPREADS)
def test_the_workload_is_as_published(spread: str) -> None:
    draw = Overlapping(4_000, 500, 1.0, 7, spread).draw()
    lengths = [len(chain) for chain in draw.chains]
    assert (min(lengths), max(lengths)) == (3, 7)
    assert all(len(set(chain)) == len(chain) for chain in draw.chains)
    counts = sorted(
        (sum(t in chain for chain in draw.chains) for t in range(0, 500, 5)), reverse=True
    )
    assert counts[0] > 20 * max(1, counts[-1])  # popularity is skewed
    matching = [
        sum(all(event[t] for t in chain) for chain in draw.chains) / 4_000
        for event in (draw.event() for _ in range(60))
    ]
    assert sum(matching) / 60 == pytest.approx(MATCHING_SHARE, rel=0.5)
    assert Overlapping(4_000, 500, 1.0, 7, spread).draw().chains == draw.chains


@pytest.mark.slow
def test_no_claim_of_liu2007_fails() -> None:
    """At the small size, all items but those about time."""
    for item in find_paper("liu2007").items:
        finding = run_item(item, Size.SMALL, quiet)
        assert finding.rows
        failing = [
            judgement.text for _, judgement in finding.judgements if judgement.verdict == "fails"
        ]
        assert not failing, item.name


def _measured(subscriptions: Sequence[int], predicates: int = 3_000) -> list[Row]:
    rows: list[Row] = []
    for count in subscriptions:
        costs = measure_costs(Overlapping(count, predicates), Effort(10, 2, 1), quiet)
        rows += costs.rows(count, {})
    return rows


def _cheap_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: to `benefit`, popularity speaks against a predicate."""

    def prepare(
        packed: Packed, rates: Floats, weights: Weights, shares: tuple[float, ...]
    ) -> Prepared:
        return prepare_rounds(packed, rates / np.diff(packed.firsts) ** 2, weights, shares)

    monkeypatch.setattr(benefit, "prepare_rounds", prepare)


def _last_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: chains of `sub-order` start with what is most likely true."""
    monkeypatch.setattr(sub_order, "greedy_path", lambda *given: greedy_path(*given)[::-1].copy())

    def key(self: sub_order.SubOrder, predicate: int) -> tuple[float, int]:
        p, cost = self._estimates.probability(predicate), self._estimates.cost(predicate)
        self._known[predicate] = -p, p, cost
        return -p, predicate

    monkeypatch.setattr(sub_order.SubOrder, "_key", key)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "claim"),
    [
        (_cheap_first, claims.BENEFIT_SAVES),
        (_cheap_first, claims.BENEFIT_IS_NEAR),
        (_last_first, claims.SUB_ORDER_IS_BETTER),
    ],
    ids=["saving of benefit", "bound of benefit", "lead of sub-order"],
)
def test_mutants_make_claims_fail(
    mutant: Callable[[pytest.MonkeyPatch], None], claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claim.check(_measured([2_400]))[0]
    mutant(monkeypatch)
    assert not claim.check(_measured([2_400]))[0]


def line(**series: Sequence[float]) -> list[Row]:
    """Rows of series named with _ for -, over x = 100, 200, …"""
    return [
        {"series": name.replace("_", "-"), "x": 100 * (i + 1), "ours": y, "paper": None}
        for name, values in series.items()
        for i, y in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        (
            claims.SUBLINEAR,
            line(sequential=[10, 15], sub_order=[8, 12]),
            line(sequential=[10, 20], sub_order=[8, 12]),
        ),
        (
            claims.SEQUENTIAL_BEATS_NAIVE,
            line(naive=[10, 20], sequential=[9, 15]),
            line(naive=[10, 20], sequential=[9, 21]),
        ),
        (claims.FIGURE_4[3], line(naive=[10, 20]), line(naive=[10, 15])),
        (
            claims.FIGURE_4[4],
            line(naive=[10, 100], sequential=[9, 21], sub_order=[8, 20]),
            line(naive=[10, 100], sequential=[9, 31], sub_order=[8, 20]),
        ),
        (
            claims.FIGURE_6[0],
            line(naive=[10, 100], sequential=[9, 21], sub_order=[8, 20]),
            line(naive=[10, 100], sequential=[9, 91], sub_order=[8, 20]),
        ),
        (claims.FIGURE_7[0], line(sequential=[100, 112]), line(sequential=[100, 130])),
        (
            claims.FIGURE_7[1],
            line(sequential=[100, 112], sub_order=[80, 100]),
            line(sequential=[100, 112], sub_order=[80, 90]),
        ),
        (claims.FIGURE_7[2], line(naive=[100, 105]), line(naive=[100, 140])),
        (
            claims.FIGURE_8[0],
            line(sequential=[9, 8, 7], sub_order=[8, 7, 6]),
            line(sequential=[9, 8, 7], sub_order=[8, 7, 9]),
        ),
        (
            claims.FIGURE_4[5],
            [{"series": "sequential", "x": 1, "ours": 7_000, "paper": 7_761}],
            [{"series": "sequential", "x": 1, "ours": 12_000, "paper": 7_761}],
        ),
        (
            claims.THEOREM_2[0],
            [{"series": "equal", "x": 3, "ours": 3.0, "paper": 3.0}],
            [{"series": "equal", "x": 3, "ours": 3.1, "paper": 3.0}],
        ),
        (
            claims.SCHEDULING_TIME[0],
            [{"series": "benefit", "x": 1, "ours": 4.9, "fastest": 4.0}],
            [{"series": "benefit", "x": 1, "ours": 5.1, "fastest": 4.0}],
        ),
    ],
)
def test_claims_can_turn_out_wrong(claim: Claim, good: list[Row], bad: list[Row]) -> None:
    assert claim.check(good)[0]
    assert not claim.check(bad)[0]
