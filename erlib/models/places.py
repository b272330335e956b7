"""Where is a model's checkpoint, and is all of it there?

`ERLIB_MODELS` names a folder of models for machines without the hub: what stands under
`<ERLIB_MODELS>/<owner>/<name>` is read in the place of the hub's `<owner>/<name>`, and runs are
named by the hub's name all the same.
"""

from __future__ import annotations

import os
from pathlib import Path

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file

from erlib.hub import reachable
from erlib.models.families import FAMILIES

VARIABLE = "ERLIB_MODELS"
PACKAGED = ("minilm", "smollm2", "jwa")
WEIGHTS = (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME)


def place_of(name: str) -> str:
    """The folder that is read in the place of a hub's model; without one, the name itself."""
    root = os.environ.get(VARIABLE)
    place = Path(root or "", name)
    return str(place) if root and (place / "config.json").is_file() else name


def what_is_missing(name: str) -> tuple[str, str] | None:
    """Why a model cannot be loaded and the one thing that mends it; None if all of it is there.

    Of a hub's model only configuration, tokenizer and the list of files are fetched.
    """
    place = place_of(name)
    if name in PACKAGED:
        return None
    local = Path(place).is_dir()
    elsewhere = f"save it as {name} under a folder, and set {VARIABLE} to that folder"
    if not local:
        reachable()  # if not, the cache is asked and no time is lost
    try:
        config = AutoConfig.from_pretrained(place, trust_remote_code=False)
        if config.model_type not in FAMILIES:
            return f"its family {config.model_type} is not known", "choose another model"
        AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    except (OSError, ValueError, ImportError) as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "gated" in str(error):
            return said, (
                f"accept the terms of {name} on its page with your account of the hub, and set "
                "HF_TOKEN to a token of it"
            )
        if not local and not reachable():
            said = "the hub cannot be reached, and it is not in its cache"
        if local:
            return said, f"save it again with save_pretrained to {place}"
        return said, f"start where the hub can be reached; or {elsewhere}"
    if not any(_has(place, file) for file in WEIGHTS):
        return (
            f"it has no {SAFE_WEIGHTS_NAME}, and pickled weights are never opened",
            f"load it with transformers where you trust it, {elsewhere} (save_pretrained)",
        )
    return None


def _has(place: str, file: str) -> bool:
    """Has a folder, the cache or the hub this file? Nothing is fetched."""
    if Path(place).is_dir():
        return Path(place, file).is_file()
    try:
        return cached_file(place, file, local_files_only=True) is not None
    except OSError:
        pass
    if not reachable():
        return False
    from huggingface_hub import file_exists

    return bool(file_exists(place, file))
