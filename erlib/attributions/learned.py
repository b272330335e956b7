"""What does the attention say that was trained to explain? (IvRA, and SMaT)

Both methods read a module that was trained with the classifier, `erlib.models.learned_attention`.
"""

from __future__ import annotations

from erlib.attributions.registry import Request, Scores, register
from erlib.models.learned_attention import Explanation, explain, explainer_of


@register(
    "smat",
    signed=False,
    scope="global",
    differentiable=True,
    needs=("queries",),
    version=1,
)
def smat(request: Request) -> Scores:
    """Mean attention scores of the heads that were learned to matter, as a distribution."""
    return Scores(_explanation(request, "smat").r)


@register(
    "ivra",
    signed=False,
    scope="global",
    differentiable=True,
    needs=("queries",),
    per_layer=True,
    version=1,
)
def ivra(request: Request) -> Scores:
    """Matches of queries and keys by features, heads and layers that were learned to matter: r."""
    found = _explanation(request, "ivra")
    return Scores(found.r, found.layers if request.per_layer else None)


def _explanation(request: Request, name: str) -> Explanation:
    explainer = explainer_of(request.classifier)
    if explainer.method != name:
        raise ValueError(
            f"'{request.classifier.name}' was trained with the explainer '{explainer.name}', which "
            f"'{name}' cannot read; use '{explainer.method}'"
        )
    return explain(request.classifier, request.output, request.mask)
