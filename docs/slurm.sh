#!/usr/bin/env bash
#SBATCH --job-name=erlib
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --time=2-00:00:00
#SBATCH --requeue
# In a checkout on a disk that all nodes share, where ./run_all.sh --profile gpu --plan was run once
# and `.venv/bin/pip install 'erlib[ray]'`:
#     sbatch docs/slurm.sh --profile gpu
# Ray is started on every node of the job, and ends with it. The same command goes on where a job
# that ran out of time stopped.
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
export PATH=$PWD/.venv/bin:$PATH
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n') # nobody else's job joins
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
address=${nodes[0]}:$((20000 + SLURM_JOB_ID % 10000))
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT

on() { # on NODE ray-option…
    srun --nodes=1 --ntasks=1 --overlap --nodelist="$1" \
        ray start --block --num-cpus="$SLURM_CPUS_PER_TASK" "${@:2}" &
}
on "${nodes[0]}" --head --port="${address#*:}" --include-dashboard=false
for ((left = 60; left; left--)); do
    if ray status --address="$address" >/dev/null 2>&1; then break; fi
    sleep 2
done
for node in "${nodes[@]:1}"; do on "$node" --address="$address"; done

./run_all.sh --executor ray --ray-address "$address" "$@"
