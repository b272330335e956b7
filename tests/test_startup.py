"""What is loaded before anything is asked for? A command that looks something up starts at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
sys.argv = ["erlib", *{arguments!r}]
try:
    {statement}
except SystemExit:
    pass
print("LOADED", *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""
COMMAND = "from erlib.cli import main; main()"
HELP = {"erlib", "numpy"}
# pandas brings pyarrow, and pyarrow cloudpickle
LISTS = HELP | {"cloudpickle", "dateutil", "filelock", "pandas", "platformdirs", "pyarrow"}


def loaded(tmp_path, statement, arguments=()):
    """The libraries that are in memory in the end, Python's own left out."""
    code = LOADED.format(statement=statement, arguments=list(arguments))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path)), "HOME": str(tmp_path),
             "ERLIB_STORE": str(tmp_path), "ERLIB_CACHE": str(tmp_path)},
    )  # fmt: skip
    names = done.stdout.rsplit("LOADED", 1)[1].split()
    ours = {n for n in names if n not in sys.stdlib_module_names and not n.startswith("_")}
    return ours - {"cython_runtime", "sitecustomize"}


def test_the_package_loads_nothing_but_itself(tmp_path):
    assert loaded(tmp_path, "import erlib") == {"erlib"}


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [(["--help"], HELP), (["runs", "ls"], LISTS), (["runs", "show", "00ab"], LISTS),
     (["data", "ls"], LISTS)],
)  # fmt: skip
def test_a_command_that_looks_something_up_loads_neither_torch_nor_transformers(
    tmp_path, arguments, libraries
):
    found = loaded(tmp_path, COMMAND, arguments)
    assert "erlib" in found and found <= libraries
