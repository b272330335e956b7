"""Do the files that set the project up agree with each other and with the code?

The scripts are run for real, in a copy of the repository, with a stand-in for Python that writes
down how it was called: nothing is installed.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
import yaml

from erlib.errors import EXTRAS
from tests import tiny

ROOT = Path(__file__).parent.parent


def pins(lines: list[str]) -> dict[str, str]:
    """`name==version` lines as a dictionary; any other kind of requirement is an error."""
    found = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            name, exact = re.fullmatch(r"([a-z0-9-]+)==([0-9][0-9.]*)", line).groups()
            assert name not in found
            found[name] = exact
    return found


RUN = pins((ROOT / "requirements.txt").read_text().splitlines())
TEST = pins((ROOT / "requirements-test.txt").read_text().splitlines())


# --- pins ---------------------------------------------------------------------------------------


def test_conda_and_pip_users_get_the_same_versions():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (from_pip,) = [d["pip"] for d in environment["dependencies"] if isinstance(d, dict)]
    assert pins(from_pip) == RUN


def test_what_the_suite_is_built_on_is_pinned():
    assert RUN["torch"] == "2.13.0"
    assert RUN.keys() >= {
        "torch",
        "transformers",
        "captum",
        "datasets",
        "pandas",
        "matplotlib",
        "seaborn",
        "papermill",
        "jupyterlab",
        "scipy",
    }


def test_a_package_is_pinned_in_one_file_only():
    assert RUN.keys().isdisjoint(TEST)


@pytest.mark.parametrize("name", sorted(RUN | TEST))
def test_the_pinned_version_is_the_one_installed_here(name: str):
    assert version(name).split("+")[0] == (RUN | TEST)[name]


OPTIONAL = {"spacy"}  # used for parts of speech where somebody has installed it


def imported_distributions(folder: str) -> set[str]:
    """The distributions whose modules are imported anywhere under a folder."""
    modules = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(node.module.split(".")[0])
    third_party = modules - sys.stdlib_module_names - {"erlib", "tests"} - OPTIONAL
    providers = packages_distributions()
    return {providers[m][0].lower().replace("_", "-") for m in third_party}


def test_every_library_that_erlib_imports_is_pinned():
    assert imported_distributions("erlib") <= RUN.keys()


def test_every_library_that_the_tests_import_is_pinned():
    assert imported_distributions("tests") <= RUN.keys() | TEST.keys()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTALLS = "setuptools"  # what builds erlib, and is no library of it


def ranges(lines: list[str]) -> dict[str, tuple[str, str]]:
    """`name>=low,<high` as (low, high); what is an extra of erlib itself is left out."""
    wanted = re.compile(r"([a-z0-9-]+)>=([0-9.]+)(?:,<([0-9.]+))?")
    found = [wanted.fullmatch(line) for line in lines if not line.startswith("erlib[")]
    return {m[1]: (m[2], m[3] or "9999") for m in found}


def numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def test_every_pin_is_in_the_range_of_the_package_and_begins_it():
    extras = PROJECT["optional-dependencies"]
    listed = ranges([*PROJECT["dependencies"], *(x for lines in extras.values() for x in lines)])
    assert listed.keys() == (RUN | TEST).keys() - {INSTALLS}
    for name, (low, high) in listed.items():
        pin = numbers((RUN | TEST)[name])
        assert pin[: len(numbers(low))] == numbers(low) and pin < numbers(high), name


def test_without_extras_a_model_is_compared_and_what_lacks_a_library_names_its_extra(tmp_path):
    held = {name for brings in EXTRAS.values() for name in brings}
    code = f"""
import sys
class Held:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {held}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Held())
import erlib
from erlib.cli import main
model = erlib.load_classifier({str(tiny.directory("bert"))!r}, seed=0)
erlib.compare(model, ["a great film"], ["attention"]).save("x.html")
model.predict(["a great film"]), erlib.RunSpec, erlib.run, erlib.evaluate, erlib.load_data
try:
    erlib.explore()
except ModuleNotFoundError as error:
    print(error)
assert main(["runs", "ls"]) == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "ERLIB_STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'erlib[explorer]'" in done.stdout
    assert f"no runs in {tmp_path / 'store'} yet" in done.stdout


