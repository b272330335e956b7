"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scipy.stats import binomtest

from erlib.config import RunSpec
from erlib.data import corpus_report
from erlib.data.parts_of_speech import TAGGER_NAMES, installed_tagger
from erlib.papers.holes import failed
from erlib.papers.saloss.audit import TEXTS
from erlib.papers.saloss.figures import MOST, importance
from erlib.papers.saloss.stages import chosen, not_trained, search_fractions, searched
from erlib.papers.saloss.systems import (
    AUDITED,
    EQ3,
    SALOSS,
    SUPPORTS,
    recipe_of,
    row_of,
    task_of,
    tasks,
)
from erlib.papers.saloss.tables import FUNCTIONS, NAMES, SHOWN, flip_tests, fractions, fresh, power
from erlib.papers.trained import why_untrained
from erlib.parameters import Settings
from erlib.training.stages import Results

SEEDS = 3  # of the paper
LONGEST = 512  # tokens of a text in the paper


def reduced(settings: Settings) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is."""
    every, parts = tasks(settings), []
    for size, what in (
        ("train_rows", "training texts"),
        ("fresh_rows", "for a FRESH classifier"),
        ("flip_rows", "test texts for flips"),
        ("search_rows", "dev texts to choose λ by"),
        ("max_length", "tokens of a text"),
    ):
        counts = [n for task in every if (n := recipe_of(settings, task).get(size)) is not None]
        if counts and not (size == "max_length" and max(counts) == LONGEST):
            parts.append(f"{_span(min(counts), max(counts), ',')} {what}")
    for what, roles in (("FRESH", "fresh_sets"), ("Table 8", "salience_sets")):
        measured = [task.paper for task in every if task.role in settings.grid[roles]]
        if len(measured) < len(every):
            parts.append(f"{what} on {' and '.join(measured)} only")
    wide, seeds = [task.paper for task in every if not task.core], len(settings.seeds)
    if seeds < SEEDS:
        parts.append(f"{seeds} seed{'s' if seeds > 1 else ''} of the paper's {SEEDS}")
    if len(wide) == len(every):
        parts.append("models, Baselines too, that go on for a few steps from one run")
    elif wide:
        parts.append(
            f"one seed for {', '.join(wide)}, whose models, Baselines too, go on from one run (n=1)"
        )
    if settings.grid["contiguous_seeds"] < seeds:
        parts.append(f"contiguous rationales of {settings.grid['contiguous_seeds']} seed")
    if settings.grid["model"] == "minilm":
        layers = settings.grid.get("layers")
        cut = f" with {layers} layers" if layers else ""
        parts.append(f"MiniLM{cut} in place of BERT, SciBERT and RoBERTa")
    return ", ".join(parts)


def about_data(settings: Settings) -> str:
    """Which corpus stands for which set, where it is read from, and what rules dropped."""
    every = tasks(settings)
    stands = "; ".join(f"{t.corpus} for {t.paper}" for t in every)
    ratios = ", ".join(f"{t.paper} {t.percent} %" for t in every)
    lines = [f"In the paper's places: {stands}. Share of words in a rationale: {ratios}."]
    if settings.source == "packaged":
        lines[0] += (
            " Stand-ins are the same kind of task (short sentences, topics, a document with a "
            "query, long documents, tweets with three classes), and nothing more is claimed of "
            "them: SNLI's premise is the document, its hypothesis the query. Of a long document "
            "the models see the beginning, as many tokens as the last column says."
        )
    elsewhere = [t.corpus for t in every if t.source != settings.source]
    if elsewhere:
        lines.append(
            f"Read from ERLIB_DATA, since {settings.source} lacks it: {', '.join(elsewhere)}."
        )
    dropped = []
    for task in every:
        report = corpus_report(task.corpus, task.source)
        if report.dropped:
            rules = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            dropped.append(f"* of {task.corpus} {rules}")
    return "\n\n".join([*lines, *(["Left out by rule:", "\n".join(dropped)] if dropped else [])])


def about_training(settings: Settings, results: Results) -> str:
    """How many models there are, how well Baselines learnt, and which models did not."""
    runs = results["baselines"]
    points = 100 * (runs["dev_accuracy"] - runs["dev_majority"])
    margins = points.groupby([task_of(settings, s).paper for s in runs["spec"]], sort=False)
    above = ", ".join(
        f"{paper} {_span(of.min(), of.max(), '.0f')}" for paper, of in margins
    ).replace("-", "−")
    text = (
        f"{len(runs)} Baselines, {len(results['systems'])} regularised models and "
        f"{len(results['fresh'])} FRESH classifiers. Accuracy of the Baselines on dev, in points "
        f"above the majority class: {above}."
    )

    def named(specs: Sequence[RunSpec]) -> str:
        found = Counter(
            f"{'FRESH on' if spec.data.extract else row_of(settings, spec) + ' on'} "
            f"{task_of(settings, spec).paper}"
            for spec in specs
        )
        return ", ".join(f"{what} ({n})" if n > 1 else what for what, n in sorted(found.items()))

    stages = [results[name] for name in ("baselines", "systems", "fresh")]
    if weak := list(not_trained(results) - failed(stages)):
        why = why_untrained(weak, named)
        text += (
            f" {why} Nothing is concluded from them; Tables 1, 2, 3, 7 and 8, both tables of tests "
            "and Figure 1 mark them, Tables 4 and 6 and the audit do not."
        )
    return text


def _span(low: float, high: float, digits: str) -> str:
    a, b = f"{low:{digits}}", f"{high:{digits}}"
    return a if a == b else f"{a} to {b}"


def about_search(settings: Settings, results: Results) -> str:
    """Which λ the development texts chose, among which, by how much, and which one is judged."""
    weights = chosen(settings, results)
    by_corpus = {task.corpus: task for task in tasks(settings)}
    found = search_fractions(results).set_index(["corpus", "system"])["fraction"]
    lines = []
    for (corpus, system), tried in searched(settings).items():
        name = f"{corpus}, {system}" if system == EQ3 else corpus
        if len(tried) == 1:
            lines.append(f"{name} {power(weights[corpus, system])}, the only one tried")
            continue
        if (corpus, system) not in found.index:
            lines.append(f"{name} {power(weights[corpus, system])}, since every trial failed")
            continue
        each = found[corpus, system]
        span = _span(each.min(), each.max(), ".2f")
        texts = recipe_of(settings, by_corpus[corpus]).get("search_rows")
        lines.append(
            f"{name} {power(weights[corpus, system])} of {', '.join(power(w) for w in tried)} "
            f"(fractions {span} on {texts or 'all'} texts)"
        )
    signs = ", ".join(SHOWN[s] for s in settings.grid["search_attributions"])
    return (
        f"λ with the smallest fraction of tokens on dev texts, by {signs}: {'; '.join(lines)}. "
        "Tables 1 and 2 have both λ; all others, the figure and the verdicts are of the paper's."
    )


def about_flips(settings: Settings, results: Results) -> str:
    """In how many cells SaLoss needs fewer tokens, where tests agree, and what beats random.

    Of sets whose models are trained; and where there are too few texts for any test to agree.
    """
    every = flip_tests(settings, results)
    table = every[every["trained"] == "yes"]
    weak = ", ".join(every.loc[every["trained"] == "no", "set"].unique())
    if table.empty:
        return "On no set are all models trained: nothing is concluded from these fractions."
    better = table[table["SaLoss"] < table["Baseline"]]
    paper = (better["rank-sum"] < 0.05).sum()
    ours = (better["Holm"] < 0.05).sum()
    means = fractions(settings, results).query("sign != 'random'")
    means = means[means["system"] == SALOSS].groupby(["set", "sign"])["fraction"].mean()
    best = []
    for name in table["set"].unique():
        first = means[name] == means[name].min()
        signs = [SHOWN[sign] for sign in SHOWN if first[sign]]
        best.append(f"{name} {'all alike' if len(signs) == len(SHOWN) else '='.join(signs)}")
    under = {name: (table[f"{name}\nunder random"] < 0.05).sum() for name in ("Baseline", "SaLoss")}
    text = (
        f"SaLoss needs fewer tokens in {len(better)} of {len(table)} cells (the paper: 19 of 20); "
        f"by the paper's rank-sum test in {paper}, by signed-rank tests after Holm in {ours}. "
        f"Best attribution of SaLoss: {', '.join(best)}. Under a random order (one-sided "
        f"signed-rank, p < .05): {under['Baseline']} cells of the Baseline's, {under['SaLoss']} of "
        f"SaLoss's {len(table)}."
    )
    # n texts that all agree have p = 2 / 2ⁿ, and the smallest of m is multiplied by m
    least = next(n for n in range(1, 99) if 2 / 2**n * len(every) < 0.05)
    few = ", ".join(table.loc[table["texts"] < least, "set"].unique())
    if few:
        text += f" With fewer than {least} texts no signed-rank test can pass Holm: {few}."
    return f"{text} Left out, since a model is not trained: {weak}." if weak else text


def about_fresh(settings: Settings, results: Results) -> str:
    """How well classifiers of rationales do, by support.

    Of trained ones; over the sets that have one of every support, each set by its mean over seeds.
    """
    found = fresh(settings, results)
    means = found[found["trained"]].groupby(["shape", "set", "system"])["f1_macro"].mean()
    whole = means.unstack().reindex(columns=list(SUPPORTS)).dropna()
    parts, without = [], []
    for shape, sets in found.groupby("shape", sort=False)["set"].unique().items():
        name, have = shape.replace("_", "-"), [s for s in sets if (shape, s) in whole.index]
        if have:
            of = whole.loc[[(shape, s) for s in have]].mean()
            scores = ", ".join(f"{support} {of[support]:.2f}" for support in SUPPORTS)
            parts.append(f"{name} {scores} ({', '.join(have)})")
        if len(have) < len(sets):
            without.append(f"{name} on {', '.join(s for s in sets if s not in have)}")
    text = (
        "Mean F1 over sets, each the mean of its trained seeds, by the model that chose the words: "
        f"{'; '.join(parts) or 'none'}."
    )
    if without:
        text += (
            " Left out, since not all three have a trained classifier of a trained model: "
            f"{'; '.join(without)}."
        )
    return text


def about_functions(settings: Settings, results: Results) -> str:
    """In how many cells one salience function needs fewer tokens than another, with sign tests.

    Of trained models.
    """
    found = fractions(settings, results).query("sign != 'random' and trained")
    means = found.groupby(["set", "sign", "system"])["fraction"].mean().unstack()
    cells = means.reindex(columns=FUNCTIONS).dropna()
    parts = []
    for a, b in ((SALOSS, "TFIDF"), (SALOSS, "ChiSquared"), ("TFIDF", "ChiSquared")):
        fewer, more = (cells[a] < cells[b]).sum(), (cells[a] > cells[b]).sum()
        p = binomtest(fewer, fewer + more).pvalue if fewer + more else 1.0
        equal = len(cells) - fewer - more
        ties = f", {equal} equal" if equal else ""
        parts.append(
            f"{NAMES.get(a, a)} under {NAMES.get(b, b)} in {fewer} of {len(cells)}{ties} "
            f"(sign test p {p:.2f})"
        )
    return f"Fewer tokens, by cells: {'; '.join(parts)}."


def about_audit(settings: Settings, results: Results) -> str:
    """What the models of the audit are, which λ they have, and what is not reproduced."""
    weights, corpus = chosen(settings, results), settings.roles[AUDITED]
    paper = next(task.weight for task in tasks(settings) if task.role == AUDITED)
    seeds = sum(spec.data.corpus == corpus for spec in results["baselines"]["spec"])
    noise = (
        "the spread over seeds in the tables above says how much there is"
        if seeds > 1
        else "one seed says nothing, and there is no other to choose"
    )
    return (
        f"On {corpus}. Models of eq. 3 and of the second softmax alone have the λ that was chosen "
        f"for eq. 3 ({power(weights[corpus, EQ3])}); all others the paper's for SaLoss "
        f"({power(paper)}). “Without” and “with” are one model each, or the same model measured "
        f"twice; but saliences are compared on {TEXTS} dev texts and ask no model, and the best "
        f"seed has the mean of all seeds beside it. As to noise, {noise}.\n\n"
        "Not reproduced: the code never turns dropout on again after its first look at the dev "
        "texts, takes the training texts in order of their length and without shuffling, looks at "
        "the dev loss five times an epoch (here: at its end), does not clear IG's gradients "
        "between its points, and has AdamW without bias correction."
    )


def about_tags(settings: Settings, results: Results) -> str:
    """The tagger, which words are left out, and the tags whose importance moves most."""
    data, tagger = importance(settings, results), installed_tagger()
    parts = []
    for task in tasks(settings):
        mine = data[data["set"] == task.paper]
        if mine["system"].nunique() < 2 or not mine["trained"].all():
            continue
        means = mine.pivot_table(index="tag", columns="system", values="importance")
        moved = means["SaLoss"] - means["Baseline"]
        up, down = moved.idxmax(), moved.idxmin()
        parts.append(
            f"{task.paper} most up {up} ({moved[up]:+.3f}), most down {down} "
            f"({moved[down]:+.3f})".replace("-", "−")
        )
    offline = ", which needs no download (the paper: spaCy's)" if tagger == "pattern" else ""
    least = settings.grid["least_documents"]
    rare = f"in fewer than {least} texts or " if least > 1 else ""
    said = (
        f"Tags by {TAGGER_NAMES[tagger]}{offline}. Words {rare}in more than {100 * MOST:.0f} % of "
        "the texts are left out. Stop words stay in: most pronouns, auxiliaries and conjunctions, "
        "of which the paper speaks, are stop words, and its code drops them. Texts without "
        "capitals have few PROPN and, stripped of punctuation, no PUNCT."
    )
    return f"{said} With SaLoss: {'; '.join(parts)}." if parts else said
