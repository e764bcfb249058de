#!/usr/bin/env bash
# Our MuJoCo tasks against real Gymnasium on the same MuJoCo: random rollouts in single-step mode, every task in v4 and v5.
#     bench/peers/gym_agreement.sh [--steps 1000] [--seed 1] [--out RESULT.md] [BENCH_BINARY]
# Python's packages come from PyPI into build/peers-env (bench/support/python_env.sh).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
steps=1000 seed=1 out="" bench=$root/build/release/bench/peers/bench_peers_gym_agreement
while [ $# -gt 0 ]; do
  case $1 in
    --steps) steps=$2; shift ;;
    --seed) seed=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    *) bench=$(realpath "$1") ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$bench" bench_peers_gym_agreement
cd "$root"
python=$(bench/support/python_env.sh build/peers-env $(cat bench/peers/python_packages.txt))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t tasks < <("$bench" --tasks)
versions=$("$python" -W ignore bench/peers/gym_rollouts.py "$work" --steps "$steps" --seed "$seed" "${tasks[@]}" | tail -1)
status=0
table=$("$bench" "$work") || status=$?
printf '%s\n\n%s, our side: libmujoco %s\n' "$table" "$versions" 3.6.0
if [ -n "$out" ]; then
  {
    printf '# MuJoCo tasks against Gymnasium\n\n%s random steps a task, each from the state that Gymnasium recorded.\n\n%s\n\n' "$steps" "$table"
    echo "- command: \`bench/peers/gym_agreement.sh --steps $steps --seed $seed\`"
    commit_and_machine
    echo "- $versions; ours: libmujoco 3.6.0 of the same wheel, g++ $(g++ -dumpfullversion)"
  } >"$out"
fi
exit "$status"
