#!/usr/bin/env bash
# Our pool against EnvPool from the registry, on the same tasks, environments, threads and machine: steps per CPU-second (user + system of the
# whole process, from after the first reset) and per second, in alternating rounds. Expect at least 1.0 times at 64 environments and 1.1 at 8 or
# fewer. Theirs writes f64 observations, ours f32, as each does by default.
#     bench/peers/envpool_bench.sh [--short] [--rounds 5] [--num-envs "4 8 64"] [--threads 2] [--groups 1] [--tasks "..."] [--out RESULT.md] [BENCH_BINARY]
# --groups 2: ours steps two groups in turn, theirs runs asynchronously with batches of half the environments.
# Python's packages come from PyPI into build/peers-env (bench/support/python_env.sh).
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/step_rates.sh"
rounds=5 sizes="4 8 64" threads=2 groups=1 tasks="HalfCheetah-v5 Ant-v5 Humanoid-v5" out="" short=no bench=$root/build/release/bench/env/bench_env_sim
while [ $# -gt 0 ]; do
  case $1 in
    --short) short=yes rounds=1 sizes=4 ;;
    --rounds) rounds=$2; shift ;;
    --num-envs) sizes=$2; shift ;;
    --threads) threads=$2; shift ;;
    --groups) groups=$2; shift ;;
    --tasks) tasks=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$bench" bench_env_sim
cd "$root"
python=$(bench/support/python_env.sh build/peers-env $(cat bench/peers/python_packages.txt))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

row() {  # task, environments, ours, theirs
  echo "| $1 | $2 | $(rates 2 2 "$3") | $(rates 2 2 "$4") | $(rates 2 3 "$3" "$4") | $(rates 3 2 "$3") | $(rates 3 2 "$4") | $(rates 3 3 "$3" "$4") |"
}

load=$(cut -d' ' -f1 /proc/loadavg)
table="| task | environments | ours, thousand steps per CPU-second | EnvPool | ours / EnvPool | ours, thousand steps per second | EnvPool | ours / EnvPool |
|---|---|---|---|---|---|---|---|"
echo "$table"
for task in $tasks; do
  for n in $sizes; do
    case $task in HalfCheetah*) in_all=80000 ;; *) in_all=12000 ;; esac
    [ "$short" = no ] || in_all=400
    common=(--num-envs "$n" --threads "$threads" --groups "$groups" --steps $((in_all / n)))
    : >"$work/ours"; : >"$work/theirs"
    for _ in $(seq "$rounds"); do
      "$bench" --pool --env "$task" "${common[@]}" >>"$work/ours"
      "$python" -W ignore bench/peers/envpool_steps.py "$task" "${common[@]}" 2>/dev/null >>"$work/theirs"
    done
    line=$(row "$task" "$n" "$work/ours" "$work/theirs")
    echo "$line"
    table+=$'\n'$line
  done
done
versions=$("$python" -W ignore bench/peers/envpool_steps.py --version 2>/dev/null)
echo "$versions; ours: libmujoco 3.6.0"
[ -n "$out" ] || exit 0
{
  printf '# Our pool against EnvPool\n\n%s threads, %s group(s), %s alternating rounds, each a process of its own; medians (lowest .. highest). One-minute load average before them %s.\n\n%s\n\n' \
    "$threads" "$groups" "$rounds" "$load" "$table"
  echo "- command: \`bench/peers/envpool_bench.sh --rounds $rounds --num-envs \"$sizes\" --threads $threads --groups $groups --tasks \"$tasks\"\`"
  commit_and_machine
  echo "- $versions; ours: libmujoco 3.6.0 of PyPI's wheel, g++ $(g++ -dumpfullversion)"
} >"$out"
