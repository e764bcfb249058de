#!/usr/bin/env bash
# Proximal policy optimisation from pictures end to end, ours through the bridge against a CleanRL-style PPO in PyTorch over Gymnasium's vector API:
# environment steps per second with collection and updates, on PushT-v0 of gym-pusht with pictures of 84x84, 16 environments x 32 steps, 8 minibatches
# of 64, 4 epochs; actor and critic with convolutions of their own (Mnih et al. 2015) and a layer of 512. Rounds alternate all sides; the first 2
# iterations of a run do not count; each side at the fastest of its settings. The simulator is the same Python on all sides.
#     bench/peers/pixels_bench.sh [--short] [--rounds 5] [--iterations 12] [--workers "1 2"] [--torch-threads "1 2"] [--gym-modes "sync async"]
#                                 [--out RESULT.md] [--troupe TROUPE] [k=v ...]
# k=v: further settings of bench/rl/ppo_pixels_throughput.yaml. Python's packages come from PyPI into build/pusht-env and build/python-env
# (bench/support/python_env.sh); torch is of the second, all else of the first.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
rounds=5 iterations=12 workers="1 2" torch_threads="1 2" gym_modes="sync async" compile_flags=--compile note=""
usage() { echo "pixels_bench: $1" >&2; sed -n '6,7p' "$0" >&2; exit 2; }
flag() {
  case $1 in
    --short) rounds=1 iterations=3 workers=2 torch_threads=2 gym_modes=sync compile_flags="" note=" (--short)" ;;
    *) return 1 ;;
  esac
}
option() {
  case $1 in
    --rounds) rounds=$2 ;;
    --iterations) iterations=$2 ;;
    --workers) workers=$2 ;;
    --torch-threads) torch_threads=$2 ;;
    --gym-modes) gym_modes=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"

peers_folder=build/pusht-env peers_list=bench/peers/pusht_packages.txt
source "$root/bench/peers/torch_peers.sh"
records=$work/records
export TROUPE_PYTHON=$peers TROUPE_PYTHON_FOLDER=$root/python

# record ROUND SIDE SETTING "steps wall return"
record() { printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" | tee -a "$records" >&2; }

# ours ROUND: once for every count of Python workers
ours() {
  local count runs figures
  for count in $workers; do
    runs=$work/runs-$count-$1
    our_run bench/rl/ppo_pixels_throughput.yaml "job.run_root=$runs" "training.steps=$iterations" "env.bridge.workers=$count"
    figures=$(python3 bench/peers/ppo_report.py rate "$runs/latest" --skip 2)
    record "$1" pictures "workers=$count" "$figures"
    rm -rf "$runs"
  done
}

# theirs ROUND SIDE MODE [--compile]: once for every count of intra-op threads
theirs() {
  local count figures
  for count in $torch_threads; do
    figures=$(OMP_NUM_THREADS=$count peer ppo_pixels_cleanrl_style.py --envs "gym-$3" --torch-threads "$count" --iterations "$iterations" --skip 2 "${@:4}")
    record "$1" "$2" "$3,torch_threads=$count" "$figures"
  done
}

load=$(cut -d' ' -f1 /proc/loadavg)
for round in $(seq "$rounds"); do
  ours "$round"
  for mode in $gym_modes; do
    theirs "$round" gymnasium "$mode"
    for flag in $compile_flags; do theirs "$round" gymnasium-compiled "$mode" "$flag"; done
  done
done
table=$(python3 bench/peers/ppo_report.py table "$records")
versions=$(peer ppo_pixels_cleanrl_style.py --version)
peer_result "PPO from pictures end to end against PyTorch over Gymnasium" \
  "PushT-v0 of gym-pusht, pictures of 84x84, 16 environments x 32 steps, 8 minibatches of 64, 4 epochs; actor and critic each with convolutions of 32, 64 and 64
channels and a layer of 512. $rounds alternating rounds of $iterations iterations, the first 2 not counted, each run a process (ours: processes) of its own; medians
(lowest .. highest). One-minute load average before them $load, on $(nproc) hardware threads. A ratio is of one round; a side's setting is the fastest by its median." \
  "bench/peers/pixels_bench.sh --rounds $rounds --iterations $iterations --workers \"$workers\" --torch-threads \"$torch_threads\" --gym-modes \"$gym_modes\"" \
  "workers with the same packages" bench/rl/ppo_pixels_throughput.yaml
