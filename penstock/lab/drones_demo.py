"""The cameras of Liu et al. (2007): pictures from drones over New York, and the paper's five
subscriptions, whose conditions call recognisers and geo operators.

Pictures are drawn from scenes, so the recipients of each are known without looking at it: every
content is compared with that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from penstock.client import ContentRow
from penstock.errors import PenstockError
from penstock.flow.changes import Change, Op
from penstock.hub import Hub
from penstock.operators.examples.drones import (
    CHASE_PIXELS,
    CREATE_TABLE,
    LEAST_CONGESTION,
    OPERATORS,
    SUBSCRIPTIONS,
)
from penstock.operators.examples.regions import LANDMARKS
from penstock.operators.examples.scenes import CELLS, SIDE, Scene, draw_scene, random_scene

FIRST = datetime(2026, 1, 1, 6)
DRONES = 12
BATCH = 50
"""Sightings published together."""
PLACES = {
    "Bronx": (-73.86, 40.85, 0.02),
    "Times Square": (*LANDMARKS["Times Square"], 0.02),
    "Statue of Liberty": (*LANDMARKS["Statue of Liberty"], 0.004),
    "Queens": (-73.82, 40.72, 0.03),
}
"""Longitude, latitude, and the maximum distance of drones in degrees: less than 5 km from Times
Square, less than a kilometre from the statue, within the region elsewhere."""
SCENES: dict[str, dict[str, int]] = {
    "calm": {"car": 3, "pedestrian": 5},
    "mob": {"car": 2, "pedestrian": 70},
    "chase": {"car": 4, "policeCar": 8},
    "rush hour": {"car": 25, "pedestrian": 280},
    "pile-up": {"car": 15, "wreck": 2, "policeCar": 1},
    "pile-up with police": {"car": 15, "wreck": 2, "policeCar": 4},
    "regatta": {"tourBoat": 7, "coastGuardBoat": 3},
    "rescue": {"tourBoat": 4, "coastGuardBoat": 2},
}


@dataclass(frozen=True, slots=True)
class Sighting:
    number: int
    place: str
    longitude: float
    latitude: float
    scene: Scene

    @property
    def seen_at(self) -> datetime:
        return FIRST + timedelta(seconds=self.number)

    def row(self) -> dict[str, object]:
        return {
            "drone": self.number % DRONES,
            "seen_at": self.seen_at,
            "longitude": self.longitude,
            "latitude": self.latitude,
            "altitude": 120.0,
            "image": draw_scene(self.scene),
        }


@dataclass(frozen=True, slots=True)
class DronesDemo:
    sightings: int
    told: dict[str, int]
    """Number of sightings sent to each subscription."""
    evaluated: int
    """Number of operator evaluations."""
    predicates: int
    """Number of evaluations if every predicate of every subscription were evaluated."""


def draw_sightings(count: int, seed: int) -> Iterator[Sighting]:
    chance = Random(seed)
    for number in range(count):
        place = chance.choice(list(PLACES))
        longitude, latitude, stray = PLACES[place]
        yield Sighting(
            number,
            place,
            longitude + chance.uniform(-stray, stray),
            latitude + chance.uniform(-stray, stray),
            random_scene(chance, SCENES[chance.choice(list(SCENES))]),
        )


def run_drones_demo(sightings: int, seed: int, home: Path | None = None) -> DronesDemo:
    """Publishes sightings, and compares the recipients of each with what the scenes say."""
    drawn = list(draw_sightings(sightings, seed))
    with Hub(home) as hub:
        hub.execute(CREATE_TABLE)
        for one in OPERATORS:
            hub.register_operator(one)
        held = {name: hub.subscribe(sql) for name, sql in SUBSCRIPTIONS.items()}
        for start in range(0, len(drawn), BATCH):
            hub.apply(
                Change("sightings", Op.INSERT, one.row()) for one in drawn[start : start + BATCH]
            )
        told = {name: _times(one.content()) for name, one in held.items()}
        evaluated = hub._find_operators().runtime.evaluated
    for name, times in told.items():
        expected = {one.seen_at for one in drawn if WANTED[name](one)}
        if times != expected:
            raise PenstockError(f"{name} was not told of what the scenes show")
    counts = {name: len(times) for name, times in told.items()}
    return DronesDemo(sightings, counts, evaluated, sightings * count_predicates())


def _times(content: Iterable[ContentRow]) -> set[object]:
    """No two sightings are of the same second."""
    return {one["seen_at"] for one in content}


def count_predicates() -> int:
    """Calls of operators in all subscriptions."""
    return sum(sql.count(f"{one.name}(") for sql in SUBSCRIPTIONS.values() for one in OPERATORS)


def is_congested(scene: Scene) -> bool:
    return scene.count("car") >= LEAST_CONGESTION


def has_chase(scene: Scene) -> bool:
    cars = [(x, y, kind) for kind, x, y in scene.things if kind in ("car", "policeCar")]
    return any(
        0 < math.dist((x, y), (other_x, other_y)) <= CHASE_PIXELS * CELLS / SIDE
        for x, y, kind in cars
        if kind == "policeCar"
        for other_x, other_y, _ in cars
    )


WANTED: dict[str, Callable[[Sighting], bool]] = {
    "S1": lambda one: one.place == "Bronx" and has_chase(one.scene),
    "S2": lambda one: one.place == "Bronx" and one.scene.count("pedestrian") > 50,
    "S3": lambda one: (
        one.place == "Times Square"
        and is_congested(one.scene)
        and one.scene.count("pedestrian") > 250
    ),
    "S4": lambda one: (
        one.place == "Bronx"
        and is_congested(one.scene)
        and one.scene.count("wreck") > 0
        and one.scene.count("policeCar") < 2
    ),
    "S5": lambda one: (
        one.place == "Statue of Liberty"
        and one.scene.count("tourBoat") > 2 * one.scene.count("coastGuardBoat")
    ),
}
