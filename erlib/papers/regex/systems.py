"""What does "Towards Faithful Explanations for Text Classification …" train, and on what?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from erlib.config import (
    CheckpointRule,
    Choices,
    DataSpec,
    Extraction,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Term,
    term,
)
from erlib.parameters import Settings

MAIN = ("Baseline", "REGEX")
ATTRIBUTIONS = {
    "RAND": "random",
    "aGa": "scaled_attention",
    "a": "attention",
    "DeepLift": "deeplift",
    "xGx": "input_x_gradient",
    "IG": "integrated_gradients",
}
SYMBOLS = {"aGa": "α∇α", "a": "α", "xGx": "x∇x"}  # what a reader calls those with other names
BEST = ("aGa", "DeepLift")  # the two attributions that the paper's claims are about
GUIDES = {
    "Saliency": "saliency",
    "InputXGrad": "input_x_gradient",
    "DeepLift": "deeplift",
    "IG": "integrated_gradients",
}
# How much of a text is a FRESH rationale, in per cent of its words.
RATIO = {"SST": 20, "IMDB": 2, "Yelp": 10, "AmazDigiMu": 20, "AmazPantry": 20, "AmazInstr": 20}
# λ2, λ3, λ4 of eq. 8; λ1 is 1
GRADIENT, ADVERSARIAL, GUIDED = 0.01, 0.5, 0.01
PERCENT = 15  # K: how much of a text explanation guided training masks


@dataclass(frozen=True)
class Set:
    """A corpus, and the data set of the paper that it is or stands in for."""

    paper: str
    corpus: str


@dataclass(frozen=True)
class System:
    """Which parts of REGEX a system is trained with, and what guides it."""

    gradient: bool = True
    adversarial: bool = True
    guided: float = GUIDED
    guide: str = "IG"
    aggregation: str = "l2"
    percent: int = PERCENT
    refreshed: str | None = None  # None: as the profile says
    project: bool = False


SYSTEMS = {
    "Baseline": System(gradient=False, adversarial=False, guided=0.0),
    **{
        f"{guide} (Mean)": System(guide=guide, aggregation="mean") for guide in GUIDES
    },
    **{f"{guide} (l2)": System(guide=guide) for guide in GUIDES if guide != "IG"},
    "REGEX": System(),
    "w/o robustness improvement": System(gradient=False, adversarial=False),
    "w/o virtual adversarial training": System(adversarial=False),
    "w/o input gradient regularization": System(gradient=False),
    "w/o explanation guided training": System(guided=0.0),
}  # fmt: skip
SHORT_RUN = ", short run"  # of a system that is trained for as few steps as the short variants
ABLATIONS = [name for name in SYSTEMS if name != "Baseline"]


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run: its system and its corpus."""
    corpus = run.data.corpus
    if run.data.extract:
        return f"classifiers of rationales of {corpus}"
    names = {objective(settings, system): name for name, system in SYSTEMS.items()}
    name = names.get(run.objective, "REGEX at another setting")
    second = run.model == ModelSpec(**settings.grid["second_model"])
    return f"{name} on {corpus}{' (second model)' if second else ''}"


def other_readings(settings: Settings) -> dict[str, System]:
    """REGEX by other readings of the paper: choice → its other side (regex.md §4.1 and 4.3)."""
    mine = settings.grid["refreshed"]
    other = {"epoch": "batch", "batch": "epoch"}[mine]
    return {
        "δ normalised, or in a ball of radius ε": System(project=True),
        f"guide made for every {mine}, or for every {other}": System(refreshed=other),
    }


def families(settings: Settings) -> list[list[Set]]:
    """Two families of three sets: systems are trained on one and tested on all of its family."""
    names = (("SST", "IMDB", "Yelp"), ("AmazDigiMu", "AmazPantry", "AmazInstr"))
    roles = (settings.roles["two_classes"], settings.roles["three_classes"])
    return [
        [Set(name, corpus) for name, corpus in zip(family, corpora, strict=True)]
        for family, corpora in zip(names, roles, strict=True)
    ]


def sets(settings: Settings) -> dict[str, Set]:
    """The six sets by the paper's names."""
    return {s.paper: s for family in families(settings) for s in family}


def pairs(settings: Settings) -> list[tuple[Set, Set]]:
    """The 18 (source, target) pairs, in the paper's order: in domain first."""
    return [
        (source, target)
        for family in families(settings)
        for source in family
        for target in [source, *(s for s in family if s != source)]
    ]


def pair_name(source: Set, target: Set) -> str:
    """As the paper's tables call it."""
    return f"{source.paper}->{target.paper}"


def everywhere(settings: Settings) -> bool:
    """Has every system every seed, in and out of domain?"""
    return "core" not in settings.grid


def is_core(settings: Settings, system: str) -> bool:
    """Does this system decide claims, with every seed in SST's domain?"""
    return everywhere(settings) or system in settings.grid["core"]


