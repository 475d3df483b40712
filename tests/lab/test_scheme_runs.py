"""Schemes on networks at a tiny size: everybody gets the same over every network, and bytes are
those of the messages that are sent."""

from __future__ import annotations

import pytest

from penstock.lab.evidence.multiway_runs import GREEDY, Mix, compare_mix
from penstock.lab.evidence.payload_runs import _carried, _with_own_payloads, compare_repositories
from penstock.lab.evidence.scheme_runs import (
    JOINS,
    NETWORKS,
    SEMIJOINS,
    Effort,
    Subscribers,
    Tables,
    compare_schemes,
    count_figures,
    one_by_one,
    resized,
)
from penstock.lab.experiments.payload_warming import REPOSITORIES, _warming
from penstock.lab.workloads.joins import JoinWorkload, StockJoinWorkload
from penstock.messages import encode_message
from penstock.network.caching import CachingCarrier, carry_plainly
from penstock.network.payloads import PayloadSettings

EFFORT = Effort(nodes=10, routers=100, events=30, seeds=2)
TABLES = Tables(r_rows=300, s_rows=600)


@pytest.fixture(scope="module")
def subscribers() -> Subscribers:
    return Subscribers(800, EFFORT)


@pytest.mark.slow
def test_every_network_reaches_the_same_subscribers(subscribers: Subscribers) -> None:
    runs = compare_schemes(subscribers, TABLES)[100].runs
    assert set(runs) == {(n, s) for n in NETWORKS for s in (*SEMIJOINS, *JOINS)}
    for seed in range(EFFORT.seeds):
        arrivals = {key: found[seed]["arrivals"] for key, found in runs.items()}
        exact = {arrivals[n, s] for n in NETWORKS for s in SEMIJOINS if s != "Rel-Sel"}
        rows = {arrivals[n, s] for n in NETWORKS for s in JOINS}
        assert len(exact) == len(rows) == len({arrivals[n, "Rel-Sel"] for n in NETWORKS}) == 1
        assert 0 < exact.pop() < arrivals["CAN", "Rel-Sel"]
        assert rows != {0}
        # What nobody wants leaves no broker of a CBN, and crosses a CAN all the same.
        traffic = {key: found[seed]["traffic_bytes"] for key, found in runs.items()}
        assert traffic["CBN", "Ref-J"] == traffic["CBN", "Ref-J+"]
        assert traffic["CAN", "Ref-J"] > traffic["CAN", "Ref-J+"]
        assert traffic["CAN", "Enum-J"] == traffic["CBN", "Enum-J"]


@pytest.mark.slow
def test_who_enumerates_sends_each_recipient_its_own_message(subscribers: Subscribers) -> None:
    network = subscribers.semijoins["CBN"]
    sent = subscribers.sent(TABLES, 1, "enum-sj", 30)
    journey = max(network.publish(sent), key=lambda one: len(one.arrivals))
    assert len(journey.arrivals) > 1
    direct = one_by_one(journey, network.server)
    assert len(direct.message.recipients) == 1
    away = [one for one in journey.arrivals if one.node != network.server]
    assert len(direct.hops) == len(away)
    size = len(encode_message(direct.message))
    assert size < len(encode_message(journey.message))
    figures = count_figures(network, carry_plainly([direct]), 1, is_direct=True)
    assert figures["traffic_bytes"] == figures["server_stress_bytes"] == size * len(away)
    assert figures["traffic_with_last_hop_bytes"] == size * len(journey.arrivals)


@pytest.mark.slow
def test_payloads_of_another_size_change_rows_and_nothing_else(subscribers: Subscribers) -> None:
    for message in subscribers.rows_sent(TABLES, 1, 6):
        larger = resized(message, "y" * 10_000)
        assert larger.key == message.key
        if message.row is None:
            assert len(encode_message(larger)) < len(encode_message(message))
        else:
            grown = len(encode_message(larger)) - len(encode_message(message))
            assert 0 <= grown - 2 * 9_900 <= 4  # two payloads, and longer lengths


@pytest.mark.slow
def test_a_join_row_has_two_payloads_that_are_known_apart(subscribers: Subscribers) -> None:
    network = subscribers.join_rows["CBN"]
    found = network.publish(subscribers.rows_sent(TABLES, 1, 30))
    wanted = [_with_own_payloads(one) for one in found if one.hops and one.message.row]
    first = wanted[0]
    settings = PayloadSettings({first.message.space: (3, 7)}, repository_entries=1_000)
    carrier = CachingCarrier(network, settings)
    whole = len(encode_message(first.message))
    once, again = _carried(carrier, first), _carried(carrier, first)
    assert [hop.hop for hop in once.hops] == first.hops
    for hop in once.hops:
        assert whole <= hop.nbytes <= whole + 100  # ids and addresses beside it
    for hop in again.hops:
        assert hop.nbytes < whole - 1_900  # neither payload travels again


@pytest.mark.slow
def test_larger_repositories_never_cost_more(subscribers: Subscribers) -> None:
    found = compare_repositories(subscribers, 100, 60, (0, 20, 1_000))
    for key in [(n, "Ref-J+") for n in NETWORKS]:
        for seed in range(EFFORT.seeds):
            plain, none, few, many = (
                found[entries].runs[key][seed]["traffic_bytes"] for entries in (None, 0, 20, 1_000)
            )
            assert many <= few <= none
            assert many < plain


@pytest.mark.slow
def test_every_decomposition_reaches_whom_it_should() -> None:
    runs = compare_mix(Mix(51, star=True, share=0.01), Effort(6, 60, 30, 1)).runs
    assert set(runs) == {
        (n, s) for n in NETWORKS for s in (GREEDY, "Rel-Sel", "Enum-J", "Ref-J", "Ref-J+")
    }
    for scheme in (GREEDY, "Rel-Sel", "Ref-J"):
        assert len({runs[n, scheme][0]["arrivals"] for n in NETWORKS}) == 1


@pytest.mark.parametrize("kind", [JoinWorkload, StockJoinWorkload])
def test_more_rows_of_one_table_change_nothing_about_the_rest(kind: type[JoinWorkload]) -> None:
    few, many = (kind(10, r_rows, 300, seed=3, interest_seed=1) for r_rows in (100, 400))
    for value, group in few.groups.items():
        numbers = [[row[2] for row in one.sides[1].values()] for one in (group, many.groups[value])]
        assert numbers[0] == numbers[1]
    drawn = [
        [(v, step.new[1]) for v, step in one.inserts(0, 20) if step.new] for one in (few, many)
    ]
    if kind is JoinWorkload:
        assert drawn[0] == drawn[1]
    assert [v for v, _ in drawn[0]] == [v for v, _ in drawn[1]]
    other = kind(10, 100, 300, seed=4, interest_seed=1)
    assert (other.interests.a_low == few.interests.a_low).all()
    assert [v for v, _ in other.inserts(0, 20)] != [v for v, _ in drawn[0]]


@pytest.mark.slow
def test_parts_of_a_run_add_up(subscribers: Subscribers) -> None:
    def traffic(parts: int) -> dict[object, float]:
        found: dict[object, float] = dict.fromkeys(REPOSITORIES, 0.0)
        for row in _warming(subscribers, TABLES, "Ref-J+", parts, seed=1):
            found[row["entries"]] += float(str(row["kb_per_event"])) / parts
        return found

    assert traffic(3) == pytest.approx(traffic(1), abs=0.1)
    assert traffic(1)[3_100] < traffic(1)[None]
