# Sourced by train_*.sbatch: `train PROGRAM SETTING...` runs train/PROGRAM.py in every task of the
# job, and in the shell itself where there is no Slurm. %a in a setting becomes the number of the
# task of an array (0 outside of one).
# A signal (SIGUSR1 ahead of a time limit or a preemption, SIGTERM at the end) is handed on; the
# program then writes a checkpoint and ends with code 75, and the job puts itself back into the
# queue. Started again, or submitted again with the same settings, it goes on from there.
# shellcheck shell=bash disable=SC2034
# shellcheck source=slurm/site/laptop.env
source "${TRIAX_SITE:-slurm/site/laptop.env}"

train() {
  local program=$1 setting worker code
  shift
  local command=("${TRIAX_VENV:?}/bin/python" "train/$program.py")
  for setting in "$@"; do
    command+=("${setting//%a/${SLURM_ARRAY_TASK_ID:-0}}")
  done
  if [[ -n ${SLURM_JOB_ID:-} ]]; then
    # srun makes the step from which jax.distributed learns of the other tasks.
    command=(srun --kill-on-bad-exit=1 "${command[@]}")
  fi
  # In the background, since bash runs no trap while it waits for a command.
  "${command[@]}" &
  worker=$!
  trap 'kill -USR1 "$worker" 2>/dev/null || true' USR1
  trap 'kill -TERM "$worker" 2>/dev/null || true' TERM
  while kill -0 "$worker" 2>/dev/null; do
    wait "$worker" || true # a signal ends a wait early
  done
  wait "$worker" && code=0 || code=$?
  if [[ $code -eq 75 && -n ${SLURM_JOB_ID:-} ]]; then
    echo "job ${SLURM_JOB_ID} goes back into the queue (start $((${SLURM_RESTART_COUNT:-0} + 1)))"
    scontrol requeue "$SLURM_JOB_ID" && sleep 60 # until Slurm ends this script
    echo "error: it could not be requeued; submit it again with the same settings" >&2
  fi
  return "$code"
}
