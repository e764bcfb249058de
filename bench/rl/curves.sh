#!/usr/bin/env bash
# Learning curves: trains a recipe once for each seed, evaluates each policy, and makes a table of returns, success, steps and times, with the
# image of every seed's curve. Seeds run one after the other, with --parallel two at a time (then seconds are those of a shared machine).
#     bench/rl/curves.sh RECIPE --seeds A..B|"A B C" [--steps ITERATIONS] [--episodes N] [--solve RETURN] [--parallel] [--short] [--out RESULT.md]
#                        [--troupe TROUPE] [k=v ...]
# RECIPE: a file, or the name of one in configs/recipes (rl_halfcheetah_ppo), or of an embedded one (quickstart:rl). --steps: training.steps,
# --episodes: of `troupe eval` (default: the recipe's eval.episodes). k=v: further settings of the job. RESULT.md gets RESULT_seedN.png beside it.
# Runs stay in build/rl-curves/ (--short, two iterations of one seed: nothing stays); exit status 1 when a seed failed.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
recipe="" seeds="" steps="" episodes="" solve="" at_once=1 short=no out="" troupe=$root/build/release/app/troupe settings=() command="bench/rl/curves.sh"
usage() { echo "curves: $1" >&2; sed -n '4,5p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  shown=$1 words=2
  case $1 in
    --seeds|--steps|--episodes|--solve|--out|--troupe) [ $# -ge 2 ] || usage "$1 needs a value" ;;
  esac
  case $1 in
    --seeds) seeds=$2 shown="--seeds \"$2\"" ;;
    --steps) steps=$2 shown="--steps $2" ;;
    --episodes) episodes=$2 shown="--episodes $2" ;;
    --solve) solve=$2 shown="--solve $2" ;;
    --out) out=$(realpath -m "$2") shown="" ;;
    --troupe) troupe=$(realpath "$2") shown="" ;;
    --parallel) at_once=2 words=1 ;;
    --short) seeds=${seeds:-1} steps=2 episodes=2 short=yes words=1 ;;
    -*) usage "unknown option '$1'" ;;
    *=*) settings+=("$1") words=1 ;;
    *) [ -z "$recipe" ] || usage "two recipes, '$recipe' and '$1'"; recipe=$1 words=1 ;;
  esac
  command+=${shown:+ $shown}
  shift "$words"
done
refuse_dirty_tree "$out"
[ -n "$recipe" ] && [ -n "$seeds" ] || usage "a recipe and --seeds are needed"
[[ $seeds =~ ^([0-9]+)\.\.([0-9]+)$ ]] && seeds=$(seq -s ' ' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
[[ $seeds =~ ^[0-9]+(\ [0-9]+)*$ ]] || usage "--seeds '$seeds' is neither a range such as 1..5 nor numbers such as \"1 4 7\""
need_program "$troupe" troupe
if [ -f "$recipe" ]; then recipe=$(realpath "$recipe")
elif [ -f "$root/configs/recipes/$recipe.yaml" ]; then recipe=$root/configs/recipes/$recipe.yaml
fi
cd "$root"
name=$(basename "${recipe/:/_}" .yaml)
folder=$root/build/rl-curves/$name-$(date +%Y%m%d-%H%M%S)-$$
if [ "$short" = yes ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
job=(metrics.every=1 ${steps:+"training.steps=$steps"} ${settings[@]+"${settings[@]}"})

# One seed: the run, then its evaluation; the files that curve_table.py reads.
one_seed() {
  local at=$folder/seed-$1 status=0 begin=$EPOCHREALTIME
  mkdir -p "$at"
  "$troupe" run "$recipe" --resume never "job.run_root=$at" "job.seed=$1" "${job[@]}" >"$at/run.txt" 2>&1 &
  local run=$!
  trap 'kill "$run" 2>/dev/null; exit 1' TERM
  wait "$run" || status=$?
  awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }' >"$at/wall"
  echo "$status" >"$at/exit"
  if [ "$status" -ne 0 ]; then
    echo "curves: seed $1 failed with exit status $status; the end of $at/run.txt:" >&2
    tail -5 "$at/run.txt" >&2
    return
  fi
  if ! "$troupe" eval "$(realpath "$at/latest")" ${episodes:+--episodes "$episodes"} --json >"$at/eval.json" 2>"$at/eval.txt"; then
    echo "curves: seed $1: troupe eval failed, the run's own last evaluation is taken: $(tail -1 "$at/eval.txt")" >&2
    rm -f "$at/eval.json"
  fi
  echo "curves: seed $1 done in $(cat "$at/wall") s" >&2
}

trap 'kill $(jobs -p) 2>/dev/null; wait; exit 1' INT TERM
load=$(cut -d' ' -f1 /proc/loadavg)
for seed in $seeds; do
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  one_seed "$seed" &
done
wait
table=$(python3 bench/rl/curve_table.py "$folder" ${solve:+--solve "$solve"})
printf '%s\n\nruns: %s\n' "$table" "$folder"
if [ -n "$out" ]; then
  mkdir -p "$(dirname "$out")"
  charts=""
  for seed in $seeds; do
    for chart in return success; do
      from=$folder/seed-$seed/latest/$chart.png to=${out%.md}_seed$seed.png
      [ "$chart" = return ] || to=${out%.md}_seed${seed}_$chart.png
      if [ -f "$from" ]; then
        cp "$from" "$to"
        charts+=" [seed $seed, $chart]($(basename "$to"))"
      fi
    done
  done
  {
    printf '# Learning curves of %s\n\n%s\n\n' "$name" "$table"
    echo "- curves:${charts:- none}"
    echo "- command: \`$command\`, $([ "$at_once" = 1 ] && echo 'seeds one after the other' || echo "$at_once seeds at a time"); one-minute load average before $load"
    commit_and_machine
    echo "- $(version_of "$troupe"), libmujoco 3.6.0 of PyPI's wheel, g++ $(g++ -dumpfullversion), $(uname -sr)"
    if [ -f "$recipe" ]; then printf '\n## Recipe\n```yaml\n%s\n```\n' "$(cat "$recipe")"; fi
  } >"$out"
  echo "written: $out"
fi
for seed in $seeds; do [ "$(cat "$folder/seed-$seed/exit" 2>/dev/null)" = 0 ] || exit 1; done
