"""What did each paper mean by a method's name?

A variant is a row of options, never a second implementation; another number of steps or samples is
no variant (`erlib.attributions.spending`). Where a row is silent the defaults of `Options` hold:
word-embedding site, the target's logit, signed sum over dimensions, zero baseline, nothing
normalised, specials scored like any token. Sources: attributions.md §2 and the papers' pages.

Signed sums of an embedding times a gradient (input × gradient, DeepLIFT where no rule intervenes)
are taken at E: at x they tell where a word stands and not which (`gradients.input_x_gradient`,
docs/site.md). Methods that account for the whole change from a baseline (paths, and DeepLIFT with a
rule for every step) stay at x, where the baseline takes the word and leaves its position; and ℓ2
norms are meaningful at both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from erlib.errors import unknown


@dataclass(frozen=True)
class Options:
    """What can be chosen about an attribution. x: word embeddings, E: the embedding block's output.

    `site` is where f is explained. "straight" puts x in the place of E: no positions, types or norm
    before the first layer, and no mask, so that only texts of equal length meet in a batch.
    `reduce` turns a token's vector into its score: sum, |sum|, |mean|, mean of absolute values, or
    ℓ2 norm. `normalise` then divides by the scores' sum or ℓ2 norm over a text's tokens, before
    `absolute`. `specials` keeps the scores of [CLS], [SEP] and the like or sets them to −inf, so
    that they rank last; normalising leaves −inf ones out.
    """

    target: str = "predicted"  # "gold": whatever the caller asked for, the gold class is explained
    of: str = "logit"  # or "probability"
    site: str = "embeddings"  # x; "entry": E; "straight"
    reduce: str = "sum"  # "abs_sum", "abs_mean", "mean_abs", "l2"
    normalise: str | None = None  # "sum", "l2"
    absolute: bool = False
    specials: str = "keep"  # or "last"
    baseline: str = "zero"  # or "pad": the embedding of [PAD] at every position
    quadrature: str = "gausslegendre"  # or "left": points 0, 1/steps, …, and 1, all of equal weight
    steps: int = 50  # integrated gradients
    samples: int = 5  # gradshap: points per text; lime, shap: masked copies
    baselines: int = 2  # deepshap: how many equal baselines; Captum wants more than one
    rule: str = "captum"  # deeplift, deepshap; or "hooked"
    rows: str = "mean"  # attention_all: mean over query rows; or "read": the read token's row
    dropout: bool = False  # leave dropout on, as one paper's code did by oversight


_ER_LENS = Options()
_REGEX = Options(specials="last")
_GUIDE = Options(target="gold")
_GUIDE_MEAN = replace(_GUIDE, site="entry", reduce="abs_mean")  # regex.md §4.22
_SALOSS = Options(of="probability", specials="last")
_IVRA = Options()
_ENTRY = Options(site="entry")
_WORD = Options(site="embeddings")
# Agreement reads E and E([PAD]) for DistilBERT; for the BiLSTM E is x (agreement.md §3).
_AGREEMENT = Options(
    target="gold", of="probability", site="entry", baseline="pad", reduce="abs_sum"
)
_DROPOUT = replace(_AGREEMENT, dropout=True, baselines=32)  # [PAD] rows; agreement.md §4.1

# What a method does without a variant, where that is not `Options()`.
DEFAULTS = {
    "input_x_gradient": _ENTRY,
    "deeplift": _ENTRY,
    "deepshap": _ENTRY,
    "lime": Options(of="probability", samples=500),
    "shap": Options(samples=500),
    "saliency": Options(reduce="l2"),  # its signed sum is zero behind a layer norm
}

VARIANTS: dict[str, dict[str, Options]] = {
    "random": {"er_lens": _ER_LENS, "regex": _REGEX, "saloss": Options(specials="last")},
    "attention": {
        "er_lens": _ER_LENS,
        "regex": _REGEX,
        "saloss": Options(specials="last", normalise="sum"),
        "ivra": _IVRA,
    },
    "attention_all": {"ivra": _IVRA, "read_row": Options(rows="read")},
    "rollout": {"er_lens": _ER_LENS},
    "scaled_attention": {"regex": _REGEX, "saloss": _SALOSS},
    "saliency": {
        "regex": replace(_GUIDE, reduce="l2"),  # only ever a guide, so gold
        "regex_mean": replace(_GUIDE, reduce="mean_abs"),  # |mean| would be zero; regex.md §4.20
    },
    "input_x_gradient": {
        "word_embedding": _WORD,
        "er_lens": Options(target="gold", site="entry", normalise="l2", absolute=True),
        "er_lens_signed": Options(target="gold", site="entry", normalise="l2"),  # er_lens.md §4.8
        "regex": replace(_REGEX, reduce="l2"),  # regex.md §4.2
        "regex_guide": replace(_GUIDE, reduce="l2"),
        "regex_guide_mean": _GUIDE_MEAN,
        "saloss": replace(_SALOSS, reduce="abs_sum"),  # at x, as its reference code has it
        "saloss_signed": _SALOSS,  # the size is taken after repeats are summed; saloss.md §4.6
        "ivra": replace(_IVRA, site="entry"),
    },
    "integrated_gradients": {
        "entry": _ENTRY,
        "regex": replace(_REGEX, reduce="l2"),
        "regex_guide": replace(_GUIDE, reduce="l2"),
        "regex_guide_mean": replace(_GUIDE, reduce="abs_mean"),
        "saloss": replace(_SALOSS, quadrature="left", steps=10),
        "ivra": _IVRA,
        "agreement": _AGREEMENT,
        "agreement_dropout": _DROPOUT,
    },
    "deeplift": {
        "captum": _ENTRY,
        "hooked": replace(_WORD, rule="hooked"),
        "word_embedding": _WORD,
        "regex": replace(_REGEX, site="straight"),  # as its protocol's code; regex.md §4.23
        "regex_hooked": replace(_REGEX, site="entry", rule="hooked"),  # audit
        "regex_hooked_word_embedding": replace(_REGEX, rule="hooked"),  # audit
        "regex_word_embedding": _REGEX,  # audit
        "regex_guide": replace(_GUIDE, reduce="l2"),
        "regex_guide_mean": _GUIDE_MEAN,
        "agreement": _AGREEMENT,
        "agreement_dropout": _DROPOUT,
    },
    "deepshap": {
        "captum": _ENTRY,
        "hooked": replace(_WORD, rule="hooked"),
        "word_embedding": _WORD,
        "agreement": _AGREEMENT,
        "agreement_dropout": _DROPOUT,
    },
    "gradshap": {
        "captum": _WORD,
        "entry": _ENTRY,
        "agreement": _AGREEMENT,
        "agreement_dropout": _DROPOUT,
    },
    "lime": {"ivra": DEFAULTS["lime"]},
    "smat": {"ivra": _IVRA},
    "ivra": {"ivra": _IVRA},
    "alti": {"er_lens": _ER_LENS},
    "decompx": {"er_lens": _ER_LENS},
    "decompx_classifier": {
        "er_lens": Options(target="gold"),
        "er_lens_absolute": Options(target="gold", absolute=True),
    },
}


def options_of(method: str, variant: str | None, family: str) -> Options:
    """The options of a method's variant, for a model of this family."""
    if variant is None:
        return DEFAULTS.get(method, Options())
    known = VARIANTS.get(method, {})
    if variant not in known:
        if not known:
            raise ValueError(f"'{method}' has no variants, so not '{variant}' either")
        raise unknown(f"variant of '{method}'", variant, known)
    if variant.startswith("agreement") and family == "jwa":
        return replace(known[variant], of="logit")  # the paper explains JWA's logit
    return known[variant]
