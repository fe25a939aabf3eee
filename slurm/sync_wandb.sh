#!/usr/bin/env bash
# Sends runs that were tracked offline (tracker=wandb_offline) to Weights & Biases, from a machine
# with a network, such as a login node:
#   bash slurm/sync_wandb.sh                         all below $TRIAX_RUNS, once
#   bash slurm/sync_wandb.sh runs/answer             all below a folder
#   bash slurm/sync_wandb.sh --watch 300             again every 300 seconds, until interrupted
# Needs `wandb login` once, or WANDB_API_KEY; WANDB_BASE_URL for a server of one's own.
# Of a run that was requeued the newest part is sent, which holds the whole run. What was sent and
# has not changed is passed over. A run that is still written waits until it has ended, or until
# nothing was added to it for --idle seconds (120; a live one adds something every 15), so that
# none is shown as failed while it runs. --timeout (1800) is the most seconds that one run may take.
# Ends with 1 if a run could not be sent, with 2 if there is no key.
set -euo pipefail
# shellcheck source=slurm/site/laptop.env
source "${TRIAX_SITE:-slurm/site/laptop.env}"
folder=
watch=
idle=120
limit=1800
while [[ $# -gt 0 ]]; do
  case "$1" in
    --watch | --idle | --timeout)
      if [[ ! "${2:-}" =~ ^[0-9]+$ ]]; then
        echo "error: $1 takes a number of seconds, found '${2:-}'" >&2
        exit 2
      fi
      case "$1" in
        --watch) watch=$2 ;;
        --idle) idle=$2 ;;
        --timeout) limit=$2 ;;
      esac
      shift 2
      ;;
    -*)
      echo "error: unknown option $1; known are --watch, --idle and --timeout" >&2
      exit 2
      ;;
    *)
      folder=$1
      shift
      ;;
  esac
done
folder=${folder:-${TRIAX_RUNS:-runs}}
if [[ ! -d "$folder" ]]; then
  echo "error: no folder $folder; give the one that TRIAX_RUNS names where the jobs run" >&2
  exit 2
fi
wandb="${TRIAX_VENV:?}/bin/wandb"
if [[ ! -x "$wandb" ]] && ! wandb=$(command -v wandb); then
  echo "error: no wandb in $TRIAX_VENV/bin or on the path; pip install 'triax[wandb]'" >&2
  exit 2
fi

# W&B writes a log of its own where it is called.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Seconds since a file was changed.
age() {
  echo $(($(date +%s) - $(stat -c %Y "$1")))
}

# The newest part of each run that holds anything (seven bytes are a process that was killed before
# it wrote), by the time in its folder's name, offline-run-<date>_<time>-<id>; the oldest first.
newest_parts() {
  find "$folder" -path '*/offline-run-*/*' -name '*.wandb' -size +7c | awk -F/ '
    {
      part = $(NF - 1)
      id = part
      sub(/^offline-run-[^-]*-/, "", id)
      if (part > newest[id]) { newest[id] = part; path[id] = $0 }
    }
    END { for (id in path) print newest[id] "\t" path[id] }
  ' | sort | cut -f 2
}

# Sends what is new; counts in sent, waiting and failed.
sync_once() {
  local part file mark output before
  sent=0 waiting=0 failed=0
  while IFS= read -r file; do
    part=$(dirname "$file")
    mark="$file.synced"
    if [[ -e "$mark" && ! "$file" -nt "$mark" ]]; then continue; fi
    if [[ ! -e "$part/finished" && $(age "$file") -lt $idle ]]; then
      waiting=$((waiting + 1))
      continue
    fi
    # Its exit code does not say whether it sent something; its mark does.
    before=$(stat -c %y "$mark" 2>/dev/null || echo none)
    # A site may have set WANDB_MODE=offline for its nodes.
    output=$(env -u WANDB_MODE WANDB_DIR="$logs" timeout "$limit" \
      "$wandb" sync --include-synced "$part" </dev/null 2>&1) || true
    if [[ $(stat -c %y "$mark" 2>/dev/null || echo none) != "$before" ]]; then
      sent=$((sent + 1))
      echo "sent $part"
      continue
    fi
    if grep -qiE 'no api key|not authenticated|not logged in|wandb login' <<<"$output"; then
      echo "error: W&B has no key here; run \`$wandb login\`, or set WANDB_API_KEY" >&2
      exit 2
    fi
    failed=$((failed + 1))
    echo "error: $part was not sent:" >&2
    tail -n 5 <<<"$output" | sed 's/^/  /' >&2
  done < <(newest_parts)
  echo "$sent sent, $waiting still running, $failed failed"
}

sync_once
while [[ -n "$watch" ]]; do
  sleep "$watch"
  sync_once
done
[[ $failed -eq 0 ]]
