"""What does a reader call what files call by a short name?"""

from __future__ import annotations

import re

# Metrics and tables as the papers' CSV files and the criteria of claims spell them.
NAMES = {
    "accuracy_delta_vs_baseline": "accuracy less the Baseline’s",
    "accuracy_pct": "accuracy (%)",
    "area_comprehensiveness": "area of comprehensiveness",
    "area_sufficiency": "area of sufficiency",
    "arg_of_direct_training": "relative gain of direct training",
    "auc_x100": "AUC (%)",
    "average_precision": "average precision",
    "comp_aopc": "comprehensiveness",
    "consistency_spearman": "consistency",
    "cross_entropy": "cross-entropy",
    "dataset_stat": "size",
    "expl_loss": "explanation loss",
    "explaining_seconds": "seconds to explain",
    "f1_binary": "F1",
    "f1_macro": "F1-macro",
    "f1_macro_contiguous_alpha": "F1-macro of α’s contiguous words",
    "f1_macro_topk_alpha": "F1-macro of α’s top k",
    "f1_test": "test F1",
    "f1_val": "dev F1",
    "frac_tokens_to_flip": "share of tokens to a flip",
    "kendall_tau": "Kendall’s τ",
    "layer_auc": "AUC of a layer",
    "mean_importance": "mean importance",
    "norm_comp": "normalised comprehensiveness",
    "norm_suff": "normalised sufficiency",
    "pearson_r": "Pearson’s r",
    "plausibility_auc": "plausibility, AUC",
    "recall_at_k": "recall@k",
    "share_of_seeds": "share of seeds",
    "simulatability_pct": "simulatability (%)",
    "spearman_rho": "Spearman’s ρ",
    "suff_aopc": "sufficiency",
    "training_seconds": "seconds to train",
}
KNOWN = re.compile(rf"(?<![\w/.])({'|'.join(sorted(NAMES, key=len, reverse=True))})(?![\w/.])")
PLACE = re.compile(r"\b(table|figure)-?(\d+)([a-z]?)((?:_[a-z]+)?)\b")


def readable(text: str) -> str:
    """The text with the names of metrics as readers say them."""
    return KNOWN.sub(lambda found: NAMES[found[1]], text)


def readable_part(part: str) -> str:
    """A part of a claim: `table2 SST f1_macro: a|b → c` is "Table 2 SST F1-macro: a, b → c"."""

    def place(found: re.Match[str]) -> str:
        of = f" ({found[4][1:].upper()})" if found[4] else ""
        return f"{found[1].capitalize()} {found[2]}{found[3]}{of}"

    return readable(PLACE.sub(place, part).replace("->", "→").replace("|", ", "))
