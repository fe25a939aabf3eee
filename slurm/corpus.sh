#!/usr/bin/env bash
# A corpus to an index on many nodes: plan, extract (an array), merge, embed (an array), index, each
# after the one before. The number of tasks of the arrays comes first, then settings:
#   bash slurm/corpus.sh 16 corpus=hotpotqa shard_size=2048
# It prints the ids of the jobs. After a failure the same command makes what is missing:
#   .venv/bin/python eval/shard_status.py corpus=hotpotqa      says what that is, and why
# TRIAX_SBATCH holds options of sbatch for all jobs, TRIAX_ARRAY more for the arrays, such as
# "--account=nlp" and "--gpus=1 --time=08:00:00"; the site file may set them. Where there is no
# sbatch all of it runs here, one shard after another.
set -euo pipefail
# shellcheck source=slurm/site/laptop.env
source "${TRIAX_SITE:-slurm/site/laptop.env}"
tasks="${1:-}"
if [[ ! "$tasks" =~ ^[1-9][0-9]*$ ]]; then
  echo "error: the number of tasks of the arrays comes first, at least 1" >&2
  exit 2
fi
shift
if ! command -v sbatch >/dev/null; then
  bash slurm/plan.sbatch "$@"
  for stage in extract embed; do
    bash slurm/extract_array.sbatch "$stage" "$@"
    bash slurm/merge.sbatch "$stage" "$@"
  done
  exit
fi
read -ra common <<<"${TRIAX_SBATCH:-}"
read -ra array <<<"${TRIAX_ARRAY:-}"
array+=("--array=0-$((tasks - 1))")
last=""
submit() {
  local label=$1 dependency=()
  shift
  if [[ -n "$last" ]]; then
    dependency=("--dependency=afterok:$last" --kill-on-invalid-dep=yes)
  fi
  last=$(sbatch --parsable "${common[@]}" "${dependency[@]}" "$@")
  last=${last%%;*}
  echo "$label $last"
}
submit plan slurm/plan.sbatch "$@"
submit extract "${array[@]}" slurm/extract_array.sbatch extract "$@"
submit merge slurm/merge.sbatch extract "$@"
submit embed "${array[@]}" slurm/extract_array.sbatch embed "$@"
submit index slurm/merge.sbatch embed "$@"
