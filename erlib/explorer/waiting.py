"""How long does somebody wait who types a sentence? (`python -m erlib bench --methods explorer`)"""

from __future__ import annotations

from functools import partial

from erlib.attributions import METHODS
from erlib.explorer.controls import DEFAULT_METHODS
from erlib.explorer.models import Model
from erlib.explorer.reading import Reading, is_slow
from erlib.explorer.texts import Text
from erlib.models import Classifier
from erlib.timing import timed_in_turn

SENTENCE = (
    "the story takes its time , but the two leads are so good , and the last scene so quietly "
    "moving , that nobody will mind ."
)


def seconds_waited(classifier: Classifier, repeat: int = 5) -> dict[str, float]:
    """Seconds until all is shown of a sentence: of the default methods, and of each method alone.

    Of the methods that promise an answer within a second and can explain this classifier.
    """
    model = Model(classifier.name, classifier, ("negative", "positive"))
    text = Text((tuple(SENTENCE.split()),))
    alone = {m: (m,) for m in METHODS if not is_slow(m) and not _shown(model, text, (m,)).refused}
    asked = {"default methods": DEFAULT_METHODS, **alone}
    timings = timed_in_turn(
        [partial(_shown, model, text, methods) for methods in asked.values()],
        repeat=repeat,
        watched=False,
    )
    return {name: timing.seconds for name, timing in zip(asked, timings, strict=True)}


def _shown(model: Model, text: Text, methods: tuple[str, ...]) -> Reading:
    """Everything that the page has of a text: prediction, heat maps, agreement and curves."""
    reading = Reading(model, text)
    for method in methods:
        reading.explain(method)
    reading.measure(methods)
    reading.agreement("word")
    return reading
