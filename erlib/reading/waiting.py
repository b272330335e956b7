"""How long does somebody wait for a sentence, for a corpus? (`erlib bench --methods explorer`)"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from erlib.attributions import METHODS
from erlib.models import Classifier
from erlib.reading.models import Model
from erlib.reading.one_text import DEFAULT_METHODS, Reading, is_slow
from erlib.reading.survey import MOST_TEXTS, survey
from erlib.reading.texts import Text, offered
from erlib.timing import timed_in_turn

CORPUS = "movie_snippets"
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


def seconds_through(classifier: Classifier, texts: Sequence[Text]) -> float:
    """Seconds until a corpus is listed, with the default methods."""
    model = Model(classifier.name, classifier, ("negative", "positive"))
    look = partial(survey, [model], texts, DEFAULT_METHODS, lambda done, steps, doing: None)
    [timing] = timed_in_turn([look], repeat=1, watched=False)
    return timing.seconds


def held_out() -> list[Text]:
    """As many packaged texts as the explorer looks through at the most."""
    return offered(CORPUS, "packaged", MOST_TEXTS)


def _shown(model: Model, text: Text, methods: tuple[str, ...]) -> Reading:
    """Everything that the page has of a text: prediction, heat maps, agreement and curves."""
    reading = Reading(model, text)
    for method in methods:
        reading.explain(method)
    reading.measure(methods)
    reading.agreement("word")
    return reading
