"""Where do the BiLSTM's word vectors come from?

From the GloVe file that ERLIB_GLOVE names, where it is set (the paper: glove.840B.300d.txt);
otherwise from the packaged GloVe 6B of 50 dimensions, which `load_classifier("jwa")` takes.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

from erlib.config import DataSpec, digest
from erlib.models import load_classifier
from erlib.models.jwa import VERSION, start_folder
from erlib.parameters import Settings
from erlib.training.rows import content_of, rows_of
from erlib.training.store import checksum, open_store

VARIABLE = "ERLIB_GLOVE"


def glove_file() -> Path | None:
    """The GloVe file to use, if there is one."""
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    if not Path(given).is_file():
        raise FileNotFoundError(f"{VARIABLE} names {given}, which is not a file")
    return Path(given)


def word_vectors(settings: Settings, data: DataSpec, seed: int) -> str:
    """The model to start from: "jwa", or a folder with an untrained JWA on the vectors of a file.

    The vocabulary is that of the training texts and all other weights are drawn from `seed`, so
    there is one folder for each of both, in the store. It is named by what is in the file, and by
    that name (see `jwa.placeless`) the runs that start from it are known: neither the file's place
    nor the store's is part of theirs.
    """
    file = glove_file()
    if file is None:
        return "jwa"
    words = content_of(data, "train", data.train_rows)
    content = digest([VERSION, content_of_file(file), words, seed])
    folder = start_folder(open_store(settings.store).root, content)
    if not (folder / "config.json").exists():
        texts = rows_of(data, "train", data.train_rows)["words"]
        counts = Counter(word for text in texts for word in text)
        model = load_classifier("jwa", head="agreement", seed=seed, glove=file, word_counts=counts)
        partial = folder.with_suffix(f".{os.getpid()}")
        model.save_pretrained(partial)
        if not folder.exists():
            partial.rename(folder)
    return str(folder)


def content_of_file(file: Path) -> str:
    """The sha256 of a file: gigabytes are read once in a process, and again if it changes."""
    found = file.stat()
    return _checksum(file.resolve(), found.st_mtime_ns, found.st_size)


@cache
def _checksum(file: Path, modified: int, size: int) -> str:
    return checksum(file)
