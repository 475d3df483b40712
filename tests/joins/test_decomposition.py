"""Splitting queries into semijoins: what is possible, known, expensive and chosen."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog, Row, RowKey
from penstock.joins.decomposition import samples as samples_module
from penstock.joins.decomposition.costs import CostModel, SelectiveCost, Semijoin, UniformCost
from penstock.joins.decomposition.greedy import decompose, improvements, total_cost
from penstock.joins.decomposition.samples import Sample
from penstock.joins.decomposition.simulation import SimulatedCost
from penstock.joins.decomposition.statistics import Statistics
from penstock.predicates.boxes import contains
from penstock.spaces import (
    Choice,
    Decomposition,
    Side,
    candidates,
    decomposition_from_plain,
    decomposition_of,
    fits,
    has_choice,
    place,
    plain_decomposition,
    plain_rule,
    space_ids,
    space_of,
)
from penstock.sql import Query, bind, parse_relation
from penstock.testing.decompositions import numbered_decomposition
from tests.examples import examples


def catalog(*names: str) -> Catalog:
    made = Catalog()
    for offset, name in enumerate(names):
        columns = "(id BIGINT PRIMARY KEY, k INTEGER, a INTEGER, b INTEGER, c INTEGER)"
        made.add(parse_relation(f"CREATE TABLE {name} {columns}"), offset)
    return made


STAR = catalog("r", "s", "t", "u")
CHAIN = "SELECT * FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k"


def query(where: str = "r.a > 1 AND s.a > 1 AND t.a > 1 AND t.b < 7", text: str = CHAIN) -> Query:
    return bind(f"{text} WHERE {where}", STAR)


def test_the_plain_rule_takes_the_tightest_condition() -> None:
    (row,) = plain_rule(query("r.a > 1 AND s.a > 1 AND t.a > 1 AND t.b = 7"))
    assert row == (Choice(1, (2,)), Choice(2, (3,)), Choice(1, (2,)))


@given(st.integers(0, 200))
def test_a_decomposition_survives_storing(number: int) -> None:
    wanted = query("(r.a > 1 OR t.b = 2) AND s.a > 1")
    chosen = numbered_decomposition(wanted, number)
    assert fits(wanted, chosen)
    stored = decomposition_from_plain(plain_decomposition(chosen))
    assert decomposition_of(wanted, stored) == chosen
    assert space_ids(wanted, chosen) == {one.space.id for one in place(wanted, 1, chosen)}


@pytest.mark.parametrize(
    "plain",
    [
        [],
        [[[1, 2]]],
        [[[2, 2], [0, 2], [1, 2]]],
        [[[1, 4], [0, 2], [1, 2]]],
        [[[9], [0], [1]]],
    ],
)
def test_what_does_not_fit_is_not_taken(plain: list[list[list[int]]]) -> None:
    assert not fits(query(), decomposition_from_plain(plain))
    assert decomposition_of(query(), decomposition_from_plain(plain)) == plain_rule(query())


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="without a neighbour"):
        decomposition_from_plain([[[]]])


def test_where_there_is_nothing_to_choose() -> None:
    assert not has_choice(bind("SELECT * FROM r WHERE a > 1", STAR))
    assert not has_choice(bind("SELECT * FROM r JOIN s USING (k) WHERE r.a > 1 AND s.a > 1", STAR))
    assert has_choice(query())


# Samples


@settings(max_examples=examples(30))
@given(st.data())
def test_a_sample_holds_whole_join_values(data: st.DataObject) -> None:
    relation = STAR["r"]
    rows: dict[RowKey, Row] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples_module, "MAX_ROWS", 12)
        by_join, by_key = Sample(relation, (1,)), Sample(relation, None)
        for number in range(data.draw(st.integers(1, 80))):
            old = data.draw(st.sampled_from(sorted(rows))) if rows else None
            if old is not None and data.draw(st.integers(0, 2)) == 0:
                for sample in (by_join, by_key):
                    sample.remove(old, rows[old])
                del rows[old]
                continue
            value = data.draw(st.none() | st.integers(0, 30))
            rows[number,] = (number, value, 0, 0, 0)
            for sample in (by_join, by_key):
                sample.add((number,), rows[number,])
    for join_value, one in by_join.values.items():
        mine = {key: row for key, row in rows.items() if row[1] == join_value[0]}
        assert one.rows == mine
        assert one.count == len(mine)
    assert by_key.held == sum(len(one.rows) for one in by_key.values.values()) <= 12
    if not by_join.level:
        assert by_join.values.keys() == {(r[1],) for r in rows.values() if r[1] is not None}


def known(tables: dict[str, list[Row]], wanted: Query) -> Statistics:
    statistics = Statistics()
    statistics.watch(wanted, lambda r: ((r.key_of(row, 0), row) for row in tables.get(r.name, [])))
    return statistics


@given(st.data())
def test_statistics_are_exact_where_all_rows_are_sampled(data: st.DataObject) -> None:
    cells = st.integers(0, 4)
    tables: dict[str, list[Row]] = {
        name: [
            (i, *row)
            for i, row in enumerate(
                data.draw(st.lists(st.tuples(cells, cells, cells, cells), max_size=12))
            )
        ]
        for name in ("r", "s", "t")
    }
    wanted = query()
    statistics = known(tables, wanted)
    pairs = sum(r[1] == s[1] for r, s in product(tables["r"], tables["s"]))
    expected = pairs / len(tables["r"]) if tables["r"] else 0.0
    assert statistics.partners(Side("r", (1,)), Side("s", (1,))) == pytest.approx(expected)
    box = wanted.branches[0][2]
    inside = sum(contains(box, STAR["t"], row) for row in tables["t"])
    share = (inside + 0.5) / (len(tables["t"]) + 1)
    assert statistics.selectivity("t", box) == pytest.approx(share)
    for key in ("r", "r", "s"):
        statistics.note(key, (99,), None, None)
    assert statistics.rate("r") == pytest.approx(3 / 6)


def test_rates_follow_what_happens_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.joins.decomposition.statistics.RATE_CHANGES", 100)
    statistics = known({}, query())
    for _ in range(1000):
        statistics.note("r", (1,), None, None)
    for _ in range(1000):
        statistics.note("s", (1,), None, None)
    assert statistics.rate("s") > 0.9


# Costs


@pytest.mark.parametrize("joining", [1, 3, 10])
def test_the_published_formulas_hold_for_evenly_spread_values(joining: int) -> None:
    """Both shares of appendix D, against drawing intervals and values."""
    draw, trials = Random(joining), 20_000
    seen = exposed = 0
    for _ in range(trials):
        low, high = sorted((draw.random(), draw.random()))
        inside = sum(low <= draw.random() <= high for _ in range(joining))
        seen += inside > 0
        exposed += not inside and low <= draw.random() <= high
    assert seen / trials == pytest.approx(joining / (joining + 2), abs=0.02)
    assert exposed / trials == pytest.approx(2 / ((joining + 2) * (joining + 3)), abs=0.02)


def star_rows(counts: dict[str, int]) -> dict[str, list[Row]]:
    """So many rows of each table meet in each of three join values."""
    return {
        name: [(i, i % 3, i % 10, i % 7, i % 5) for i in range(3 * count)]
        for name, count in counts.items()
    }


def test_the_order_of_costs_is_that_of_the_paper() -> None:
    """Section 6.3: S in the middle of R, T and U, with 10, 70, 70 and 30 rows per join value."""
    text = "SELECT * FROM s JOIN r ON s.k = r.k JOIN t ON s.k = t.k JOIN u ON s.k = u.k"
    wanted = query("r.a > 2 AND s.a > 2 AND t.a > 2 AND u.a > 2", text)
    statistics = known(star_rows({"r": 10, "s": 70, "t": 70, "u": 30}), wanted)
    costs = {}
    for neighbour, name in ((1, "r"), (2, "t"), (3, "u")):
        space = space_of(wanted, 0, Choice(neighbour, (2,)))
        box = wanted.branches[0]
        costs[name] = UniformCost(statistics).cost(Semijoin(space, box[0], box[neighbour]))
    assert costs["r"] > costs["u"] > costs["t"]
    seen, exposed = 70 / 72, 2 / (72 * 73)
    assert costs["t"] == pytest.approx(0.25 * (seen + 70 * exposed) / 3, rel=0.01)


def every_decomposition(wanted: Query) -> list[Decomposition]:
    """All there are of a query with one branch."""
    choices = [list(candidates(wanted, 0, node)) for node in range(len(wanted.nodes))]
    return [(tuple(row),) for row in product(*choices)]


@pytest.mark.parametrize("kind", ["uniform", "selective", "simulation"])
def test_the_greedy_choice_is_the_cheapest_of_all(kind: str) -> None:
    wanted = query()
    statistics = known(star_rows({"r": 2, "s": 30, "t": 7}), wanted)
    for _ in range(5):
        statistics.note("r", (99,), None, None)
    models: dict[str, CostModel] = {
        "uniform": UniformCost(statistics),
        "selective": SelectiveCost(statistics),
        "simulation": SimulatedCost(statistics, STAR, {1: wanted}),
    }
    model = models[kind]
    (chosen,) = decompose({1: wanted}, model).values()
    costs = [total_cost(wanted, one, model) for one in every_decomposition(wanted)]
    assert len(set(costs)) > 1
    assert total_cost(wanted, chosen, model) == pytest.approx(min(costs))


def test_a_selective_neighbour_is_chosen() -> None:
    """t.a > 8 holds for a tenth of the rows, r.a > 1 for most; both are open ranges."""
    wanted = query("r.a > 1 AND s.a > 1 AND t.a > 8")
    statistics = known(star_rows({"r": 1, "s": 20, "t": 1}), wanted)
    catalog_of_all = {7: wanted}
    for model in (SelectiveCost(statistics), SimulatedCost(statistics, STAR, catalog_of_all)):
        (chosen,) = decompose(catalog_of_all, model).values()
        assert chosen[0][1].neighbour == 2, model.name


def test_only_what_is_worth_it_is_improved() -> None:
    wanted = query("r.a > 1 AND s.a > 1 AND t.a > 8")
    statistics = known(star_rows({"r": 1, "s": 20, "t": 1}), wanted)
    model = SelectiveCost(statistics)
    (chosen,) = decompose({7: wanted}, model).values()
    assert improvements({7: wanted}, {7: chosen}, model) == {}
    bad: Decomposition = ((Choice(1, (2,)), Choice(0, (2,)), Choice(1, (2,))),)
    assert improvements({7: wanted}, {7: bad}, model) == {7: chosen}


@pytest.mark.parametrize("kind", ["selective", "simulation"])
@pytest.mark.parametrize(("where", "columns"), [("s.a < 3", (2, 3)), ("s.a < 9", (3,))])
def test_several_filter_columns_where_they_pay(
    where: str, columns: tuple[int, ...], kind: str
) -> None:
    """Two conditions that leave three and four rows of ten each; or one that leaves nearly all."""
    text = "SELECT * FROM r JOIN s ON r.k = s.k"
    wanted = bind(f"{text} WHERE r.a > 1 AND {where} AND s.b < 4", STAR)
    draw = Random(1)
    tables: dict[str, list[Row]] = {
        "r": [(i, i % 50, 5, *("x" * 10,) * 2) for i in range(200)],
        "s": [(i, i % 50, draw.randrange(10), draw.randrange(10), 0) for i in range(50)],
    }
    statistics = known(tables, wanted)
    for _ in range(50):
        statistics.note("r", (999,), None, None)
    models: dict[str, CostModel] = {
        "selective": SelectiveCost(statistics),
        "simulation": SimulatedCost(statistics, STAR, {1: wanted}),
    }
    model = models[kind]
    (chosen,) = decompose({1: wanted}, model).values()
    assert chosen[0][0] == Choice(1, columns)
