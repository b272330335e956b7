"""How does a figure become a small PNG that keeps its colours?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import KDTree

COLOURS = 256  # as many as one byte can name: a third of the bytes


def few_colours(image: Image.Image) -> Image.Image:
    """The image with 256 colours: surfaces keep theirs, edges and ramps the nearest there is.

    Half are the most frequent colours, as they are; the others are spread over all, since the rare
    ones of a colour bar matter too.
    """
    image = image.convert("RGB")
    counted = sorted(image.getcolors(image.width * image.height) or (), reverse=True)
    every = np.array([colour for _, colour in counted], dtype=np.uint8)
    half = COLOURS // 2
    spread = image.quantize(half, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = np.concatenate([every[:half], np.array(spread, dtype=np.uint8).reshape(-1, 3)])
    nearest = np.zeros(1 << 24, dtype=np.uint8)  # the palette's colour for each of RGB
    nearest[_codes(every)] = KDTree(palette).query(every)[1]
    small = Image.fromarray(nearest[_codes(np.asarray(image))])
    small.putpalette(palette.tobytes())
    return small


def _codes(colours: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """[…, RGB] → one number for each colour."""
    return colours.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
