"""How do the systems differ on a single text?"""

from __future__ import annotations

from erlib.attributions import attribute
from erlib.config import DataSpec
from erlib.models import load_classifier
from erlib.papers.er_lens.systems import annotated, run_spec
from erlib.parameters import Settings
from erlib.reports import heatmap
from erlib.reports.markup import Html
from erlib.training.executors import default_device, open_store
from erlib.training.identity import rows_of, run_hash

MAX_WORDS = 50  # of a quoted text


def examples(settings: Settings, count: int) -> Html:
    """Attention of the first seed's models on the first held-out texts that have a rationale."""
    home = next(t for t in annotated(settings) if t.in_domain)
    data = DataSpec(home.corpus, settings.source, settings.grid["max_length"])
    rows = rows_of(data, home.split, settings.grid.get("dev_rows"))
    fit = [
        i
        for i, row in enumerate(rows)
        if any(row["rationale"]) and 8 <= len(row["words"]) <= MAX_WORDS
    ]
    chosen = rows.select(fit[:count])
    names, shown = chosen.features["label"].names, {}
    for system in settings.grid["systems"]:
        sealed = open_store(settings.store).get(
            "runs", run_hash(run_spec(settings, system, settings.seeds[0]))
        )
        if sealed is not None and sealed.status == "done":
            classifier = load_classifier(str(sealed.path)).to(settings.device or default_device())
            shown[system] = attribute(classifier, chosen, "attention")
    lines = [(system, i) for i in range(len(chosen)) for system in shown]
    return heatmap(
        [shown[system][i] for system, i in lines],
        titles=[f"{system} (gold: {names[chosen[i]['label']]})" for system, i in lines],
        rationales=[chosen[i]["rationale"] for _, i in lines],
    )
