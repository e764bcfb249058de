#!/usr/bin/env bash
# Environments of Gymnasium through the bridge against Gymnasium's own vector environments, the same task, number of environments and machine:
# steps per second, in alternating rounds. One worker against SyncVectorEnv in its process: goal 0.8 times and more, as each step of a block
# costs a message there and back, and 0.9 times and more with two groups, whose messages travel while the worker steps the other one; two
# workers against AsyncVectorEnv, which has a process for each environment: goal 1 and more. The last row has arrays in messages, in place of
# shared memory (env.bridge.shared_memory).
#     bench/peers/bridge_bench.sh [--short] [--rounds 5] [--num-envs 8] [--task HalfCheetah-v5] [--out RESULT.md] [BENCH_BINARY]
# Python's packages come from PyPI into build/bridge-env (bench/support/python_env.sh).
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/step_rates.sh"
rounds=5 envs=8 task=HalfCheetah-v5 out="" steps=3000 bench=$root/build/release/bench/env/bench_env_sim
while [ $# -gt 0 ]; do
  case $1 in
    --short) rounds=1 steps=50 ;;
    --rounds) rounds=$2; shift ;;
    --num-envs) envs=$2; shift ;;
    --task) task=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$bench" bench_env_sim
cd "$root"
packages=(gymnasium==1.4.0 mujoco==3.6.0 msgpack==1.2.4 numpy==2.2.6 packaging==26.4 pyzmq==27.3.0 imageio==2.38.1)
python=$(bench/support/python_env.sh build/bridge-env "${packages[@]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# told COMMAND...: what it says on standard error is told where it fails
told() { "$@" 2>"$work/error" || { cat "$work/error" >&2; exit 1; }; }
ours() {  # workers, groups, flags
  TROUPE_PYTHON=$python told "$bench" --pool --env "gymnasium:$task" --num-envs "$envs" --threads $(($1 * $2)) --workers "$1" --groups "$2" \
    --steps "$steps" "${@:3}" | tail -n 1  # the log's lines come before it
}
theirs() { told "$python" -W ignore bench/peers/gym_vector_steps.py "$1" "$task" --num-envs "$envs" --steps "$steps"; }

row() {  # name, ours, theirs
  echo "| $1 | $(rates 3 2 "$2") | $(rates 3 2 "$3") | $(rates 3 3 "$2" "$3") |"
}

load=$(cut -d' ' -f1 /proc/loadavg)
for _ in $(seq "$rounds"); do
  ours 1 1 >>"$work/one"; theirs sync >>"$work/sync"; ours 1 2 >>"$work/groups"; ours 1 1 --messages >>"$work/messages"
  ours 2 1 >>"$work/two"; theirs async >>"$work/async"
done
table="| against | ours, thousand steps per second | Gymnasium | ours / Gymnasium |
|---|---|---|---|
$(row "1 worker, SyncVectorEnv" "$work/one" "$work/sync")
$(row "1 worker, 2 groups, SyncVectorEnv" "$work/groups" "$work/sync")
$(row "2 workers, AsyncVectorEnv" "$work/two" "$work/async")
$(row "1 worker by messages, SyncVectorEnv" "$work/messages" "$work/sync")"
echo "$table"
versions=$("$python" -W ignore bench/peers/gym_vector_steps.py --version)
echo "$versions"
[ -n "$out" ] || exit 0
{
  printf '# Environments in Python through the bridge\n\n%s, %s environments, %s alternating rounds of %s steps each, each a process of its own; medians (lowest .. highest). One-minute load average before them %s.\n\n%s\n\n' \
    "$task" "$envs" "$rounds" "$steps" "$load" "$table"
  echo "- command: \`bench/peers/bridge_bench.sh --rounds $rounds --num-envs $envs --task $task\`"
  commit_and_machine
  echo "- $versions"
} >"$out"
