#!/usr/bin/env bash
# Changes the decoder pool of a live run, looks at it, and checks afterwards that no sample was lost or trained twice.
#   examples/scale_while_running.sh [TROUPE]
set -euo pipefail
troupe=${1:-bin/troupe}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
job=(quickstart:sft "data.sets[0].path=$root/data" "job.run_root=$root/runs" training.steps=60 eval.every=0)

"$troupe" run "${job[@]}" >"$root/log" 2>&1 &
run=$!
# The run prints a line for its first step: from then on it can be asked.
timeout 60 grep -m1 -q 'step ' <(tail -f -n +1 --pid="$run" "$root/log")
"$troupe" scale decoder=4 --run-root "$root/runs"
"$troupe" status --run-root "$root/runs"
"$troupe" scale decoder=1 --run-root "$root/runs"
wait "$run"
tail -12 "$root/log"
"$troupe" verify --run-root "$root/runs"