def is_long(settings: Settings, system: str) -> bool:
    """Is it trained at full length, or briefly from the seed's Baseline?

    The Baseline is compared with REGEX, and so trained as long.
    """
    system = "REGEX" if system == "Baseline" else system
    if "long" in settings.grid:
        return system in settings.grid["long"]
    return is_core(settings, system)


def seeds_of(
    settings: Settings, system: str, source: str = "SST", target: str = "SST"
) -> tuple[int, ...]:
    """Every seed where claims are decided: for core systems, in SST's domain; one elsewhere."""
    home = everywhere(settings) or (source, target) == ("SST", "SST")
    return settings.seeds if home and is_core(settings, system) else settings.seeds[:1]


def data_spec(settings: Settings, this: Set, extract: Extraction | None = None) -> DataSpec:
    """A set as models see it, with the rows that they are trained on."""
    grid = settings.grid
    return DataSpec(
        this.corpus,
        settings.source_of(this.corpus),
        grid.get("max_length_of", {}).get(this.paper, grid["max_length"]),
        grid.get("train_rows"),
        grid.get("dev_rows"),
        extract,
    )


def main_run(settings: Settings, system: str, source: str, seed: int) -> RunSpec:
    """The run of a system that the tables are about: full length only on SST, if at all."""
    wide = source != "SST" or not is_long(settings, system)
    return run_spec(settings, system, source, seed, wide=wide)


def run_spec(
    settings: Settings,
    system: str | System,
    source: str,
    seed: int,
    *,
    wide: bool = False,
    small: bool = False,
) -> RunSpec:
    """One training run.

    `wide` runs are short and begin from the seed's Baseline, where the profile has such runs; so
    does the Baseline beside them, which has as many more steps of the task's loss alone.
    `small`: the second size of model, of Table 8.
    """
    made = SYSTEMS[system] if isinstance(system, str) else system
    baseline = RunSpec(
        data_spec(settings, sets(settings)[source]),
        ModelSpec(**settings.grid["second_model" if small else "model"]),
        seed=seed,
    )
    baseline = _sized(settings, "optimiser" if source == "SST" else "others", baseline)
    spec = replace(baseline, objective=objective(settings, made))
    if wide and "short" in settings.grid:
        return replace(_sized(settings, "short", spec), start=baseline)
    return spec


def objective(settings: Settings, system: System) -> tuple[Term, ...]:
    """eq. 8, without the terms that a system leaves out."""
    terms = [term("task")]
    if system.gradient:
        terms.append(term("input_gradient", GRADIENT))
    if system.adversarial:
        options = {"project": True} if system.project else {}
        terms.append(term("virtual_adversarial", ADVERSARIAL, **options))
    if system.guided:
        terms.append(
            term(
                "guided",
                system.guided,
                guide=GUIDES[system.guide],
                aggregation=system.aggregation,
                points=settings.grid["points"],
                percent=system.percent,
                refreshed=system.refreshed or settings.grid["refreshed"],
            )
        )
    return tuple(terms)


def untrained(settings: Settings, *, small: bool = False) -> RunSpec:
    """The pretrained encoder under a new head: a run of one step with learning rate 0."""
    spec = run_spec(settings, "Baseline", "SST", max(settings.seeds) + 1, small=small)
    still = replace(spec.optimiser, lr=0.0, head_lr=0.0, epochs=1)
    return replace(spec, data=replace(spec.data, train_rows=8, dev_rows=8), optimiser=still)


def fresh_spec(
    settings: Settings, support: RunSpec, source: Set, attribution: str, seed: int
) -> RunSpec:
    """A classifier that sees nothing but the rationales of `support`."""
    rationales = extraction(settings, support, attribution, RATIO[source.paper])
    spec = run_spec(settings, "Baseline", source.paper, seed)
    return _sized(settings, "fresh", replace(spec, data=data_spec(settings, source, rationales)))


def extraction(settings: Settings, support: RunSpec, attribution: str, percent: int) -> Extraction:
    """The best words of a text by an attribution of the support model."""
    return Extraction(
        support,
        percent,
        ATTRIBUTIONS[attribution],
        "regex",
        options=options_of(settings, attribution),
    )


def options_of(settings: Settings, attribution: str) -> Choices:
    """Integrated gradients has as many points as the profile says."""
    return (("steps", settings.grid["points"]),) if attribution == "IG" else ()


def _sized(settings: Settings, name: str, spec: RunSpec) -> RunSpec:
    """The run with the rows and steps of one of the profile's recipes, and with the paper's
    checkpoint: the epoch of the best dev F1."""
    recipe = settings.grid.get(name, {})
    rows = {k: recipe[k] for k in ("train_rows", "dev_rows") if k in recipe}
    steps = {k: recipe[k] for k in ("epochs", "batch_size") if k in recipe}
    optimiser = OptimiserSpec(
        **{**settings.grid["optimiser"], **steps},
        betas=(0.9, 0.999),
        clip=1.0,
        checkpoint=CheckpointRule("dev_f1_macro", "max", patience=None),
    )
    return replace(spec, data=replace(spec.data, **rows), optimiser=optimiser)
