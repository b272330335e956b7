"""How many operations and bytes does an attribution take, before it is run?

Counts for one text of n tokens; a multiplication and an addition are two operations. They follow
the form that runs: DecompX changes its feed-forward form with n, and LIME and SHAP
enumerate short texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from erlib.attributions.decomposition import CACHE_BYTES
from erlib.attributions.decompx import row_map_is_cheaper
from erlib.attributions.memory import bytes_per_text
from erlib.attributions.registry import METHODS
from erlib.attributions.shapley import MOST_ENUMERATED
from erlib.attributions.variants import DEFAULTS, Options
from erlib.models.classifier import Classifier

NUMBER = 4  # bytes of a float32


@dataclass(frozen=True)
class Shape:
    """What the cost of a Transformer depends on."""

    layers: int
    width: int  # D
    inner: int
    heads: int

    @classmethod
    def of(cls, classifier: Classifier) -> Shape:
        """The shape of a classifier's encoder."""
        views = classifier.layers
        inner, width = views[0].up.weight.shape
        return cls(len(views), width, inner, views[0].n_heads)


def forward_operations(shape: Shape, n: int) -> float:
    """Four D×D maps and the feed-forward block; scores and mixing."""
    return shape.layers * (_linear_operations(shape, n) + 4 * n * n * shape.width)


def backward_operations(shape: Shape, n: int) -> float:
    """To the embeddings alone: one product for a map, whose weights have no gradient, and two for
    a product of activations."""
    return shape.layers * (_linear_operations(shape, n) + 8 * n * n * shape.width)


def lean_operations(shape: Shape, n: int) -> float:
    """A pass of which only the answer is wanted: of the last layer, keys and values of all tokens
    and everything else of one (`erlib.models.lean`)."""
    below = forward_operations(replace(shape, layers=shape.layers - 1), n)
    return below + 4 * n * (shape.width**2 + shape.width) + _linear_operations(shape, 1)


def lean_backward_operations(shape: Shape, n: int) -> float:
    """And back: maps are not kept and made once more."""
    below = backward_operations(replace(shape, layers=shape.layers - 1), n)
    again = 2 * n * n * shape.width * (shape.layers - 1)
    return below + again + 4 * n * (shape.width**2 + shape.width) + _linear_operations(shape, 1)


def _linear_operations(shape: Shape, n: int) -> float:
    return n * (8 * shape.width**2 + 4 * shape.width * shape.inner)


def alti_operations(shape: Shape, n: int) -> float:
    """A pass; the vectors that tokens send; in all layers but the last N²·H·D to mix them, 3·N²·D
    to compare them, and N³ to multiply the layers."""
    width, heads = shape.width, shape.heads
    vectors = 6 * n * width**2
    pairs = 2 * n * width**2 + 2 * n**2 * width + (2 * heads + 3) * n**2 * width + 2 * n**3
    return forward_operations(shape, n) + shape.layers * vectors + (shape.layers - 1) * pairs


def decompx_operations(shape: Shape, n: int) -> float:
    """A pass and its inner states; a diagonal first layer, full layers, one row of the last."""
    width, inner, heads = shape.width, shape.inner, shape.heads
    if row_map_is_cheaper(n, width, inner):
        row = 2 * width**2 * inner + 2 * n * width**2
    else:
        row = 4 * n * width * inner
    diagonal = 4 * n * width**2 + 2 * n**2 * heads * width
    full = 4 * n**2 * width**2 + 2 * n**3 * width
    read = 2 * heads * n**2 * width + 4 * n * width**2
    attention = diagonal + max(0, shape.layers - 2) * full + read
    rows = (shape.layers - 1) * n + 1
    states = shape.layers * (n * (4 * width**2 + 4 * width * inner) + 2 * n**2 * width)
    return forward_operations(shape, n) + states + attention + rows * row


def operations(method: str, shape: Shape, n: int) -> float:
    """Operations that a method takes for one text; the pass that finds the prediction included."""
    once = forward_operations(shape, n)
    options = DEFAULTS.get(method, Options())
    if method == "alti":
        return alti_operations(shape, n)
    if method.startswith("decompx"):
        return decompx_operations(shape, n)
    if method == "rollout":
        return once + (shape.layers - 1) * 2 * n**3
    back = backward_operations(shape, n)
    if method == "scaled_attention":  # back through the last layer's upper half
        return once + back / shape.layers / 2
    lean, lean_back = lean_operations(shape, n), lean_backward_operations(shape, n)
    words = n - 2  # two tokens are no words
    if method == "value_zeroing":  # every layer from its values on, for every token and for none
        return once + (n + 1) * (
            once - shape.layers * n * (4 * shape.width**2 + 2 * n * shape.width)
        )
    if method == "attn_lrp":  # its own states, q, k, v and scores once more; the linear network
        again = shape.layers * n * (6 * shape.width**2 + 2 * n * shape.width)
        products = shape.layers * 4 * n * n * shape.width  # both factors
        return lean + once + again + once + products + back
    if METHODS[method].looks_inside:
        return once
    if method in ("saliency", "input_x_gradient"):
        return lean + lean_back
    if method in ("integrated_gradients", "gradshap"):  # and a pass of the baseline
        copies = options.steps if method == "integrated_gradients" else options.samples
        return 2 * lean + copies * (lean + lean_back)
    if method in ("deeplift", "deepshap"):  # the text twice and the baseline
        return 3 * lean + lean_back
    if method == "lime":
        return lean * (1 + min(options.samples, 2 ** min(words, 64)))
    if method == "shap":
        return lean * (1 + (2**words if words <= MOST_ENUMERATED else options.samples + 2))
    if method == "occlusion":
        return lean * (2 + words)
    return lean


def peak_bytes(method: str, classifier: Classifier, n: int, batch: int) -> float:
    """Memory beside the model that a batch needs at least; methods with more copies of a text
    take as much more as their budget allows."""
    shape = Shape.of(classifier)
    needs = METHODS[method].needs
    graph = bool({"gradients", "embeddings"} & set(needs))
    copies = 1 if "embeddings" in needs or "predictions" in needs else batch
    passes = copies * bytes_per_text(classifier, n, graph=graph)
    heads_sent = 3 * NUMBER * n * shape.heads * shape.width
    if method == "alti":
        return passes + heads_sent + 4 * NUMBER * n**2 + CACHE_BYTES
    if method.startswith("decompx"):
        return passes + heads_sent + NUMBER * n**2 * shape.width + CACHE_BYTES
    return passes
