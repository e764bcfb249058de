#!/usr/bin/env bash
# The pool of one build against that of another, such as of the commit before: steps of cheap environments per CPU-second and per second, in
# alternating rounds, each a process of its own. Ends with status 1 where the two do not give the same bits, on one thread and on all.
#     bench/env/builds_bench.sh [--short] [--rounds 7] [--num-envs "1 8 64 1024"] [--threads 2] [--tasks "CartPole-v1 Pendulum-v1"]
#                               [--out RESULT.md] BEFORE [AFTER]
# BEFORE and AFTER are bench_env_sim; AFTER is the release build's unless given.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/step_rates.sh"
rounds=7 sizes="1 8 64 1024" threads=2 tasks="CartPole-v1 Pendulum-v1" out="" in_all=1000000
binaries=()
while [ $# -gt 0 ]; do
  case $1 in
    --short) rounds=1 sizes=8 in_all=4000 ;;
    --rounds) rounds=$2; shift ;;
    --num-envs) sizes=$2; shift ;;
    --threads) threads=$2; shift ;;
    --tasks) tasks=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) binaries+=("$(realpath "$1")") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
before=${binaries[0]:?the bench_env_sim of before} after=${binaries[1]:-$root/build/release/bench/env/bench_env_sim}
need_program "$before" bench_env_sim
need_program "$after" bench_env_sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

load=$(cut -d' ' -f1 /proc/loadavg)
table="| task | environments | before, thousand steps per CPU-second | after | after / before | before, thousand steps per second | after | after / before | same bits |
|---|---|---|---|---|---|---|---|---|"
echo "$table"
status=0
for task in $tasks; do
  for n in $sizes; do
    case_of=(--env "$task" --num-envs "$n")
    : >"$work/before"; : >"$work/after"
    for _ in $(seq "$rounds"); do
      "$before" --pool "${case_of[@]}" --threads "$threads" --steps $((in_all / n)) >>"$work/before"
      "$after" --pool "${case_of[@]}" --threads "$threads" --steps $((in_all / n)) >>"$work/after"
    done
    same=yes
    for t in 1 "$threads"; do
      [ "$("$before" --bits "${case_of[@]}" --threads "$t" --steps 1200)" = "$("$after" --bits "${case_of[@]}" --threads "$t" --steps 1200)" ] || same=NO
    done
    [ $same = yes ] || status=1
    line="| $task | $n | $(rates 2 0 "$work/before") | $(rates 2 0 "$work/after") | $(rates 2 2 "$work/after" "$work/before") | $(rates 3 0 "$work/before") | $(rates 3 0 "$work/after") | $(rates 3 2 "$work/after" "$work/before") | $same |"
    echo "$line"
    table+=$'\n'$line
  done
done
[ -n "$out" ] || exit $status
{
  printf '# The pool before and after\n\n%s threads, one group, %s alternating rounds, each a process of its own; medians (lowest .. highest). One-minute load average before them %s.\n\n%s\n\n' \
    "$threads" "$rounds" "$load" "$table"
  echo "- command: \`bench/env/builds_bench.sh --rounds $rounds --num-envs \"$sizes\" --threads $threads --tasks \"$tasks\" BEFORE\`"
  echo "- BEFORE: ${BEFORE_COMMIT:-$before}"
  commit_and_machine
  echo "- g++ $(g++ -dumpfullversion), build type Release"
} >"$out"
exit $status
