#!/usr/bin/env bash
# The learner's whole step, ours against the same computation in PyTorch, eager and compiled: milliseconds a sample, each side a process of its own,
# in alternating rounds. Ours runs one step before the timed one, theirs too (it compiles there). Expect keep to take no longer than either.
#     bench/model/engine_bench.sh [--short] [--rounds 3] [--cases "150M-fp32-micro1-1x2 150M-bf16-micro1-1x2 ..."] [--out RESULT.md] [BENCH_BINARY]
# A case is a name of bench_model_engine without -L3 or -keep. Exit 1 when a first loss differs from ours: 1e-3 of it in fp32, 2e-2 in bf16.
# torch comes from PyPI into build/python-env (bench/support/python_env.sh), in the version of the LibTorch that we link.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
rounds=3 short="" out="" bench=$root/build/release/bench/model/bench_model_engine
cases="25M-fp32-micro1-1x2 25M-bf16-micro1-1x2 150M-fp32-micro1-1x2 150M-bf16-micro1-1x2 150M-fp32-micro4-1x2 150M-bf16-micro4-1x2"
while [ $# -gt 0 ]; do
  case $1 in
    --short) short=--short rounds=1 cases="tiny-fp32-micro1-1x2 tiny-bf16-micro4-1x2" ;;
    --rounds) rounds=$2; shift ;;
    --cases) cases=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$bench" bench_model_engine
cd "$root"
python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

text() { awk -v digits="$1" -f bench/support/medians.awk; }
over() { paste "$work/$1" "$work/$2" | awk '{ print $1 / $3 }' | text 2; }  # round by round
agree() {  # a case, a side: its first losses against ours
  paste "$work/$1.keep" "$work/$1.$2" | awk -v name="$1, $2" -v most="$([[ $1 == *bf16* ]] && echo 2e-2 || echo 1e-3)" '
    { gap = ($4 - $2) / $2; if (!(gap * gap <= most * most)) { print name ": first loss " $4 ", ours " $2 > "/dev/stderr"; exit 1 } }'
}

load=$(cut -d' ' -f1 /proc/loadavg)
table="| case | ours keep, ms a sample | ours L3 | PyTorch eager | PyTorch compiled | eager / keep | compiled / keep |
|---|---|---|---|---|---|---|"
echo "$table"
for name in $cases; do
  "$bench" $short --export "$work" --only "$name-keep"
  for round in $(seq "$rounds"); do
    sides="ours eager compile"
    [ $((round % 2)) = 1 ] || sides="compile eager ours"
    for side in $sides; do
      if [ $side = ours ]; then
        "$bench" $short --ours --rounds 1 --only "$name-" >"$work/lines"
        for kind in keep L3; do awk -v name="$name-$kind" '$1 == name { print $2, $3 }' "$work/lines" >>"$work/$name.$kind"; done
      else
        "$python" -B -W ignore bench/model/engine_peer.py "$work/$name.safetensors" $side >>"$work/$name.$side"
      fi
    done
  done
  rm "$work/$name.safetensors"
  agree "$name" eager
  agree "$name" compile
  line="| $name"
  for side in keep L3 eager compile; do line+=" | $(cut -d' ' -f1 "$work/$name.$side" | text 0)"; done
  line+=" | $(over "$name.eager" "$name.keep") | $(over "$name.compile" "$name.keep") |"
  echo "$line"
  table+=$'\n'$line
done
versions=$("$python" -B -W ignore bench/model/engine_peer.py --version)
echo "$versions"
[ -n "$out" ] || exit 0
{
  printf '# The learner'"'"'s whole step against PyTorch, CPU\n\nThe same initial values, samples and AdamW; blocks checkpointed in PyTorch. %s alternating rounds, each side a process of its own with one step before the timed one; medians (lowest .. highest), ratios round by round. One-minute load average before them %s.\n\n%s\n\n' \
    "$rounds" "$load" "$table"
  echo "- command: \`bench/model/engine_bench.sh --rounds $rounds --cases \"$cases\"\`"
  commit_and_machine
  echo "- $versions; ours: g++ $(g++ -dumpfullversion)"
} >"$out"
