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

# Lines of "steps cpu_seconds wall_seconds", one a round, of both sides -> a row of the table.
row() {  # task, environments, ours, theirs
  paste "$3" "$4" | awk -v task="$1" -v n="$2" '
    function sort_of(x, count,  i, j, t) { for (i = 2; i <= count; ++i) for (j = i; j > 1 && x[j - 1] > x[j]; --j) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t } }
    function text(x, digits,  m, f) { sort_of(x, NR); m = NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2
                                   f = "%." digits "f (%." digits "f .. %." digits "f)"; return sprintf(f, m, x[1], x[NR]) }
    { oc[NR] = $1 / $2 / 1000; ow[NR] = $1 / $3 / 1000; tc[NR] = $4 / $5 / 1000; tw[NR] = $4 / $6 / 1000; rc[NR] = oc[NR] / tc[NR]; rw[NR] = ow[NR] / tw[NR] }
    END { printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", task, n, text(oc, 2), text(tc, 2), text(rc, 3), text(ow, 2), text(tw, 2), text(rw, 3) }'
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
