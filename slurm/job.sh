# shellcheck shell=bash
# What the job scripts share. They source it in the checkout, where they were submitted.
set -euo pipefail

fail() {
    echo "error: $*" >&2
    exit 2
}

[ -n "${SLURM_JOB_ID:-}" ] || fail "this is a job script: sbatch $0 …"

# The environment that was active where sbatch was called, or else .venv.
venv=${VIRTUAL_ENV:-.venv}
if [ -f "$venv/bin/activate" ]; then
    # shellcheck source=/dev/null
    source "$venv/bin/activate"
elif [ -n "${VIRTUAL_ENV:-}" ]; then
    fail "VIRTUAL_ENV=$venv: no virtual environment there"
fi

job=$SLURM_JOB_ID
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID # the bare number may mean the whole array
    set -- "${@//%a/$SLURM_ARRAY_TASK_ID}"
fi

processes=${SLURM_NTASKS_PER_NODE:-${SLURM_GPUS_ON_NODE:-1}} # on each node
threads=$((${SLURM_CPUS_ON_NODE:?} / processes))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$threads}

# train MODULE CONFIG [key=value …]: train on all of the job's nodes, and requeue the job
# when it was stopped before the end.
train() {
    [ $# -ge 2 ] || fail "no config given: sbatch slurm/${1#train.}.sbatch CONFIG [key=value …]"
    local hosts ranks status=0
    hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
    export MASTER_ADDR=${MASTER_ADDR:-${hosts%%$'\n'*}}
    export MASTER_PORT=${MASTER_PORT:-$((10000 + SLURM_JOB_ID % 20000))}

    local options=(
        --nodes="$SLURM_JOB_NUM_NODES"
        --ntasks="$((SLURM_JOB_NUM_NODES * processes))"
        --ntasks-per-node="$processes"
        --cpus-per-task="$threads"
        --export=ALL         # also in a job that was submitted with --export=NONE
        --kill-on-bad-exit=0 # one that has stopped does not break off another that is saving,
        --wait=120           # but those that wait for one that crashed do not wait forever
    )
    # Without it the processes see none of the GPUs that --exclusive has given to the job.
    [ -z "${SLURM_GPUS_ON_NODE:-}" ] || options+=(--gpus-per-node="$SLURM_GPUS_ON_NODE")
    srun "${options[@]}" python -m "$@" &
    ranks=$!
    trap 'echo "asked to stop: saving" >&2; kill -USR1 $ranks || true' USR1
    trap : TERM # who sends it to this shell sends it to the ranks, too
    while kill -0 $ranks 2>/dev/null; do wait $ranks || true; done # a signal ends a wait
    wait $ranks || status=$?

    # 75: the state is saved; 128 + USR1 or TERM: stopped before there was anything to save.
    # Whoever cancels or requeues the job stops it in the same way, but then it is not RUNNING.
    case $status in
        75 | 138 | 143)
            if [ "$(squeue --noheader --format=%T --jobs="$job")" = RUNNING ]; then
                echo "stopped before the end; requeued" >&2
                scontrol requeue "$job"
            fi
            ;;
    esac
    exit $status
}
