"""Pictures of streets and harbours as the cameras of the examples take them: generated."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from penstock.operators.examples.pictures import COLOURS, encode_picture

SIDE = 160
"""Pixels of a picture."""
CELLS = 20
"""A picture is a grid of this many cells per side, each with at most one thing: they never
touch."""

COLOUR_OF = {
    "car": "orange",
    "coastGuardBoat": "red",
    "pedestrian": "blue",
    "policeCar": "purple",
    "tourBoat": "yellow",
    "wreck": "black",
}


@dataclass(frozen=True)
class Scene:
    """What a picture shows, and where: cells (column, row) of its grid."""

    things: tuple[tuple[str, int, int], ...] = ()

    def count(self, kind: str) -> int:
        return sum(1 for one, _, _ in self.things if one == kind)


def random_scene(chance: random.Random, counts: dict[str, int]) -> Scene:
    """This many things of each kind, at random places."""
    cells = [(x, y) for x in range(CELLS) for y in range(CELLS)]
    kinds = [kind for kind, count in sorted(counts.items()) for _ in range(count)]
    places = chance.sample(cells, len(kinds))
    return Scene(tuple((kind, *place) for kind, place in zip(kinds, places, strict=True)))


def draw_scene(scene: Scene) -> str:
    """The picture of a scene, as a column holds it."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIDE, SIDE), COLOURS["grey"])
    pen: Any = ImageDraw.Draw(image)
    size = SIDE // CELLS
    for kind, x, y in scene.things:
        left, top = x * size + 1, y * size + 1
        box = (left, top, left + size - 3, top + size - 3)
        (pen.ellipse if kind == "pedestrian" else pen.rectangle)(box, fill=COLOURS[COLOUR_OF[kind]])
    return encode_picture(image)
