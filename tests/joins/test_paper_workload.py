"""On the workload of the paper: few points, and the order of the schemes that it found."""

from __future__ import annotations

import json

import pytest

from penstock.joins import scheme_names
from penstock.lab.experiments._joins import Sent, send
from penstock.lab.experiments.joins_description_size import joins_description_size
from penstock.lab.workloads.joins import JoinWorkload


@pytest.fixture(scope="module")
def sent() -> dict[str, Sent]:
    workload = JoinWorkload(20_000)
    steps = list(workload.inserts(0, 120))
    return {name: send(workload, name, steps) for name in scheme_names()}


@pytest.mark.slow
def test_gap_shadows_come_close_to_the_fewest_points(sent: dict[str, Sent]) -> None:
    fewest = sent["ref-sj-opt"].points
    assert fewest <= sent["ref-sj-gap"].points <= 1.15 * fewest
    assert all(fewest <= one.points for name, one in sent.items() if name.startswith("ref-sj"))


@pytest.mark.slow
def test_semijoins_send_less_than_joins(sent: dict[str, Sent]) -> None:
    assert sent["ref-sj-gap"].bytes < sent["rel-sel"].bytes < sent["ref-j+"].bytes
    assert sent["ref-j+"].bytes <= sent["ref-j"].bytes
    assert sent["ref-sj-gap"].bytes < sent["enum-sj"].bytes
    assert sent["enum-sj"].messages == sent["ref-sj-opt"].messages


def test_tables_and_changes_do_not_depend_on_the_number_of_subscriptions() -> None:
    few, many = JoinWorkload(10), JoinWorkload(20)
    assert few.groups == many.groups
    assert list(few.inserts(0, 5)) == list(many.inserts(0, 5))


def test_the_experiment_prints_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    joins_description_size(subscriptions=500, events=20, seeds=1, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    points = {result["scheme"]: result["points_per_event"] for result in results}
    assert 0 < points["ref-sj-gap"] <= points["ref-sj-clu+"]
    assert min(points.values()) > 0
