"""Experiments and benchmarks on views, at small sizes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from penstock.documents.document import parse_document
from penstock.lab.benchmarks.documents import documents
from penstock.lab.benchmarks.embeddings import embeddings
from penstock.lab.experiments.views_deployment import views_deployment
from penstock.lab.experiments.views_plans import views_plans
from penstock.lab.view_networks import view_statistics
from penstock.lab.workloads import xmark


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_documents_have_the_structure_of_the_dtd() -> None:
    children = {name: {child.label for child in below} for name, below in xmark.DTD.items()}
    seen = set()
    for text in xmark.documents(3, seed=9):
        document = parse_document(text)
        assert document.labels[0] == xmark.ROOT
        for node, label in enumerate(document.labels[1:], start=1):
            above = document.labels[document.parents[node]]
            assert label in children[above]
            seen.add(label)
    assert len(seen) > 60


def test_views_are_different_and_reproducible() -> None:
    views = xmark.unique_views(500, seed=4)
    assert len(set(views)) == 500
    assert views == xmark.unique_views(500, seed=4)
    assert views != xmark.unique_views(500, seed=5)
    assert 3 < view_statistics(views)["nodes_per_view"] < 7


@pytest.mark.slow
def test_shared_matching_is_compared_with_xpath(capsys: pytest.CaptureFixture[str]) -> None:
    documents(patterns=[50, 200], count=3, repetitions=1, seed=1, json=True)
    results = printed(capsys)
    assert [result["patterns"] for result in results] == [50, 200]
    assert all(result["xpath_per_s"] > 0 and result["states"] > 50 for result in results)


@pytest.mark.slow
def test_both_subset_searches_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    embeddings(views=[300], threads=2, spark=False, seed=1, json=True)
    (result,) = printed(capsys)
    assert result["subsets"] >= result["views"]
    assert result["embedding_tests"] >= result["edges"] > 0


@pytest.mark.slow
def test_plans_stand_beside_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    views_plans(
        views=600,
        rewritings=10,
        bound=[3, 0],
        published_ties=False,
        annealing_steps=20_000,
        seed=1,
        json=True,
    )
    results = printed(capsys)
    ours = {(row["bound"], row["measure"]): row["ours"] for row in results}
    assert ours[None, "views"] == 600
    assert ours[3, "gap"] < 1e-4
    assert ours[3, "utilisation_of_unlimited"] > 1.0
    assert ours["none", "utilisation_of_unlimited"] == 1.0
    assert ours[3, "loga_latency_change"] < 0
    assert ours[3, "annealed_utilisation"] <= ours[3, "loga_utilisation"]


@pytest.mark.slow
def test_deeper_plans_under_tighter_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    views_deployment(
        views=300,
        documents=2,
        source_bound=60,
        bound=[2, 0],
        published_coverage=False,
        seed=1,
        json=True,
    )
    results = printed(capsys)
    optimal = {row["bound"]: row for row in results if row["plan"] == "optimal"}
    loga = {row["bound"]: row for row in results if row["plan"] == "loga"}
    assert optimal[2]["levels"] >= optimal["none"]["levels"]
    assert loga[2]["levels"] <= optimal[2]["levels"]
    assert optimal[2]["largest_load"] <= 2
    assert all(np.isfinite(row["delivery_s"]) and row["delivery_s"] > 0 for row in results)
