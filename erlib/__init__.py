"""Explanation-regularised text classifiers: trained, explained, measured and compared.

The public names. Each is imported when it is first used, so that `import erlib` is instant.
"""

from importlib import import_module
from typing import Any

from erlib.errors import lacking
from erlib.threads import be_considerate

be_considerate()

_HOME = {
    "Attribution": "erlib.attributions",
    "Classifier": "erlib.models",
    "DataSpec": "erlib.config",
    "EvalSpec": "erlib.config",
    "ModelSpec": "erlib.config",
    "OptimiserSpec": "erlib.config",
    "RunSpec": "erlib.config",
    "Stage": "erlib.training.stages",
    "attribute": "erlib.attributions",
    "carry_out": "erlib.training.stages",
    "compare": "erlib.comparing",
    "evaluate": "erlib.training.evaluating",
    "explore": "erlib.explorer",
    "load_classifier": "erlib.models",
    "load_data": "erlib.data",
    "per_epoch": "erlib.training.evaluating",
    "per_text": "erlib.training.evaluating",
    "report": "erlib.papers.report",
    "run": "erlib.training.runs",
    "settings": "erlib.parameters",
    "term": "erlib.config",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'erlib' has no attribute '{name}'")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        raise lacking(error) from error


def __dir__() -> list[str]:
    return __all__
