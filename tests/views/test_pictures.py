"""Plans to look at."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from penstock.errors import PlanError
from penstock.views.plan_picture import describe_plan, plan_svg
from penstock.views.planning_problem import SOURCE, Plan, PlanningProblem
from penstock.views.rewritings import RewritabilityGraph

SVG = "{http://www.w3.org/2000/svg}"


def chain(views: int) -> Plan:
    """Every view is fed by the one before it."""
    graph = RewritabilityGraph(
        np.concatenate([[0], np.arange(views)]).astype(np.int64),
        np.arange(views, dtype=np.int64),
        np.arange(views - 1, dtype=np.int32),
    )
    ones = np.ones(views)
    problem = PlanningProblem(
        graph, ones[1:], ones, ones[1:], ones, np.ones(views, np.int64), views
    )
    return Plan(problem, np.arange(-1, views - 1, dtype=np.int64))


def test_a_picture_has_every_view_and_every_feeding() -> None:
    plan = chain(5)
    root = ET.fromstring(plan_svg(plan, [f"<{number}>" for number in range(5)]))
    assert len(root.findall(f"{SVG}circle")) == 5
    assert len(root.findall(f"{SVG}path")) == 5
    titles = [one.findtext(f"{SVG}title") for one in root.findall(f"{SVG}circle")]
    assert titles[0] == "<0>: feeds 1, 1.000 s"


def test_text_says_levels_and_loads() -> None:
    assert describe_plan(chain(3), ["a", "b", "c"]) == [
        "3 views, 1 fed by the source, 2 by others",
        "utilisation 3, latency 6.00 s in sum",
        "level 1: 1 views, latency 1.000 s on average, feeding 1 times",
        "level 2: 1 views, latency 2.000 s on average, feeding 1 times",
        "level 3: 1 views, latency 3.000 s on average, feeding 0 times",
        "a feeds 1",
        "b feeds 1",
    ]


def test_pictures_have_a_limit() -> None:
    plan = chain(2_001)
    assert plan.chosen[0] == SOURCE
    with pytest.raises(PlanError, match="do not fit a picture"):
        plan_svg(plan, [""] * 2_001)
