"""Pictures as columns hold them, and what can be counted in them.

There is no column type for bytes, so a picture is a VARCHAR: an image file (PNG, JPEG) in base64.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections import Counter
from typing import Any

import numpy as np

from penstock.operators.examples.extras import require

require("pillow", "PIL", "An operator on images")

MAX_SIDE = 2_048
"""Pixels. Larger pictures are refused before they are decoded: a small file can hold a huge one."""

COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (0, 0, 0),
    "blue": (30, 60, 220),
    "cyan": (30, 200, 210),
    "green": (40, 160, 60),
    "grey": (128, 128, 128),
    "orange": (240, 140, 20),
    "purple": (140, 40, 160),
    "red": (210, 30, 40),
    "white": (255, 255, 255),
    "yellow": (245, 220, 40),
}
_NAMES = sorted(COLOURS)
_PALETTE = np.array([COLOURS[name] for name in _NAMES], dtype=np.int32)


class PictureError(ValueError):
    """A text that is no picture."""


def encode_picture(image: Any) -> str:
    """An image of Pillow as a column holds it."""
    data = io.BytesIO()
    image.save(data, format="PNG")
    return base64.b64encode(data.getvalue()).decode()


def decode_picture(text: str) -> Any:
    """The pixels of a picture, as an array of height × width × 3 bytes."""
    from PIL import Image

    try:
        data = base64.b64decode(text, validate=True)
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            if max(image.size) > MAX_SIDE:
                raise PictureError(f"a picture of more than {MAX_SIDE} pixels a side")
            return np.asarray(image.convert("RGB"))
    except (binascii.Error, OSError, SyntaxError) as error:
        raise PictureError(f"not a picture: {error}") from None


def nearest_colours(pixels: Any) -> Any:
    """For each pixel the place of the nearest named colour among their sorted names."""
    far = np.full(pixels.shape[:2], np.iinfo(np.int32).max, dtype=np.int32)
    nearest = np.zeros(pixels.shape[:2], dtype=np.int8)
    for place, colour in enumerate(_PALETTE):
        distance = ((pixels.astype(np.int32) - colour) ** 2).sum(axis=2)
        closer = distance < far
        nearest[closer] = place
        far[closer] = distance[closer]
    return nearest


def colour_mask(pixels: Any, colour: str) -> Any:
    return nearest_colours(pixels) == _NAMES.index(colour)


def dominant_colour(pixels: Any) -> str:
    counts = np.bincount(nearest_colours(pixels).ravel(), minlength=len(_NAMES))
    return _NAMES[int(counts.argmax())]


def edge_density(pixels: Any, least_step: int = 48) -> float:
    """The share of pixels whose brightness differs from the next one's, to the right or below."""
    bright = pixels.astype(np.int32).mean(axis=2)
    across = np.abs(np.diff(bright, axis=1))[:-1, :] >= least_step
    down = np.abs(np.diff(bright, axis=0))[:, :-1] >= least_step
    return float((across | down).mean()) if across.size else 0.0


def find_blobs(mask: Any, least_pixels: int = 4) -> list[tuple[float, float]]:
    """The centres (x, y) of all connected areas of a mask, without those that are specks.

    Row by row: runs of set pixels join the runs above that they touch.
    """
    parents: list[int] = []
    runs: list[tuple[int, int, int]] = []  # row, first pixel, one past the last pixel
    above: list[int] = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        here = []
        for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            run = len(runs)
            runs.append((y, first, end))
            parents.append(run)
            here.append(run)
            for other in above:
                if runs[other][1] < end and first < runs[other][2]:
                    parents[_root(parents, run)] = _root(parents, other)
        above = here
    return _centres(runs, parents, least_pixels)


def _root(parents: list[int], run: int) -> int:
    while parents[run] != run:
        parents[run] = parents[parents[run]]
        run = parents[run]
    return run


def _centres(
    runs: list[tuple[int, int, int]], parents: list[int], least_pixels: int
) -> list[tuple[float, float]]:
    sizes: Counter[int] = Counter()
    sums: dict[int, list[float]] = {}
    for run, (y, first, end) in enumerate(runs):
        root, length = _root(parents, run), end - first
        sizes[root] += length
        total = sums.setdefault(root, [0.0, 0.0])
        total[0] += length * (first + end - 1) / 2
        total[1] += length * y
    return [
        (total[0] / sizes[root], total[1] / sizes[root])
        for root, total in sums.items()
        if sizes[root] >= least_pixels
    ]