def test_every_data_file_of_the_package_is_installed_with_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [p for p in (ROOT / "erlib").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    forgotten = [f for f in files if f.suffix != ".py" and not any(f.match(p) for p in patterns)]
    assert forgotten == []


def test_the_five_papers_are_cited():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert len({paper["title"] for paper in citation["references"]}) == 5
    for paper in citation["references"]:
        assert paper["authors"] and paper["collection-title"] and paper["year"]


# --- scripts ------------------------------------------------------------------------------------

STAND_IN = """#!/bin/bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
    *sys.prefix*) dirname -- "$(dirname -- "$0")" ;;
    "-m venv .venv") mkdir -p .venv/bin && cp -- "$0" .venv/bin/python ;;
    "-m erlib run"*) printf '%s\\n' "$PWD" "$ERLIB_DATA" >"$CALLS.where" ;;
esac
"""


class Clone:
    """A copy of the scripts in a folder of its own, and a PATH on which Python is a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a clone"  # a blank in the path must not matter
        self.calls = folder / "calls"
        tools = folder / "active" / "bin"
        tools.mkdir(parents=True)
        shutil.copytree(ROOT / ".ci", self.folder / ".ci")
        for name in (
            "run_all.sh",
            "run_tests.sh",
            "requirements.txt",
            "requirements-test.txt",
            "pyproject.toml",
        ):
            shutil.copy(ROOT / name, self.folder)
        for name in ("python", "python3.11", "chromium"):
            (tools / name).write_text(STAND_IN)
            (tools / name).chmod(0o755)
        self.env = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "CALLS": str(self.calls)}

    def start(
        self, script: str, *arguments: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script; afterwards `python_calls` has what it asked of Python."""
        self.calls.write_text("")
        return subprocess.run(
            [str(self.folder / script), *arguments],
            cwd=cwd or self.folder,
            env=self.env | env,
            text=True,
            capture_output=True,
            timeout=60,
        )

    @property
    def python_calls(self) -> list[str]:
        """What was asked of Python, less the questions about its version and place."""
        calls = self.calls.read_text().splitlines()
        return [c for c in calls if not c.startswith("-c ") and not c.endswith("--version")]

    @property
    def installations(self) -> list[str]:
        return [c for c in self.python_calls if "pip install" in c]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


VARIABLES = ["ERLIB_DATA", "ERLIB_CACHE", "ERLIB_STORE", "ERLIB_NO_VENV", "ERLIB_PIP_ARGS"]
OPTIONS = ["--profile", "--only", "--seeds", "--data", "--executor", "--retry-failed",
           "--force", "--from-results", "--plan", "--lab", "--help"]  # fmt: skip


@pytest.mark.parametrize("script", ["run_all.sh", "run_tests.sh"])
def test_help_is_complete_and_does_nothing(clone: Clone, script: str, tmp_path: Path):
    result = clone.start(script, "--help", cwd=tmp_path)
    assert result.returncode == 0 and result.stderr == ""
    expected = VARIABLES + (OPTIONS if script == "run_all.sh" else ["--help"])
    assert [word for word in expected if word not in result.stdout] == []
    assert clone.python_calls == [] and not (clone.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("arguments", "named", "listed"),
    [
        (["--porfile", "quick"], "--porfile", OPTIONS),
        (["er_lens"], "er_lens", OPTIONS),
        (["--plan=yes"], "--plan=yes", OPTIONS),
        (["--profile", "fast"], "fast", ["quick", "cpu", "night", "gpu", "paper"]),
        (["--profile=fast"], "fast", ["quick", "cpu", "night", "gpu", "paper"]),
        (["--data", "web"], "web", ["packaged", "local", "hub"]),
        (["--executor", "ray"], "ray", ["local"]),
        (["--seeds", "1,two"], "1,two", ["whole numbers"]),
        (["--seeds", "--plan"], "--seeds", ["needs a value"]),
        (["--only"], "--only", ["needs a value"]),
        (["--plan", "--lab"], "--lab", ["no other option"]),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_installed(
    clone: Clone, arguments: list[str], named: str, listed: list[str]
):
    result = clone.start("run_all.sh", *arguments)
    assert result.returncode == 2
    assert [word for word in [named, *listed] if word not in result.stderr] == []
    assert clone.python_calls == [] and not (clone.folder / ".venv").exists()


def test_the_first_start_makes_an_environment_installs_fetches_and_runs(clone: Clone):
    arguments = ["--profile", "cpu", "--only=er_lens", "--seeds", "1,2", "--data", "local"]
    result = clone.start(
        "run_all.sh", *arguments, "--executor", "local", "--retry-failed", "--plan"
    )
    assert result.returncode == 0, result.stderr
    assert clone.python_calls == [
        "-m venv .venv",
        "-m pip install -qq -r requirements.txt",
        "-m pip install -qq --no-deps --no-build-isolation -e .",
        "-m erlib fetch",
        f"-m erlib run {' '.join(arguments)} --executor local --retry-failed --plan",
    ]


def test_reports_from_archives_fetch_nothing(clone: Clone):
    result = clone.start("run_all.sh", "--from-results", "--only", "saloss")
    assert result.returncode == 0, result.stderr
    assert clone.python_calls[-1] == "-m erlib run --from-results --only saloss"
    assert "-m erlib fetch" not in clone.python_calls


def test_the_second_start_installs_nothing(clone: Clone):
    clone.start("run_all.sh")
    clone.start("run_all.sh")
    assert clone.python_calls == ["-m erlib fetch", "-m erlib run"]


@pytest.mark.parametrize("changed", ["requirements.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(clone: Clone, changed: str):
    clone.start("run_all.sh")
    with (clone.folder / changed).open("a") as file:
        file.write("# another line\n")
    clone.start("run_all.sh")
    assert len(clone.installations) == 2


def test_a_moved_repository_is_installed_again(clone: Clone):
    clone.start("run_all.sh")
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    clone.start("run_all.sh")
    assert len(clone.installations) == 2


def test_an_interrupted_installation_is_done_again(clone: Clone):
    clone.start("run_all.sh")
    python = clone.folder / ".venv" / "bin" / "python"
    python.write_text(STAND_IN + 'case "$*" in *"pip install"*) exit 1 ;; esac\n')
    (clone.folder / "requirements.txt").write_text("torch==0\n")
    assert clone.start("run_all.sh").returncode != 0
    assert "-m erlib run" not in clone.python_calls
    shutil.copy(ROOT / "requirements.txt", clone.folder)
    python.write_text(STAND_IN)
    clone.start("run_all.sh")
    assert len(clone.installations) == 2


def test_the_test_extras_are_installed_once_and_serve_a_run_too(clone: Clone):
    clone.start("run_all.sh")
    clone.start("run_tests.sh", "tests")
    assert clone.installations[0].endswith("-r requirements.txt -r requirements-test.txt")
    clone.start("run_all.sh")
    assert clone.installations == []


def test_pip_gets_the_callers_arguments_as_separate_words(clone: Clone):
    clone.start("run_all.sh", ERLIB_PIP_ARGS="--no-index --find-links wheels")
    assert len(clone.installations) == 2
    for call in clone.installations:
        assert " --no-index --find-links wheels " in call


def test_an_active_environment_is_used_when_asked_for(clone: Clone, tmp_path: Path):
    clone.start("run_all.sh", ERLIB_NO_VENV="1")
    assert len(clone.installations) == 2 and not (clone.folder / ".venv").exists()
    clone.start("run_all.sh", ERLIB_NO_VENV="1")
    assert clone.installations == []


def test_an_unsuitable_python_is_named_and_refused(clone: Clone, tmp_path: Path):
    (tmp_path / "active" / "bin" / "python").write_text(
        '#!/bin/bash\n[[ $1 == --version ]] && echo "Python 3.10.1"\n'
    )
    result = clone.start("run_all.sh", ERLIB_NO_VENV="1")
    assert result.returncode == 1
    assert "Python 3.10.1" in result.stderr and "3.11 or 3.12" in result.stderr


def test_relative_paths_count_from_where_the_command_is_given(clone: Clone, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    clone.start("run_all.sh", cwd=elsewhere, ERLIB_DATA="my/data")
    where = clone.calls.with_suffix(".where").read_text().splitlines()
    assert where == [str(clone.folder), str(elsewhere / "my/data")]


def test_lab_opens_the_notebooks_and_runs_nothing(clone: Clone):
    clone.start("run_all.sh", "--lab")
    opened = "-m jupyterlab --LabApp.default_url=/lab/tree/notebooks"
    assert clone.python_calls[-1].startswith(opened)
    assert not any("erlib run" in call for call in clone.python_calls)


@pytest.mark.parametrize("script", ["run_tests.sh", ".ci/run"])
def test_all_checks_run_in_order(clone: Clone, script: str, tmp_path: Path):
    result = clone.start(script, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert clone.python_calls[3:] == [
        "-m erlib fetch",
        "-m ruff check",
        "-m mypy",
        "-m erlib run --profile quick",
        "-m pytest -n logical --maxprocesses 4 --dist loadfile -m not full",
    ]


def test_a_failing_check_fails_the_tests(clone: Clone):
    clone.start("run_tests.sh", "tests")
    python = clone.folder / ".venv" / "bin" / "python"
    python.write_text(STAND_IN + '[[ $* != "-m mypy" ]]\n')
    assert clone.start("run_tests.sh").returncode == 1
    assert clone.python_calls[-1] == "-m mypy"


def test_chosen_tests_run_without_the_quick_profile(clone: Clone):
    clone.start("run_tests.sh", "tests/data", "-k", "encoding")
    assert clone.python_calls[3:] == ["-m erlib fetch", "-m pytest tests/data -k encoding"]
