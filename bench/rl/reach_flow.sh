#!/usr/bin/env bash
# From demonstrations to Flow-GRPO on arm7/reach-v1: records scripted demonstrations, clones them (rl_arm7_reach_sft), goes on in the simulator
# (rl_arm7_reach_grpo_flow) and compares both policies on the same evaluation seeds and noise with McNemar's exact test.
#     bench/rl/reach_flow.sh [--seed S] [--episodes N] [--out RESULT.md] [--troupe TROUPE] [--sft k=v]... [--grpo k=v]... [--short]
# Everything stays in build/rl-curves/reach-flow-*; exit status 1 unless the cloned policy succeeds in 30 to 60 % and the trained one in 20 points more.
# --short: a few steps of each, whatever comes of them, and nothing stays.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
seed=1 episodes=200 out="" short=no troupe=$root/build/release/app/troupe sft=() grpo=() command="bench/rl/reach_flow.sh $*"
usage() { echo "reach_flow: $1" >&2; sed -n '4p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  if [ "$1" = --short ]; then
    short=yes episodes=2 sft+=(training.steps=20) grpo+=(training.steps=1 env.num_envs=16 env.blocks=2 training.global_batch_size=160 training.micro_batch_size=160 eval.episodes=2)
    shift
    continue
  fi
  [ $# -ge 2 ] || usage "$1 needs a value"
  case $1 in
    --seed) seed=$2 ;;
    --episodes) episodes=$2 ;;
    --out) out=$(realpath -m "$2") ;;
    --troupe) troupe=$(realpath "$2") ;;
    --sft) sft+=("$2") ;;
    --grpo) grpo+=("$2") ;;
    *) usage "unknown option '$1'" ;;
  esac
  shift 2
done
refuse_dirty_tree "$out"
need_program "$troupe" troupe
folder=$root/build/rl-curves/reach-flow-$(date +%Y%m%d-%H%M%S)-$$
if [ "$short" = yes ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
cd "$folder"

"$troupe" record arm7/reach-v1 --out data/arm7-reach --episodes 100 --seed "$seed" >record.txt
"$troupe" run rl_arm7_reach_sft "job.seed=$seed" job.run_root=sft ${sft[@]+"${sft[@]}"} >sft.txt 2>&1
"$troupe" eval sft/latest --episodes "$episodes" --json >before.json 2>/dev/null
begin=$EPOCHREALTIME
"$troupe" run rl_arm7_reach_grpo_flow "job.seed=$seed" job.run_root=grpo model.init.path=sft/latest/checkpoints/latest ${grpo[@]+"${grpo[@]}"} >grpo.txt 2>&1
seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }')
"$troupe" eval grpo/latest --episodes "$episodes" --compare sft/latest >compared.txt 2>&1
"$troupe" eval grpo/latest --episodes "$episodes" --json >after.json 2>/dev/null

status=0
python3 - "$folder" "$seconds" >summary.txt <<'PY' || status=1
import json, re, sys
folder, seconds = sys.argv[1:]
def rate(name):
    results = json.load(open(f"{folder}/{name}.json"))["results"]
    return results["successes"] / results["episodes"]
before, after = rate("before"), rate("after")
steps = max((json.loads(line)["m"].get("env/total_steps", 0) for line in open(f"{folder}/grpo/latest/metrics.jsonl")), default=0)
print(f"- cloned policy: {100 * before:.1f} %; after Flow-GRPO: {100 * after:.1f} % ({100 * (after - before):+.1f} points), {steps:,.0f} environment steps, {seconds} s")
sys.exit(0 if 0.3 <= before <= 0.6 and after >= before + 0.2 else 1)
PY
cat summary.txt compared.txt
[ -z "$out" ] || {
  printf '# Flow-GRPO from demonstrations: arm7/reach-v1\n\n'
  cat summary.txt
  printf '\n```\n%s\n```\n\n' "$(cat compared.txt)"
  printf -- '- demonstrations: %s\n' "$(head -1 record.txt)"
  echo "- command: \`$command\`"
  commit_and_machine
  echo "- $(version_of "$troupe")"
  for recipe in rl_arm7_reach_sft rl_arm7_reach_grpo_flow; do printf '\n## %s\n```yaml\n%s\n```\n' "$recipe" "$(cat "$root/configs/recipes/$recipe.yaml")"; done
} >"${out:-/dev/null}"
[ "$short" = yes ] || exit "$status"
