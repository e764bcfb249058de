#!/usr/bin/env bash
# Soft actor-critic end to end, ours (recipe rl_halfcheetah_sac) against a CleanRL-style SAC in PyTorch over Gymnasium: return after STEPS environment
# steps of HalfCheetah-v5, and updates per second with collection, for each seed in turn, first ours, then theirs, then the bound: the bare matrix
# products of an update, by the same library. 2x256 ReLU, batch 256, one update a step. The peer and the products run with the count of intra-op
# threads that a short run before finds fastest. Goal: equal returns within the spread of seeds, and more than twice the peer's updates per second.
#     bench/peers/sac_bench.sh [--short] [--steps 100000] [--seeds "1 2 3"] [--torch-threads "1 2"] [--out RESULT.md] [--troupe TROUPE] [k=v ...]
# k=v: further settings of the recipe. Python's packages as of bench/peers/ppo_bench.sh. About 25 minutes a seed on two cores; --short one in all.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
steps=100000 seeds="1 2 3" torch_threads="1 2" episodes=10 starts=5000 trial=1500 seconds=3 note=""
usage() { echo "sac_bench: $1" >&2; sed -n '6,7p' "$0" >&2; exit 2; }
flag() {
  case $1 in
    --short) steps=3000 seeds=1 torch_threads=1 episodes=1 starts=1000 trial=100 seconds=1 note=" (--short)" ;;
    *) return 1 ;;
  esac
}
option() {
  case $1 in
    --steps) steps=$2 ;;
    --seeds) seeds=$2 ;;
    --torch-threads) torch_threads=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"
[ $((steps % 1000)) -eq 0 ] || usage "--steps $steps: the recipe commits 1,000 at a time"

source "$root/bench/peers/torch_peers.sh"
records=$work/records

# record SEED SIDE "updates seconds [return]"
record() { printf '%s %s %s\n' "$1" "$2" "$3" | tee -a "$records" >&2; }

# theirs THREADS ARGUMENTS: the peer with so many intra-op threads
theirs() {
  OMP_NUM_THREADS=$1 peer sac_cleanrl_style.py --learning-starts "$starts" --eval-episodes "$episodes" --torch-threads "$1" "${@:2}"
}

# fastest ARGUMENTS: the count of threads with which a short run of the peer is fastest
fastest() {
  local count figures
  : >"$work/trials"
  for count in $torch_threads; do
    figures=$(theirs "$count" --eval-episodes 0 "$@")
    printf '%s %s\n' "$count" "$figures" >>"$work/trials"
  done
  python3 bench/peers/sac_report.py fastest "$work/trials"
}

# ours SEED
ours() {
  local figures
  our_run rl_halfcheetah_sac "job.run_root=$work/runs" "job.seed=$1" "training.steps=$((steps / 1000))" "eval.episodes=$episodes" \
    "algorithm.sac.learning_starts=$starts" "metrics.sinks=[jsonl]"
  figures=$(python3 bench/peers/sac_report.py run "$work/runs/latest")
  record "$1" troupe "$figures"
  rm -rf "$work/runs"
}

load=$(cut -d' ' -f1 /proc/loadavg)
peer_threads=$(fastest --steps $((starts + trial)))
product_threads=$(fastest --products --seconds "$seconds")
for seed in $seeds; do
  ours "$seed"
  figures=$(theirs "$peer_threads" --steps "$steps" --seed "$seed")
  record "$seed" peer "$figures"
  figures=$(theirs "$product_threads" --products --seconds "$seconds")
  record "$seed" products "$figures"
done
table=$(python3 bench/peers/sac_report.py table "$records")
versions=$(peer sac_cleanrl_style.py --version)
peer_result "SAC end to end against PyTorch over Gymnasium" \
  "HalfCheetah-v5, $steps environment steps, the first $starts at random; 2x256 ReLU, batch 256, one update a step. Seed by seed first ours, then theirs, each
run a process (ours: processes) of its own. Updates per second count from the first update to the last, collection included. Returns are means of
$episodes further episodes with the mean action. One-minute load average before them $load, on $(nproc) hardware threads. Intra-op threads, the fastest of
$torch_threads: peer $peer_threads, products $product_threads." \
  "bench/peers/sac_bench.sh --steps $steps --seeds \"$seeds\" --torch-threads \"$torch_threads\"" \
  "libmujoco 3.6.0 of PyPI's wheel" configs/recipes/rl_halfcheetah_sac.yaml
