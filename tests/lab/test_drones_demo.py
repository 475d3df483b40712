"""The cameras: everybody is told of what the scenes show, and the comparison can fail."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import PenstockError
from penstock.lab import drones_demo
from penstock.lab.drones_demo import WANTED, count_predicates, draw_sightings, has_chase
from penstock.operators.examples.drones import SUBSCRIPTIONS, chase_pattern
from penstock.operators.examples.scenes import draw_scene


@pytest.mark.slow
def test_the_command() -> None:
    """It raises if a content is not what the scenes say."""
    ran = CliRunner().invoke(app, ["demo", "drones", "--sightings", "60", "--seed", "3", "--json"])
    assert ran.exit_code == 0, ran.output
    done = json.loads(ran.stdout)
    expected = {name: sum(map(wanted, draw_sightings(60, 3))) for name, wanted in WANTED.items()}
    assert done["told"] == expected
    assert min(expected.values()) > 0
    assert done["predicates"] == 60 * 14
    assert 0 < done["evaluated"] < done["predicates"]


@pytest.mark.slow
def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drones_demo.WANTED, "S5", lambda _: True)
    with pytest.raises(PenstockError, match="S5 was not told"):
        drones_demo.run_drones_demo(2, seed=1)


def test_scenes_and_pictures_agree_on_chases() -> None:
    scenes = [one.scene for one in draw_sightings(40, 5)]
    seen = [chase_pattern(draw_scene(scene), "policeCar", "anyCar") for scene in scenes]
    assert seen == [has_chase(scene) for scene in scenes]
    assert {True, False} == set(seen)


def test_the_calls_of_the_paper() -> None:
    assert list(SUBSCRIPTIONS) == list(WANTED) == ["S1", "S2", "S3", "S4", "S5"]
    assert count_predicates() == 2 + 2 + 3 + 4 + 3
