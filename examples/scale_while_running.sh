#!/usr/bin/env bash
# Changes the decoder pool of a live run, looks at it, and checks afterwards that no sample was lost or trained twice.
#   examples/scale_while_running.sh [TROUPE]
set -euo pipefail
troupe=$(realpath "${1:-bin/troupe}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
job=(quickstart:sft training.steps=60 eval.every=0)

: >log  # there before it is followed
"$troupe" run "${job[@]}" >>log 2>&1 &
run=$!
# The run prints a line for its first step: from then on it can be asked.
timeout 60 grep -m1 -q 'step ' <(tail -f -n +1 --pid="$run" log)
"$troupe" scale decoder=4
"$troupe" status
"$troupe" scale decoder=1
wait "$run"
tail -12 log
"$troupe" verify
