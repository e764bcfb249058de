#!/usr/bin/env bash
# Proximal policy optimisation end to end, ours against a CleanRL-style PPO in PyTorch over EnvPool and over Gymnasium's vector API: environment
# steps per second with collection and updates, on HalfCheetah-v5, 64 environments x 32 steps, 32 minibatches of 64, 10 epochs, 2xHIDDEN tanh, a table
# for each HIDDEN. Rounds alternate all sides, PyTorch over EnvPool eager and compiled; the first 2 iterations of a run do not count; each side at the
# fastest of its settings (threads). Goal: at least twice the better peer with the generic unit, three times with the explicit MLP backward.
#     bench/peers/ppo_bench.sh [--short] [--rounds 5] [--iterations 40] [--hidden "64 256"] [--env-threads "1 2"] [--torch-threads "1 2"]
#                              [--gym-modes "sync async"] [--out RESULT.md] [--troupe TROUPE] [k=v ...]
# k=v: further settings of bench/rl/ppo_throughput.yaml. Python's packages come from PyPI into build/peers-env and build/python-env
# (bench/support/python_env.sh); torch is of the second, all else of the first.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
rounds=5 iterations=40 widths="64 256" env_threads="1 2" torch_threads="1 2" gym_modes="sync async" note=""
usage() { echo "ppo_bench: $1" >&2; sed -n '6,7p' "$0" >&2; exit 2; }
flag() {
  case $1 in
    --short) rounds=1 iterations=4 widths=64 env_threads=2 torch_threads=1 gym_modes=sync note=" (--short)" ;;
    *) return 1 ;;
  esac
}
option() {
  case $1 in
    --rounds) rounds=$2 ;;
    --iterations) iterations=$2 ;;
    --hidden) widths=$2 ;;
    --env-threads) env_threads=$2 ;;
    --torch-threads) torch_threads=$2 ;;
    --gym-modes) gym_modes=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"
threads=$(nproc)

source "$root/bench/peers/torch_peers.sh"

# record ROUND SIDE SETTING "steps wall return"
record() { printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$records"; printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >&2; }

# ours ROUND SIDE EXPLICIT_BACKWARD: once for every count of stepping threads
ours() {
  local count runs figures
  for count in $env_threads; do
    runs=$work/runs-$2-$count-$1
    our_run bench/rl/ppo_throughput.yaml "job.run_root=$runs" "training.steps=$iterations" "env.threads=$count" "algorithm.explicit_backward=$3" \
      "policy.hidden=[$hidden, $hidden]"
    figures=$(python3 bench/peers/ppo_report.py rate "$runs/latest" --skip 2)
    record "$1" "$2" "env.threads=$count" "$figures"
    rm -rf "$runs"
  done
}

# theirs ROUND SIDE ENVS NAME [--compile]: once for every count of intra-op threads
theirs() {
  local count figures
  for count in $torch_threads; do
    figures=$(OMP_NUM_THREADS=$count peer ppo_cleanrl_style.py --envs "$3" --torch-threads "$count" --env-threads "$threads" --iterations "$iterations" --skip 2 \
      --hidden "$hidden" "${@:5}")
    record "$1" "$2" "$4torch_threads=$count" "$figures"
  done
}

load=$(cut -d' ' -f1 /proc/loadavg)
table=""
for hidden in $widths; do
  records=$work/records-$hidden
  for round in $(seq "$rounds"); do
    ours "$round" explicit true
    theirs "$round" envpool envpool "num_threads=$threads,"
    theirs "$round" compiled envpool "num_threads=$threads," --compile
    ours "$round" generic false
    for mode in $gym_modes; do theirs "$round" gymnasium "gym-$mode" "$mode,"; done
  done
  table+=$(printf '## 2x%s\n\n' "$hidden"; python3 bench/peers/ppo_report.py table "$records"; printf '\n\n.')
  table=${table%.}
done
versions=$(peer ppo_cleanrl_style.py --version)
peer_result "PPO end to end against PyTorch over EnvPool and Gymnasium" \
  "HalfCheetah-v5, 64 environments x 32 steps, 32 minibatches of 64, 10 epochs, tanh networks. $rounds alternating rounds of $iterations iterations, the first 2 not
counted, each run a process (ours: processes) of its own; medians (lowest .. highest). One-minute load average before them $load, on $threads hardware threads.
A ratio is of one round; a side's setting is the fastest by its median." \
  "bench/peers/ppo_bench.sh --rounds $rounds --iterations $iterations --hidden \"$widths\" --env-threads \"$env_threads\" --torch-threads \"$torch_threads\" --gym-modes \"$gym_modes\"" \
  "libmujoco 3.6.0 of PyPI's wheel" bench/rl/ppo_throughput.yaml
