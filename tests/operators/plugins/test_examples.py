"""The operators that are shipped: what they say, through processes as through this one."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.errors import ExtraError, OperatorError
from penstock.operators import Operator, OperatorFailure, OperatorSet
from penstock.operators.evaluation import InProcessEvaluator
from penstock.operators.examples import drones, geo, image, look_up, reasoning, text
from penstock.operators.examples.extras import require
from penstock.operators.examples.languages import SAMPLES
from penstock.operators.examples.pictures import (
    COLOURS,
    PictureError,
    decode_picture,
    encode_picture,
    find_blobs,
)
from penstock.operators.examples.regions import LANDMARKS, REGIONS
from penstock.operators.examples.scenes import Scene, draw_scene, random_scene
from penstock.operators.registration import load_operators
from penstock.operators.worker_process import ProcessEvaluator

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
DECLARED: dict[str, str] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"][
    "entry-points"
]["penstock.operators"]


def outcomes_of(one: Operator, *rows: tuple[Any, ...]) -> list[Any]:
    stored = [
        tuple(
            None if value is None else argument.type.store(value)
            for argument, value in zip(one.arguments, row, strict=True)
        )
        for row in rows
    ]
    return list(InProcessEvaluator().evaluate(one, stored).outcomes)


# How they are found.


@pytest.mark.parametrize(("name", "reference"), DECLARED.items())
def test_entry_points_lead_to_their_operators(name: str, reference: str) -> None:
    (one,) = load_operators(reference)
    assert one.name == name
    assert OperatorSet().register(one)[name] is one


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExtraError, match="needs the library 'shapely'") as missing:
        require("shapely", "no_such_module_anywhere", "An operator on locations")
    assert missing.value.hint == "pip install 'penstock[operators]'"


def test_binding_loads_no_library() -> None:
    """Shapely and Pillow are for whoever evaluates rows."""
    program = (
        "import sys\n"
        "from penstock.operators.registration import load_operators\n"
        f"for reference in {list(DECLARED.values())!r}: load_operators(reference)\n"
        "print([name for name in ('shapely', 'PIL') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("one", "constants", "what"),
    [
        (geo.loc_in, {"region": "Bronks"}, "there is no region 'Bronks'"),
        (geo.distance_from, {"landmark": "Big Ben"}, "there is no landmark 'Big Ben'"),
        (text.in_language, {"language": "xx"}, "there is no language 'xx'"),
        (text.find_pattern, {"pattern": "x"}, "there is no pattern 'x'"),
        (image.count_blobs, {"colour": "pink"}, "there is no colour 'pink'"),
        (drones.chase_pattern, {"chasing": "ufo"}, "there is no chasing 'ufo'"),
        (drones.traffic_pattern, {"pattern": "ufo"}, "there is no pattern 'ufo'"),
        (reasoning.entails, {"goal": "alarm("}, "is not a goal"),
    ],
)
def test_constants_that_do_not_exist(one: Operator, constants: dict[str, str], what: str) -> None:
    with pytest.raises(OperatorError, match=what.replace("(", r"\(")):
        one.check_constants(constants)
    one.check_constants({})


def test_through_processes(processes: ProcessEvaluator) -> None:
    """One of each library, with its own limits."""
    scene = draw_scene(Scene((("pedestrian", 1, 1),)))
    asked: list[tuple[Operator, tuple[Any, ...], object]] = [
        (geo.loc_in, (-73.87, 40.85, "Bronx"), True),
        (text.detect_language, (SAMPLES["fr"],), (("fr",),)),
        (image.find_dominant_colour, (scene,), (("grey",),)),
        (drones.pedestrian_count, (scene,), ((1,),)),
        (reasoning.which_of, ("unknown(eve). seen(eve, gate).", "suspect"), (("eve",),)),
        (look_up.owner_of, ("NY-9000",), (("City Police",),)),
    ]
    for one, row, expected in asked:
        assert processes.evaluate(one, [row]).outcomes == [expected]


# Geo.


def test_places() -> None:
    asked = [(-73.87, 40.85, "Bronx"), (-73.98, 40.75, "Bronx"), (-73.98, 40.75, "Manhattan")]
    nowhere = [(999.0, 40.0, "Bronx"), (float("nan"), 40.0, "Bronx"), (None, 40.0, "Bronx")]
    assert outcomes_of(geo.loc_in, *asked, *nowhere) == [True, False, True, None, None, None]


def test_a_landmark_is_where_it_is() -> None:
    expected = {"Yankee Stadium": "Bronx", "Times Square": "Manhattan"}
    for landmark, region in expected.items():
        asked = [(*LANDMARKS[landmark], name) for name in REGIONS]
        assert outcomes_of(geo.loc_in, *asked) == [name == region for name in REGIONS]


def test_regions_are_simple_and_apart() -> None:
    shapes = {name: shapely.Polygon(corners) for name, corners in REGIONS.items()}
    assert all(shape.is_valid for shape in shapes.values())
    for one, other in itertools.combinations(shapes.values(), 2):
        assert one.intersection(other).area < 0.05 * min(one.area, other.area)


@given(st.sampled_from(sorted(LANDMARKS)), st.floats(-0.3, 0.3), st.floats(-0.3, 0.3))
def test_distances(landmark: str, east: float, north: float) -> None:
    """Beside the great circle, by the haversine formula."""
    longitude, latitude = LANDMARKS[landmark]
    there = np.radians([longitude + east, latitude + north])
    here = np.radians([longitude, latitude])
    half = (
        np.sin((there[1] - here[1]) / 2) ** 2
        + np.cos(here[1]) * np.cos(there[1]) * np.sin((there[0] - here[0]) / 2) ** 2
    )
    expected = 2 * 6_371_008.8 * np.arcsin(np.sqrt(half))
    (((metres,),),) = outcomes_of(geo.distance_from, (longitude + east, latitude + north, landmark))
    assert metres == pytest.approx(expected, rel=5e-3, abs=0.01)
    (near,) = outcomes_of(
        geo.loc_within, (longitude + east, latitude + north, landmark, metres + 1)
    )
    assert near is True


# Text.

SENTENCES = {
    "de": "Der Hund läuft jeden Abend mit dem alten Mann durch den Wald.",
    "en": "Every evening the dog walks through the woods with the old man.",
    "es": "Todas las noches el perro pasea con el viejo por el bosque.",
    "fr": "Chaque soir le chien se promène dans la forêt avec le vieil homme.",
    "it": "Ogni sera il cane passeggia nel bosco con il vecchio signore.",
    "nl": "Elke avond loopt de hond met de oude man door het bos.",
}


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items())
def test_languages(language: str, sentence: str) -> None:
    assert outcomes_of(text.detect_language, (sentence,)) == [((language,),)]
    assert outcomes_of(text.in_language, (sentence, language), (sentence, "xx")) == [True, False]
    assert outcomes_of(text.detect_language, ("Ja!",), ("",)) == [None, None]


def test_patterns() -> None:
    said = "Write to ada@example.org or b@c.io by 2024-05-01, see https://example.org/x #now, #now"
    found = {
        name: [one for (one,) in outcomes_of(text.find_pattern, (said, name))[0]]
        for name in text.PATTERNS
    }
    assert found == {
        "date": ["2024-05-01"],
        "email": ["ada@example.org", "b@c.io"],
        "hashtag": ["#now"],
        "url": ["https://example.org/x"],
    }
    many = " ".join(f"#n{i}" for i in range(500))
    assert len(outcomes_of(text.find_pattern, (many, "hashtag"))[0]) == text.MAX_FOUND


# Pictures.


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12))
def test_blobs(seed: int, height: int, width: int) -> None:
    """Beside a flood fill."""
    mask = np.random.default_rng(seed).random((height, width)) < 0.5
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    expected = []
    while left:
        area, reached = [], [left.pop()]
        while reached:
            y, x = reached.pop()
            area.append((x, y))
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left:
                    left.remove(near)
                    reached.append(near)
        expected.append([float(mean) for mean in np.mean(area, axis=0)])
    found = find_blobs(mask, least_pixels=1)
    assert rounded(found) == rounded(expected)


def rounded(centres: Iterable[Iterable[float]]) -> list[list[float]]:
    return sorted([round(one, 6) for one in centre] for centre in centres)


@pytest.mark.parametrize("colour", sorted(COLOURS))
def test_colours(colour: str) -> None:
    plain = encode_picture(Image.new("RGB", (20, 10), COLOURS[colour]))
    assert outcomes_of(image.find_dominant_colour, (plain,)) == [((colour,),)]
    assert outcomes_of(image.count_blobs, (plain, colour)) == [((1,),)]
    assert outcomes_of(image.find_edge_density, (plain,)) == [((0.0,),)]


def test_edges() -> None:
    stripes = np.zeros((32, 32, 3), dtype=np.uint8)
    stripes[:, ::2] = 255
    ((((density,),)),) = outcomes_of(
        image.find_edge_density, (encode_picture(Image.fromarray(stripes)),)
    )
    assert density == 1.0


def test_no_pictures() -> None:
    huge = encode_picture(Image.new("1", (4_000, 10)))
    for bad in ("", "no base64!", "QUJD", huge):
        with pytest.raises(PictureError):
            decode_picture(bad)
    good = encode_picture(Image.new("RGB", (4, 4)))
    fine, failed = outcomes_of(image.find_dominant_colour, (good,), (good[:40],))
    assert fine == (("black",),)
    assert isinstance(failed, OperatorFailure)


COUNTERS = {
    "pedestrian": drones.pedestrian_count,
    "policeCar": drones.police_car_count,
    "tourBoat": drones.tour_boat_count,
    "coastGuardBoat": drones.coast_guard_boat_count,
}


@pytest.mark.parametrize("seed", range(10))
def test_scenes_are_recognised(seed: int) -> None:
    chance = random.Random(seed)
    kinds = ("pedestrian", "policeCar", "tourBoat", "coastGuardBoat", "car", "wreck")
    scene = random_scene(chance, {kind: chance.randrange(20) for kind in kinds})
    picture = draw_scene(scene)
    for kind, counter in COUNTERS.items():
        assert outcomes_of(counter, (picture,)) == [((scene.count(kind),),)]
    people = scene.count("pedestrian")
    mob = ((people,),) if people >= drones.LEAST_MOB else ()
    assert outcomes_of(drones.mob_pattern, (picture,)) == [mob]
    traffic = outcomes_of(drones.traffic_pattern, (picture, "congestion"), (picture, "accident"))
    assert traffic == [scene.count("car") >= drones.LEAST_CONGESTION, scene.count("wreck") > 0]


@pytest.mark.parametrize(
    ("things", "chased"),
    [
        ([("policeCar", 3, 3), ("car", 5, 3)], True),
        ([("policeCar", 3, 3), ("policeCar", 4, 4)], True),
        ([("policeCar", 3, 3), ("car", 7, 3)], False),
        ([("car", 3, 3), ("car", 4, 3)], False),
        ([("policeCar", 3, 3)], False),
    ],
)
def test_chases(things: list[tuple[str, int, int]], chased: bool) -> None:
    picture = draw_scene(Scene(tuple(things)))
    assert outcomes_of(drones.chase_pattern, (picture, "policeCar", "anyCar")) == [chased]


def test_room_for_the_third_subscription() -> None:
    """More than 250 pedestrians in a traffic jam."""
    scene = random_scene(random.Random(3), {"pedestrian": 300, "car": 20})
    assert outcomes_of(drones.pedestrian_count, (draw_scene(scene),)) == [((300,),)]
