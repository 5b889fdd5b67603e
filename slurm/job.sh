# shellcheck shell=bash
# Functions of all job scripts, which source this file in the checkout.
set -euo pipefail

fail() {
    echo "error: $*" >&2
    exit 2
}

[ -n "${SLURM_JOB_ID:-}" ] || fail "this is a job script: sbatch $0 …"

# Use the virtual environment that was active when sbatch was called, or else .venv.
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

# Variables of a launcher in the submitting shell must not reach the processes of the job.
unset RANK WORLD_SIZE LOCAL_RANK

# train MODULE CONFIG [key=value …]: train on all of the job's nodes. A job that is stopped before
# the end is requeued, at most SIMLLM_MAX_RESTARTS times (100).
train() {
    [ $# -ge 2 ] || fail "no config given: sbatch slurm/${1#train.}.sbatch CONFIG [key=value …]"
    local ranks='' asked='' status=0 out before
    trap 'echo "asked to stop: saving" >&2; asked=1; [ -z "$ranks" ] || kill -USR1 $ranks || true' USR1
    trap : TERM # the ranks get TERM from the same sender

    local hosts first
    hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
    first=${hosts%%$'\n'*}
    # Use the address, because other nodes may not know the name of the node.
    MASTER_ADDR=$(scontrol --oneliner show node "$first" | field NodeAddr) || MASTER_ADDR=$first
    MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
    export MASTER_ADDR MASTER_PORT

    # Errors in the configuration are reported by the training.
    out=$(python -m train.runtime.print_run_folder "${@:2}" 2>/dev/null) || out=''
    before=$(contents "$out")

    local options=(
        --nodes="$SLURM_JOB_NUM_NODES"
        --ntasks="$((SLURM_JOB_NUM_NODES * processes))"
        --ntasks-per-node="$processes"
        --cpus-per-task="$threads"
        --export=ALL         # also in a job that was submitted with --export=NONE
        --kill-on-bad-exit=0 # a process that stopped must not kill others that still save,
        --wait=120           # but processes must not wait forever for a crashed one
    )
    # Without this option the processes see none of the GPUs of an --exclusive job.
    [ -z "${SLURM_GPUS_ON_NODE:-}" ] || options+=(--gpus-per-node="$SLURM_GPUS_ON_NODE")
    srun "${options[@]}" python -m "$@" &
    ranks=$!
    [ -z "$asked" ] || kill -USR1 $ranks || true
    while kill -0 $ranks 2>/dev/null; do wait $ranks || true; done # a signal ends a wait
    wait $ranks || status=$?
    [ "$status" -ne 0 ] || exit 0

    local reason
    reason=$(no_restart "$status" "$asked" "$before" "$(contents "$out")")
    if [ -z "$reason" ]; then
        echo "stopped before the end; requeueing" >&2
        reason=$(requeue)
    fi
    [ -z "$reason" ] || echo "not requeued: $reason" >&2
    exit "$status"
}

# on_ray COMMAND …: start a Ray cluster on all of the job's nodes, run the command on the first one, with
# --engine ray and the address of the cluster at its end, and stop the cluster.
on_ray() {
    local first ip nodes=$SLURM_JOB_NUM_NODES status=0
    first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    ip=$(scontrol --oneliner show node "$first" | field NodeAddr) || ip=$first
    port=$((20000 + SLURM_JOB_ID % 12000)) # Ray's own processes take ports from 10002 to 19999
    RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))') # nobody else may use this cluster
    export ip port RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
    export OMP_NUM_THREADS=1 # Ray starts a process for each processor

    # shellcheck disable=SC2016 # the processes expand the variables
    srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" --export=ALL \
        bash -c '
            options=(--address "$ip:$port")
            [ "$SLURM_PROCID" != 0 ] || options=(--head --node-ip-address "$ip" --port "$port" --include-dashboard=false)
            exec ray start --block --num-cpus "$SLURM_CPUS_ON_NODE" "${options[@]}"
        ' &
    local ray=$!
    trap 'kill $ray 2>/dev/null || true' EXIT
    python -m simllm.io.ray_cluster "$ip:$port" "$nodes" || exit
    "$@" --engine ray --address "$ip:$port" || status=$?
    exit "$status"
}

# field NAME: print the value of NAME=VALUE in the output of scontrol; fail if there is none.
field() {
    grep -o " $1=[^ ]*" | head -n 1 | cut -d= -f2
}

# contents FOLDER: list the files in the folders of a run (corpus, vocabulary, states, …), without temporary ones.
contents() {
    [ -d "$1" ] || return 0
    (cd "$1" && find . -name '.?*' -prune -o -type f -path './*/*' -print | sort)
}

# no_restart STATUS ASKED BEFORE AFTER: print the reason against a restart, or nothing.
# ASKED is empty unless the time was up; BEFORE and AFTER are the contents of the run's folder.
no_restart() {
    local limit=${SIMLLM_MAX_RESTARTS:-100} interrupted=''
    case $1 in
        75 | 138 | 143) interrupted=1 ;; # stopped by USR1 or TERM: 75 after the start-up, else 128 + signal
        129 | 13[1-9] | 14? | 15?) ;;    # a process crashed, or was killed
        *)
            echo "the training ended with exit status $1"
            return
            ;;
    esac
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "$limit" ]; then
        echo "this was restart $SLURM_RESTART_COUNT, the last that SIMLLM_MAX_RESTARTS=$limit allows"
    elif [ -n "$(comm -13 <(echo "$3") <(echo "$4"))" ]; then
        return
    elif [ -n "$2" ]; then
        echo "nothing was saved since the job started; give it more --time"
    elif [ -z "$interrupted" ]; then
        echo "nothing was saved since the job started, and the training ended with exit status $1"
    fi # otherwise the job was preempted, and the next start may get more time
}

# Requeue the job; if that is impossible, print the reason.
requeue() {
    local try state
    for try in 1 2 3 4 5 6; do
        state=$(scontrol --oneliner show job "$job" | field JobState) || state=''
        # If somebody cancelled or requeued the job, it was stopped in the same way, but is not RUNNING.
        if [ -n "$state" ] && [ "$state" != RUNNING ]; then
            echo "somebody cancelled or requeued the job (its state is $state)"
            return
        fi
        # If the state stays unknown, try to requeue anyway at last.
        if [ "$state" = RUNNING ] || [ "$try" = 6 ]; then
            scontrol requeue "$job" >&2 && return
        fi
        sleep 5
    done
    echo "SLURM does not answer"
}
