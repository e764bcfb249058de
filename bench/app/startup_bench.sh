#!/usr/bin/env bash
# Start-up time of a job: from exec of `troupe run quickstart:sft training.steps=1` to its first loss line (held-out loss of step 0)
# and to its first training step, beside what the process alone costs (`troupe --version`). Medians; the data set is made before.
#     bench/app/startup_bench.sh [--short] [--runs N] [--out RESULT.md] [TROUPE]
set -euo pipefail
export LC_ALL=C  # EPOCHREALTIME with a point
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
runs=5 out="" troupe=$root/build/release/app/troupe
while [ $# -gt 0 ]; do
  case $1 in
    --short) runs=1 ;;
    --runs) runs=$2; shift ;;
    --out) out=$2; shift ;;
    *) troupe=$(realpath "$1") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$troupe" troupe

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

milliseconds() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.0f", (b - a) * 1000 }'; }
summary() { sort -n "$1" | awk '{ x[NR] = $1 } END { m = NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2
                                                    printf "%.0f (%.0f .. %.0f)", m, x[1], x[NR] }'; }

# One run: appends milliseconds to the files started, held_out, trained and finished.
one_run() {
  local begin=$EPOCHREALTIME started="" held_out="" trained="" line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>last_run.txt
    case $line in
      "run "*) started=${started:-$EPOCHREALTIME} ;;
      *"held-out loss "*) held_out=${held_out:-$EPOCHREALTIME} ;;
      *"% "*" loss "*) trained=${trained:-$EPOCHREALTIME} ;;
    esac
  done < <("$troupe" run quickstart:sft --resume never training.steps=1 2>&1)
  if ! wait $! || [ -z "$trained" ] || [ -z "$held_out" ]; then
    echo "startup_bench: the run failed or printed no loss:" >&2
    cat last_run.txt >&2
    exit 1
  fi
  local end=$EPOCHREALTIME name
  for name in started held_out trained; do milliseconds "$begin" "${!name}" >>"$name"; echo >>"$name"; done
  milliseconds "$begin" "$end" >>finished; echo >>finished
}

one_run  # makes the data set and warms the page cache
rm -f started held_out trained finished
for _ in $(seq "$runs"); do
  begin=$EPOCHREALTIME
  "$troupe" --version >/dev/null
  milliseconds "$begin" "$EPOCHREALTIME" >>version; echo >>version
  : >last_run.txt
  one_run
done

table() {
  echo "| from exec to | milliseconds, median (lowest .. highest) of $runs |"
  echo "|---|---|"
  echo "| end of \`troupe --version\` (the process alone) | $(summary version) |"
  echo "| plan made, run directory made (\`run ...\` is printed) | $(summary started) |"
  echo "| first loss line (held-out loss at step 0) | $(summary held_out) |"
  echo "| first training step | $(summary trained) |"
  echo "| exit, with a checkpoint, a prediction and two charts written | $(summary finished) |"
}
rows=$(table)
echo "$rows"
[ -n "$out" ] || exit 0
cd "$root"
{
  echo "# Start-up of a quickstart job, CPU"
  echo
  echo "\`troupe run quickstart:sft training.steps=1\`: two learner processes, two decoders, one checkpointer, on one machine. The data set exists and is"
  echo "in the page cache."
  echo
  echo "$rows"
  echo
  echo "- command: \`bench/app/startup_bench.sh --runs $runs\`"
  commit_and_machine
  echo "- $("$troupe" --version), g++ $(g++ -dumpfullversion), $(uname -sr)"
  echo "- configuration: recipes/quickstart_sft.yaml with training.steps=1"
} >"$out"
