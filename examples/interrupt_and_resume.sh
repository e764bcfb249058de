#!/usr/bin/env bash
# Stops a run with Ctrl-C's signal, goes on with it, and exports the weights.
#   examples/interrupt_and_resume.sh [TROUPE]
set -euo pipefail
troupe=$(realpath "${1:-bin/troupe}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
job=(quickstart:sft training.steps=60 eval.every=0)

: >log  # there before it is followed
"$troupe" run "${job[@]}" >>log 2>&1 &
run=$!
timeout 60 grep -m1 -q 'step ' <(tail -f -n +1 --pid="$run" log)
kill -INT "$run"
code=0
wait "$run" || code=$?
echo "interrupted with exit code $code"
[ "$code" -eq 130 ]
"$troupe" run "${job[@]}" --resume auto | tail -12
"$troupe" verify
"$troupe" export runs/latest --format safetensors --out weights
ls -l weights
