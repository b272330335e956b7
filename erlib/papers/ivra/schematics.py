"""What do Figures 1 and 2, the paper's two drawings, say? (redrawn from its text)"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from erlib.reports.diagrams import Box, diagram
from erlib.reports.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION


def figure_1() -> tuple[Figure, pd.DataFrame]:
    """The framework: a model says ŷ and r; each criterion looks at both and sends back a loss."""
    wide = (2.1, 0.75)
    boxes = {
        "x": Box((0.0, 2.15), "text x", GREY, (1.2, 0.75)),
        "model": Box((1.9, 2.0), "model M\nŷ, and r by its\nattention module", GREEN, (1.9, 1.05)),
        "student": Box((5.0, 4.3), "student S\nŷ*, r*", BLUE, wide),
        "removed": Box((5.0, 3.2), "x∖t: without the\ntop k % of r", ORANGE, wide),
        "kept": Box((5.0, 2.1), "t: only the\ntop k % of r", VERMILION, wide),
        "other": Box((5.0, 1.0), "another text x′\nof the batch", PURPLE, wide),
        "gold": Box((5.0, 0.0), "the gold label y", GREY, (2.1, 0.65)),
        "L_SIM": Box((8.0, 4.3), r"$L_{SIM}$: S gives" "\nM's answer and r", BLUE, wide),
        "L_COMP": Box((8.0, 3.2), r"$L_{COMP}$: M changes" "\nits answer", ORANGE, wide),
        "L_SUFF": Box((8.0, 2.1), r"$L_{SUFF}$: M keeps" "\nits answer", VERMILION, wide),
        "L_CONS": Box((8.0, 1.0), r"$L_{CONS}$: similar texts," "\nsimilar r", PURPLE, wide),
        "L_CE": Box((8.0, 0.0), r"$L_{CE}$: ŷ is y", GREY, (2.1, 0.65)),
    }
    looks = {"student": "L_SIM", "removed": "L_COMP", "kept": "L_SUFF", "other": "L_CONS",
             "gold": "L_CE"}  # fmt: skip
    arrows = [("x", "model"), *(("model", seen) for seen in looks), *looks.items()]
    return diagram(boxes, arrows, height=3.9)


def figure_2() -> tuple[Figure, pd.DataFrame]:
    """The attention module: features, heads and layers are weighed and normalised in turn."""
    size = (1.8, 0.95)
    boxes = {
        "queries": Box((0.0, 1.5), "queries Q\nof head h", GREY, (1.3, 0.95)),
        "keys": Box((0.0, 0.0), "keys K\nof head h", GREY, (1.3, 0.95)),
        "query features": Box((1.8, 1.5), "NORM($ω_Q$ ⊙ q)\nover features\neq. 1", BLUE, size),
        "key features": Box((1.8, 0.0), "NORM($ω_K$ ⊙ k)\nover features\neq. 2", BLUE, size),
        "head": Box((4.1, 0.75), "$ψ_h$: mean query\nagainst each key\neq. 4", GREEN, size),
        "layer": Box((6.4, 0.75), "Ψ: NORM [$λ_h ψ_h$]\nover heads, tokens;\nΣ heads · eq. 3",
                     ORANGE, (1.95, 0.95)),
        "explanation": Box((8.85, 0.75),
                           "r: NORM [$η_ℓ Ψ_ℓ$]\nover layers, tokens;\nΣ layers · eq. 5",
                           VERMILION, (1.95, 0.95)),
    }  # fmt: skip
    arrows = [
        ("queries", "query features"),
        ("keys", "key features"),
        ("query features", "head"),
        ("key features", "head"),
        ("head", "layer"),
        ("layer", "explanation"),
    ]
    return diagram(boxes, arrows, height=2.0)
