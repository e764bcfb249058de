#!/usr/bin/env bash
# AdamW against Sophia on quickstart:sft: each optimizer at each learning rate on the first seed, then both on all seeds at the rate
# whose last held-out loss was lowest. Same data, noise and initial weights for both; only `optimizer` differs.
#     bench/model/optimizers.sh [--seeds "42 43 44"] [--rates "1e-3 3e-3 1e-2"] [--out RESULT.md] [--troupe TROUPE] [k=v]...
# Everything stays in build/optimizers-*. Takes (rates * 2 + seeds * 2 - 2) runs of the job.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
seeds="42 43 44" rates="1e-3 3e-3 1e-2" command="bench/model/optimizers.sh $*"
usage() { echo "optimizers: $1" >&2; sed -n '4p' "$0" >&2; exit 2; }
option() {
  case $1 in
    --seeds) seeds=$2 ;;
    --rates) rates=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"
refuse_dirty_tree "$out"
need_program "$troupe" troupe
folder=$root/build/optimizers-$(date +%Y%m%d-%H%M%S)-$$
mkdir -p "$folder"
cd "$folder"

# name, rate, seed
train() {
  local run=$1-$2-$3
  [ -e "$run" ] || "$troupe" run quickstart:sft "optimizer.name=$1" "optimizer.lr=$2" "job.seed=$3" "job.run_root=$run" \
    eval.open_loop.at_end=false ${words[@]+"${words[@]}"} >"$run.txt" 2>&1
}
# the last held-out loss
held_out() {
  python3 -c 'import json, sys
print([m["eval/loss"] for m in (json.loads(line)["m"] for line in open(sys.argv[1])) if "eval/loss" in m][-1])' "$1/latest/metrics.jsonl"
}

first=${seeds%% *}
for name in adamw sophia; do
  best="" least=""
  for rate in $rates; do
    train "$name" "$rate" "$first"
    loss=$(held_out "$name-$rate-$first")
    if [ -z "$least" ] || awk -v a="$loss" -v b="$least" 'BEGIN { exit !(a < b) }'; then best=$rate least=$loss; fi
  done
  for seed in $seeds; do train "$name" "$best" "$seed"; done
  echo "$name $best" >>best.txt
done

python3 - "$seeds" "$rates" >summary.txt <<'PY'
import json, statistics, sys
seeds, rates = sys.argv[1].split(), sys.argv[2].split()
best = dict(line.split() for line in open("best.txt"))

def read(name, rate, seed):
    lines = [json.loads(line)["m"] for line in open(f"{name}-{rate}-{seed}/latest/metrics.jsonl")]
    values = lambda key: [m[key] for m in lines if key in m]
    train, held = values("train/loss"), values("eval/loss")
    return {"held": held[-1], "train": statistics.mean(train[-50:]), "step": statistics.median(values("time/step")),
            "win": statistics.mean(values("train/win_rate")[-50:]) if values("train/win_rate") else None}

print(f"Last held-out loss on seed {seeds[0]} by learning rate:\n")
print("| optimizer | " + " | ".join(rates) + " |\n|---|" + "---|" * len(rates))
for name in best:
    print(f"| {name} | " + " | ".join(f"{read(name, rate, seeds[0])['held']:.4f}" for rate in rates) + " |")
print("\nAt the best of these rates, seed by seed:\n")
print("| seed | " + " | ".join(f"{name}, lr {rate}: held-out | training, last 50 steps" for name, rate in best.items()) + " |")
print("|---|" + "---|---|" * len(best))
for seed in seeds:
    runs = [read(name, rate, seed) for name, rate in best.items()]
    print(f"| {seed} | " + " | ".join(f"{run['held']:.4f} | {run['train']:.4f}" for run in runs) + " |")
pairs = [[read(name, rate, seed) for name, rate in best.items()] for seed in seeds]
ratios = [b["held"] / a["held"] for a, b in pairs]
print(f"\nSophia's held-out loss over AdamW's: {statistics.mean(ratios):.3f} on the mean, {min(ratios):.3f} to {max(ratios):.3f}. "
      f"Median time of a step: {statistics.median(a['step'] for a, _ in pairs):.4f} s and {statistics.median(b['step'] for _, b in pairs):.4f} s. "
      f"Sophia's parameters that follow the curvature in the last 50 steps: {100 * statistics.mean(b['win'] for _, b in pairs):.1f} %.")
PY
cat summary.txt
[ -z "$out" ] || {
  printf '# AdamW and Sophia on the quickstart\n\n'
  cat summary.txt
  echo
  echo "- command: \`$command\`"
  commit_and_machine
  echo "- $(version_of "$troupe")"
} >"$out"
