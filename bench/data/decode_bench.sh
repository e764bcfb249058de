#!/usr/bin/env bash
# Clip decoding, CPU time per clip: ours (plain, RGB, shared frames, clip cache) against libavcodec alone, TorchCodec and PyAV, on
# the same clips in one run, round by round in turn. Recorded videos (TROUPE_SHARED_DATA) and generated 640x480 H.264 (a key every
# 250 with B-frames; a key every second frame).
#     bench/data/decode_bench.sh [--short] [--no-python] [--rounds N] [--clips N] [--out RESULT.md] [BENCH_BINARY]
# TorchCodec and PyAV come from PyPI into build/python-env (bench/support/python_env.sh); TorchCodec uses the system's FFmpeg,
# the one that we link. --short: one round of few clips on what is there, without Python.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
rounds=5 clips=12 frames=420 samples=256 out="" python=yes bench=$root/build/release/bench/data/bench_data_decode
shared=${TROUPE_SHARED_DATA:-$root/../shared/data}
command="bench/data/decode_bench.sh"
while [ $# -gt 0 ]; do
  case $1 in
    --short) rounds=1 clips=1 frames=110 samples=8 python=no ;;
    --no-python) python=no; command+=" --no-python" ;;
    --rounds) rounds=$2; command+=" --rounds $2"; shift ;;
    --clips) clips=$2; command+=" --clips $2"; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
[ -x "$bench" ] || { echo "decode_bench: $bench is not there; build it with scripts/build release bench_data_decode" >&2; exit 2; }
cd "$root"
if [ "$python" = yes ]; then
  python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { "$bench" "$1" --folder "$work" --shared-data "$shared" --clips "$clips" --frames "$frames" --buffer-samples "$samples" "${@:2}"; }

run prepare
run check
load=$(cut -d' ' -f1 /proc/loadavg)
for _ in $(seq "$rounds"); do
  run round
  [ "$python" = no ] || "$python" bench/data/decode_bench.py "$work/clips.tsv" "$work/costs.tsv"
done
note="$rounds rounds, $clips clips per set; one-minute load average before them $load, on $(nproc) hardware threads."
[ "$python" = no ] || note+=" $("$python" bench/data/decode_bench.py --versions)"
run report --command "$command" --note "$note" ${out:+--out "$out"}
