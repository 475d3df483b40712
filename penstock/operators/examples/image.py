"""What is in a picture, by Pillow and NumPy: its main colour, its edges, areas of a colour."""

from __future__ import annotations

from penstock.operators.examples.choices import one_of
from penstock.operators.examples.pictures import (
    COLOURS,
    colour_mask,
    decode_picture,
    dominant_colour,
    edge_density,
    find_blobs,
)
from penstock.operators.functions import operator
from penstock.operators.interface import Argument, Output
from penstock.operators.value_types import BIGINT, DOUBLE, VARCHAR

IMAGE = Argument("image", VARCHAR)


@operator("dominantColour", [IMAGE], outputs=[Output("colour", VARCHAR)], cost_seconds=2e-3)
def find_dominant_colour(image: str) -> list[tuple[str]]:
    """The named colour that most pixels are nearest to."""
    return [(dominant_colour(decode_picture(image)),)]


@operator("edgeDensity", [IMAGE], outputs=[Output("density", DOUBLE)], cost_seconds=2e-3)
def find_edge_density(image: str) -> list[tuple[float]]:
    """The share of pixels at an edge: how much there is to see."""
    return [(edge_density(decode_picture(image)),)]


@operator(
    "blobCount",
    [IMAGE, Argument("colour", VARCHAR, constant=True)],
    outputs=[Output("blobs", BIGINT)],
    check_constants=one_of(colour=COLOURS),
    cost_seconds=3e-3,
)
def count_blobs(image: str, colour: str) -> list[tuple[int]]:
    """How many separate areas of a colour there are."""
    return [(len(find_blobs(colour_mask(decode_picture(image), colour))),)]
