#!/usr/bin/env bash
# Loading, end to end: ours against PyAV + torchvision v2 + PyTorch DataLoader with 2 workers on the same windows of droid-views with full
# jitter, learner stall at half the rate, and how it scales: decoders, episodes, clip length, resident memory over many samples.
#     bench/workers/decoder/loader_bench.sh [--short] [--no-python] [--rounds N] [--samples N] [--most-episodes N] [--long N] [--out RESULT.md]
#                                        [BENCH_BINARY]
# Python's packages come from PyPI into build/python-env (bench/support/python_env.sh). --short: one round of few samples, without Python.
# Needs the golden folder (TROUPE_GOLDEN) and the recorded videos (TROUPE_SHARED_DATA).
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
rounds=5 samples=96 most=100000 long=100000 out="" python=yes bench=$root/build/release/bench/workers/decoder/bench_data_loader
golden=${TROUPE_GOLDEN:-$root/../shared/golden} shared=${TROUPE_SHARED_DATA:-$root/../shared/data}
command="bench/workers/decoder/loader_bench.sh"
while [ $# -gt 0 ]; do
  case $1 in
    --short) rounds=1 samples=8 most=100 long=64 python=no ;;
    --no-python) python=no; command+=" --no-python" ;;
    --rounds) rounds=$2; command+=" --rounds $2"; shift ;;
    --samples) samples=$2; command+=" --samples $2"; shift ;;
    --most-episodes) most=$2; command+=" --most-episodes $2"; shift ;;
    --long) long=$2; command+=" --long $2"; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
[ -x "$bench" ] || { echo "loader_bench: $bench is not there; build it with scripts/build release bench_data_loader" >&2; exit 2; }
[ -d "$golden/data/droid-mini" ] && [ -d "$shared/droid-views" ] || { echo "loader_bench: no $golden/data/droid-mini or $shared/droid-views" >&2; exit 2; }
cd "$root"
if [ "$python" = yes ]; then
  python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
run() { "$bench" --folder "$work" "$@"; }
measure() { run run --name "$1" --job "$work/$2" "${@:3}"; }

run prepare --golden "$golden" --shared-data "$shared" --samples "$samples"
load=$(cut -d' ' -f1 /proc/loadavg)
if [ "$python" != no ]; then
  run samples --samples 4
  OMP_NUM_THREADS=1 "$python" bench/workers/decoder/loader_bench.py "$work" compare 4
fi
for _ in $(seq "$rounds"); do
  measure droid job_jitter.yaml --decoders 2 --samples "$samples"
  [ "$python" = no ] || OMP_NUM_THREADS=1 "$python" bench/workers/decoder/loader_bench.py "$work" time $((samples / 2)) 2
  measure "droid, 1 decoder" job_jitter.yaml --decoders 1 --samples "$samples"
  measure droid-half job_jitter.yaml --decoders 2 --samples "$samples" --half-of droid
done

# The first opening of a dataset makes its index; the second is what a job sees.
for episodes in 100 1000 10000 100000; do
  [ "$episodes" -le "$most" ] || continue
  run scale --episodes "$episodes"
  measure "scale $episodes, index made" "scale-$episodes.yaml" --decoders 2 --samples 64
  for _ in $(seq "$rounds"); do measure "scale $episodes" "scale-$episodes.yaml" --decoders 2 --samples $((samples * 10)); done
done
for blocks in 1 2 4 6; do
  offsets="data.window.chunks=$blocks"
  for _ in $(seq "$rounds"); do measure "scale 100, $blocks blocks" scale-100.yaml --decoders 2 --samples $((samples * 10)) --set "$offsets"; done
done
measure "scale 100, $long samples" scale-100.yaml --decoders 2 --samples "$long"

note="$rounds rounds of $samples samples (small frames: ten times as many); one-minute load average before them $load, on $(nproc) hardware threads."
[ "$python" = no ] || note+=" $("$python" -c 'import torch, torchvision, av
print(f"Python: PyTorch {torch.__version__}, torchvision {torchvision.__version__}, PyAV {av.__version__}; its tables are in memory from the start, its workers compute on one thread.")')"
run report --command "$command" --note "$note" ${out:+--out "$out"}
