#!/usr/bin/env bash
# Where the time of a reinforcement learning job goes, by who steps the environments (cluster.isolation.env: inline, thread, process), and from which
# step time on processes cost less than a tenth: environment steps per second of whole PPO jobs, collection and updates, and the shares of the phases
# (docs/metrics.md, Phases) over the run. Rounds alternate all forms. Cases, of 2,048 steps an iteration in two blocks:
#   cartpole-16       CartPole-v1, a step of some microseconds
#   halfcheetah-ROWS  HalfCheetah-v5 with 2, 8, 32 and 128 environments: a step of a block takes 1 to 64 times a control step of HalfCheetah
#     bench/rl/isolation_bench.sh [--rounds 3] [--iterations 30] [--cases "cartpole-16 halfcheetah-2 ..."] [--workers "2"] [--out RESULT.md]
#                                 [--troupe TROUPE] [--before TROUPE] [k=v ...]
# --workers: numbers of rollout workers (with processes and threads, as many simulators); more than the cores say nothing about speed. k=v: further
# settings of every job. --before: the program of an older commit, whose processes are measured beside. The first 2 iterations of a run do not count.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
rounds=3 iterations=30 cases="cartpole-16 halfcheetah-2 halfcheetah-8 halfcheetah-32 halfcheetah-128" workers=2 before=""
usage() { echo "isolation_bench: $1" >&2; sed -n '7,8p' "$0" >&2; exit 2; }
option() {
  case $1 in
    --rounds) rounds=$2 ;;
    --iterations) iterations=$2 ;;
    --cases) cases=$2 ;;
    --workers) workers=$2 ;;
    --before) before=$(realpath "$2") ;;
    *) return 1 ;;
  esac
}
read_options "$@"
refuse_dirty_tree "$out"
need_program "$troupe" troupe
[ -z "$before" ] || [ -x "$before" ] || usage "--before $before: no program"
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# one_run CASE FORM WORKERS ROUND
one_run() {
  local rows=${1#*-} rollout=thread job program=$troupe form=$2
  case $1 in
    cartpole-*) job=bench/rl/loop_cartpole.yaml ;;
    halfcheetah-*) job=rl_halfcheetah_ppo ;;
    *) usage "--cases: $1 is cartpole-ROWS or halfcheetah-ROWS" ;;
  esac
  local placed=()
  # an older program does not take the pools' sizes from their limits
  [ "$form" != before ] || form=process program=$before placed=("cluster.component_placement.env=0:0-$(($3 - 1))" "cluster.component_placement.rollout=0:0-$(($3 - 1))")
  [ "$form" != process ] || rollout=process
  "$program" run "$job" --resume never "job.run_root=$work/$1.$2.$3.$4" "cluster.isolation.env=$form" "cluster.isolation.rollout=$rollout" \
    "cluster.elastic={rollout: {min: $3, max: $3}, env: {min: $3, max: $3}}" ${placed[@]+"${placed[@]}"} "env.num_envs=$rows" env.blocks=2 "rollout.steps=$((2048 / rows))" \
    "training.steps=$iterations" training.global_batch_size=64 training.micro_batch_size=64 eval.every=0 eval.episodes=1 metrics.every=1 \
    'metrics.sinks=[jsonl]' ${words[@]+"${words[@]}"} >"$work/error" 2>&1 || { cat "$work/error" >&2; exit 1; }
  printf '%s %s %s round %s\n' "$1" "$2" "$3" "$4" >&2
}

for ((round = 1; round <= rounds; ++round)); do
  for name in $cases; do
    for count in $workers; do
      for form in inline thread process ${before:+before}; do one_run "$name" "$form" "$count" "$round"; done
    done
  done
done
table=$(python3 bench/rl/isolation_report.py "$work" --skip 2)
printf '%s\n' "$table"
[ -n "$out" ] || exit 0
mkdir -p "$(dirname "$out")"
{
  printf '# Who steps the environments: time by phase\n\nPPO, whole jobs: 2,048 steps an iteration, minibatches of 64 rows; medians of %s rounds.\n\n%s\n\n' "$rounds" "$table"
  echo "- command: \`bench/rl/isolation_bench.sh --rounds $rounds --iterations $iterations --cases \"$cases\" --workers \"$workers\"${before:+ --before TROUPE}${words[*]:+ ${words[*]}}\`"
  commit_and_machine
  [ -z "$before" ] || echo "- before: $("$before" --version | sed -n 's/^commit *//p')"
  echo "- ours: $(version_of "$troupe"), g++ $(g++ -dumpfullversion), $(uname -sr)"
} >"$out"
echo "written: $out"
