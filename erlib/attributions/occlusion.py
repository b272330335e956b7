"""What does the answer lose when one word is left out?"""

from __future__ import annotations

import numpy as np

from erlib.attributions.masked_copies import Ask, by_word
from erlib.attributions.registry import Request, Scores, register


@register(
    "occlusion",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("predictions",),
    version=1,
)
def occlusion(request: Request) -> Scores:
    """Leave one word out: f(x) − f(x without the word), the word being masked with [PAD]."""

    def losses(n: int, _: int, ask: Ask) -> np.ndarray:
        answers = ask(np.vstack([np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)]))
        return answers[0] - answers[1:]

    return Scores(by_word(request, losses))
